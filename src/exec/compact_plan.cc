// Which fragments a compaction rewrites together.
#include "exec/compact_plan.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include <roaring/roaring.h>

#include "exec/compact.h"
#include "format/table.pb.h"
#include "table/data_file.h"
#include "table/index_section.h"

namespace glaive::exec {
namespace {

struct Candidate {
  int index = 0;
  int64_t rows = 0;  // live
  int64_t bytes = 0;
  bool alone = false;  // worth rewriting without neighbours: it has enough deletions
};

struct FreeBitmap {
  void operator()(roaring_bitmap_t* bitmap) const { roaring_bitmap_free(bitmap); }
};

// Cuts neighbours into tasks of at least the target, the rest going to the last one.
void CutBin(const std::vector<Candidate>& bin, int64_t target,
            std::vector<std::vector<Candidate>>* tasks) {
  int64_t left = 0;
  for (const Candidate& c : bin) left += c.rows;
  std::vector<Candidate> task;
  int64_t rows = 0;
  for (const Candidate& c : bin) {
    task.push_back(c);
    rows += c.rows;
    left -= c.rows;
    if (rows >= target && left >= target) {
      tasks->push_back(std::move(task));
      task.clear();
      rows = 0;
    }
  }
  if (!task.empty()) tasks->push_back(std::move(task));
}

}  // namespace

Result<std::vector<std::vector<int>>> IndexCoverage(const table::Dataset& dataset) {
  std::vector<std::vector<int>> coverage(static_cast<size_t>(dataset.num_fragments()));
  GLAIVE_ASSIGN_OR_RETURN(const auto indices, table::ReadIndexSection(dataset));
  for (int k = 0; k < indices.indices_size(); ++k) {
    const std::string& bytes = indices.indices(k).fragment_bitmap();
    if (bytes.empty()) continue;
    const std::unique_ptr<roaring_bitmap_t, FreeBitmap> bitmap(
        roaring_bitmap_portable_deserialize_safe(bytes.data(), bytes.size()));
    if (bitmap == nullptr) {
      return Corruption("the fragment bitmap of index ", indices.indices(k).name(),
                        " does not decode");
    }
    for (int i = 0; i < dataset.num_fragments(); ++i) {
      if (roaring_bitmap_contains(bitmap.get(),
                                  static_cast<uint32_t>(dataset.fragment_id(i)))) {
        coverage[static_cast<size_t>(i)].push_back(k);
      }
    }
  }
  return coverage;
}

Result<CompactionPlan> PlanCompaction(const table::Dataset& dataset,
                                      const CompactionOptions& options) {
  CompactionPlan plan;
  plan.read_version = dataset.version();
  plan.options = options;
  GLAIVE_ASSIGN_OR_RETURN(const auto coverage, IndexCoverage(dataset));
  if (options.defer_index_remap &&
      std::any_of(coverage.begin(), coverage.end(),
                  [](const auto& set) { return !set.empty(); })) {
    return NotSupported("compaction with defer_index_remap of a table with indices");
  }
  if (options.mode == CompactionMode::kForceBinaryCopy) {
    return NotSupported("compaction with compaction_mode force_binary_copy");
  }
  const std::set<uint64_t> excluded(options.excluded_fragment_ids.begin(),
                                    options.excluded_fragment_ids.end());
  std::vector<std::vector<Candidate>> tasks;
  std::vector<Candidate> bin;
  auto close = [&] {
    // Nothing is gained by rewriting one fragment that has no deletions.
    if (bin.size() > 1 || (bin.size() == 1 && bin[0].alone)) {
      CutBin(bin, options.target_rows_per_fragment, &tasks);
    }
    bin.clear();
  };
  for (int i = 0; i < dataset.num_fragments(); ++i) {
    const int64_t physical = dataset.physical_rows(i);
    const int64_t deleted = physical - dataset.live_rows(i);
    Candidate candidate{i, dataset.live_rows(i), 0, false};
    candidate.alone = options.materialize_deletions &&
                      static_cast<double>(deleted) / static_cast<double>(physical) >
                          options.materialize_deletions_threshold;
    const bool wanted = candidate.alone || physical < options.target_rows_per_fragment;
    if (!wanted || !coverage[static_cast<size_t>(i)].empty() ||
        excluded.count(static_cast<uint64_t>(dataset.fragment_id(i))) > 0) {
      close();
      continue;
    }
    if (options.max_source_bytes) {
      candidate.bytes = table::DataFileBytes(dataset.fragment(i));
    }
    bin.push_back(candidate);
  }
  close();

  int64_t fragments = 0, rows = 0, bytes = 0;
  for (const auto& task : tasks) {
    // A cut may leave a single fragment of its own.
    if (task.size() == 1 && !task[0].alone) continue;
    for (const Candidate& c : task) {
      ++fragments;
      rows += c.rows;
      bytes += c.bytes;
    }
    if ((options.max_source_fragments && fragments > *options.max_source_fragments) ||
        (options.max_source_rows && rows > *options.max_source_rows) ||
        (options.max_source_bytes && bytes > *options.max_source_bytes)) {
      break;
    }
    CompactionTask& out = plan.tasks.emplace_back();
    out.read_version = plan.read_version;
    out.options = options;
    for (const Candidate& c : task) out.fragments.push_back(dataset.fragment(c.index));
  }
  return plan;
}

}  // namespace glaive::exec
