// Facts about a table that its manifest tells.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "db/table.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/data_file.h"

namespace glaive::db {
namespace {

constexpr int64_t kSmallFragmentRows = 100000;

}  // namespace

Result<bool> UsesV2ManifestPaths(const table::Dataset& dataset) {
  const uint64_t inverted =
      std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(dataset.version());
  std::string digits = std::to_string(inverted);
  digits.insert(0, 20 - digits.size(), '0');
  return dataset.env().store->Exists("_versions/" + digits + ".manifest");
}

Result<TableStats> ComputeStats(const table::Dataset& dataset) {
  TableStats stats;
  std::vector<int64_t> lengths;
  for (int i = 0; i < dataset.num_fragments(); ++i) {
    stats.total_bytes += table::DataFileBytes(dataset.fragment(i));
    lengths.push_back(dataset.physical_rows(i));  // as upstream: deleted rows included
  }
  stats.num_rows = dataset.count_rows();
  GLAIVE_ASSIGN_OR_RETURN(stats.num_indices, dataset.CountIndices());
  FragmentStats& fragments = stats.fragments;
  fragments.num_fragments = static_cast<int64_t>(lengths.size());
  if (lengths.empty()) return stats;
  std::sort(lengths.begin(), lengths.end());
  const int64_t n = fragments.num_fragments;
  auto percentile = [&](int64_t p) { return lengths[std::min(n - 1, n * p / 100)]; };
  fragments.num_small_fragments =
      std::lower_bound(lengths.begin(), lengths.end(), kSmallFragmentRows) -
      lengths.begin();
  fragments.min = lengths.front();
  fragments.max = lengths.back();
  int64_t total = 0;
  for (int64_t length : lengths) total += length;
  fragments.mean = total / n;
  fragments.p25 = percentile(25);
  fragments.p50 = percentile(50);
  fragments.p75 = percentile(75);
  fragments.p99 = percentile(99);
  return stats;
}

}  // namespace glaive::db
