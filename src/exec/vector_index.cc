#include "exec/vector_index.h"

#include <algorithm>
#include <memory>
#include <string>

#include <arrow/buffer.h>

#include "file/file_metadata.h"
#include "format/file.pb.h"
#include "format/table.pb.h"
#include "format/vector_index.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/index_section.h"
#include "table/names.h"

namespace glaive::exec {
namespace {

using lance::table::IndexMetadata;

// From the schema's metadata in the file, a small JSON object without nesting.
Result<Metric> MetricOfFile(io::ObjectStore& store, const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto object, store.Open(path));
  GLAIVE_ASSIGN_OR_RETURN(const auto metadata, file::ReadFileMetadata(*object));
  const Status damaged =
      Corruption("vector index ", path, " does not say for which metric it was made");
  if (metadata.global_buffers.empty()) return damaged;
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, object->Read(metadata.global_buffers[0]));
  lance::file::FileDescriptor descriptor;
  if (!descriptor.ParseFromArray(bytes->data(), static_cast<int>(bytes->size()))) {
    return damaged;
  }
  const auto& pairs = descriptor.schema().metadata();
  const auto found = pairs.find("lance:index");
  if (found == pairs.end()) return damaged;
  for (const char* metric : {"l2", "cosine", "dot", "hamming"}) {
    const std::string quoted = std::string("\"") + metric + "\"";
    if (found->second.find(quoted) != std::string::npos) return ParseMetric(metric);
  }
  return damaged;
}

}  // namespace

Result<Metric> MetricOf(const table::Dataset& dataset, const IndexMetadata& index) {
  const std::string& bytes = index.index_details().value();
  if (bytes.empty()) {
    return MetricOfFile(
        *dataset.env().store,
        "_indices/" + table::FormatUuid(index.uuid().uuid()) + "/index.idx");
  }
  lance::index::pb::VectorIndexDetails details;
  if (details.ParseFromString(bytes)) {
    switch (details.metric_type()) {
      case lance::index::pb::L2:
        return Metric::kL2;
      case lance::index::pb::COSINE:
        return Metric::kCosine;
      case lance::index::pb::DOT:
        return Metric::kDot;
      case lance::index::pb::HAMMING:
        return Metric::kHamming;
      default:
        break;
    }
  }
  return Corruption("the details of index '", index.name(), "' of table ",
                    dataset.env().store->root(), " do not decode");
}

namespace {

// What was found for one column of one index section.
struct KnownMetric {
  std::shared_ptr<const std::string> section;  // keeps its address, the key, from others
  std::optional<Metric> metric;
};

Result<std::optional<Metric>> FindIndexMetric(const table::Dataset& dataset,
                                              int32_t field_id) {
  GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(dataset));
  const auto& indices = section.indices();
  const auto found =
      std::find_if(indices.begin(), indices.end(), [&](const IndexMetadata& index) {
        return index.fields_size() == 1 && index.fields(0) == field_id &&
               index.index_details().type_url().ends_with("VectorIndexDetails");
      });
  if (found == indices.end()) return std::nullopt;
  GLAIVE_ASSIGN_OR_RETURN(const Metric metric, MetricOf(dataset, *found));
  return metric;
}

}  // namespace

Result<std::optional<Metric>> IndexMetric(const table::Dataset& dataset,
                                          int32_t field_id) {
  const auto bytes = dataset.index_section();
  if (bytes == nullptr) return std::nullopt;
  Cache& cache = dataset.env().runtime->cache();
  const std::string key =
      "index-metric:" + std::to_string(reinterpret_cast<uintptr_t>(bytes.get())) + ":" +
      std::to_string(field_id);
  if (const auto known = cache.Get<KnownMetric>(key)) return known->metric;
  auto found = std::make_shared<KnownMetric>();
  found->section = bytes;
  GLAIVE_ASSIGN_OR_RETURN(found->metric, FindIndexMetric(dataset, field_id));
  cache.Put(key, found, static_cast<int64_t>(sizeof(KnownMetric) + bytes->size()));
  return found->metric;
}

}  // namespace glaive::exec
