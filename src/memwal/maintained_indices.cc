#include "memwal/maintained_indices.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/type.h>

#include "exec/vector_index.h"
#include "file/schema.h"
#include "format/memwal.pb.h"
#include "format/table.pb.h"
#include "index/text/index_params.h"
#include "io/object_store.h"
#include "memwal/btree_files.h"
#include "memwal/text_index_files.h"
#include "memwal/vector_index_files.h"
#include "table/index_section.h"

namespace glaive::memwal {
namespace {

using lance::table::IndexMetadata;

std::string_view DetailsKind(const IndexMetadata& index) {
  std::string_view kind = index.index_details().type_url();
  const size_t cut = kind.find_last_of("/.");
  return cut == std::string_view::npos ? kind : kind.substr(cut + 1);
}

// Finds a field, perhaps a member of structs; `path`: the names that lead to it.
const file::Field* FindField(const std::vector<file::Field>& fields, int32_t id,
                             std::vector<std::string>* path) {
  for (const file::Field& field : fields) {
    path->push_back(field.name);
    if (field.id == id) return &field;
    if (field.type->id() == arrow::Type::STRUCT) {
      if (const auto* found = FindField(field.children, id, path)) return found;
    }
    path->pop_back();
  }
  return nullptr;
}

const file::Field* IndexedColumn(const table::Dataset& base, const IndexMetadata& index,
                                 std::vector<std::string>* path) {
  if (index.fields_size() != 1) return nullptr;
  return FindField(base.schema().fields(), index.fields(0), path);
}

// As index files name it. Searches with another metric would not find what is indexed.
Result<std::string> MetricOf(const table::Dataset& base, const IndexMetadata& index) {
  GLAIVE_ASSIGN_OR_RETURN(const exec::Metric metric, exec::MetricOf(base, index));
  switch (metric) {
    case exec::Metric::kL2:
      return "l2";
    case exec::Metric::kCosine:
      return "cosine";
    case exec::Metric::kDot:
      return "dot";
    case exec::Metric::kHamming:
      break;
  }
  return NotSupported("maintaining index '", index.name(),
                      "', whose metric is hamming; leave it out of maintained_indexes");
}

// How a full-text index makes tokens, which memtables can do, too.
Result<GenerationTextIndex> TextIndexOf(const table::Dataset& base,
                                        const IndexMetadata& index) {
  std::vector<std::string> path;
  const file::Field* column = IndexedColumn(base, index, &path);
  if (column == nullptr || !IsTextIndexType(*column->type)) {
    return NotSupported("maintaining index '", index.name(),
                        "': only full-text indices of one column of texts or lists of "
                        "texts can be",
                        column == nullptr ? std::string()
                                          : "; column '" + file::FormatFieldPath(path) +
                                                "' is " + column->type->ToString(),
                        ". Leave it out of maintained_indexes");
  }
  GenerationTextIndex found{index.name(), file::FormatFieldPath(path), {}};
  GLAIVE_ASSIGN_OR_RETURN(found.params, text::ReadIndexParams(base, index));
  if (Status status = text::CheckTokenizerParams(found.params); !status.ok()) {
    return WithContext(status, "maintaining index '" + index.name() +
                                   "' (leave it out of maintained_indexes)");
  }
  return found;
}

class Finder {
 public:
  Finder(const table::Dataset& base, bool all, GenerationOptions* options)
      : base_(base), all_(all), options_(*options) {}

  Status Add(const IndexMetadata& index) {
    const std::string_view kind = DetailsKind(index);
    std::vector<std::string> path;
    const file::Field* column = IndexedColumn(base_, index, &path);
    if (kind == "BTreeIndexDetails" && column != nullptr && IsBtreeType(*column->type)) {
      options_.btree_indices.emplace_back(index.name(), file::FormatFieldPath(path));
      return Status::OK();
    }
    if (kind == "VectorIndexDetails" && column != nullptr &&
        IsVectorIndexType(*column->type)) {
      auto metric = MetricOf(base_, index);
      if (metric.ok()) {
        options_.vector_indices.push_back(
            {index.name(), file::FormatFieldPath(path), std::move(*metric)});
        return Status::OK();
      }
      return all_ && KindOf(metric.status()) == ErrorKind::kNotSupported
                 ? Status::OK()
                 : metric.status();
    }
    if (kind == "InvertedIndexDetails") {
      auto found = TextIndexOf(base_, index);
      if (found.ok()) {
        options_.text_indices.push_back(std::move(*found));
        return Status::OK();
      }
      return all_ && KindOf(found.status()) == ErrorKind::kNotSupported ? Status::OK()
                                                                        : found.status();
    }
    if (all_) return Status::OK();
    if (kind == "VectorIndexDetails") return CheckVectorIndex(base_, index);
    return NotSupported("index '", index.name(), "' has type ",
                        index.index_details().type_url(),
                        ", which no registered plugin maintains. Supported: "
                        "[BTreeIndexDetails, VectorIndexDetails, InvertedIndexDetails] "
                        "of one column; leave it out of maintained_indexes");
  }

 private:
  const table::Dataset& base_;
  const bool all_;
  GenerationOptions& options_;
};

}  // namespace

Status CheckVectorIndex(const table::Dataset& base, const IndexMetadata& index) {
  std::vector<std::string> path;
  const file::Field* column = IndexedColumn(base, index, &path);
  if (column != nullptr && IsVectorIndexType(*column->type)) return Status::OK();
  return InvalidInput("HNSW index '", index.name(),
                      "' requires a FixedSizeList<Float32> column with dimension > 0",
                      column == nullptr ? std::string()
                                        : "; column '" + file::FormatFieldPath(path) +
                                              "' is " + column->type->ToString(),
                      ". Leave it out of maintained_indexes (fresh rows are searched "
                      "exactly)");
}

Status CheckTextIndex(const table::Dataset& base, const IndexMetadata& index) {
  return TextIndexOf(base, index).status();
}

Status FindMaintainedIndices(const table::Dataset& base, const MemWalDetails& details,
                             GenerationOptions* options) {
  const bool all = details.maintain_all_indexes();
  if (!all && details.maintained_indexes().empty()) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(base));
  const std::set<std::string> names(details.maintained_indexes().begin(),
                                    details.maintained_indexes().end());
  Finder finder(base, all, options);
  std::set<std::string> found;
  for (const IndexMetadata& index : section.indices()) {
    if (index.name().starts_with("__")) continue;  // of the system
    if (!all && !names.contains(index.name())) continue;
    if (!found.insert(index.name()).second) continue;  // another segment of it
    GLAIVE_RETURN_NOT_OK(finder.Add(index));
  }
  if (all) return Status::OK();
  for (const std::string& name : names) {
    if (!found.contains(name)) {
      return InvalidInput("Index '", name,
                          "' from maintained_indexes not found on dataset ",
                          base.env().store->root());
    }
  }
  return Status::OK();
}

}  // namespace glaive::memwal
