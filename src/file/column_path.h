// The way from a top-level column to one of the fields below it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "encoding/levels_build.h"
#include "file/schema.h"

namespace glaive::file {

// Refers to fields of a schema that must outlive it.
class ColumnPath {
 public:
  // `fields`: outer-most first; `child[i]` is the position of fields[i + 1] below
  // fields[i].
  ColumnPath(std::vector<const Field*> fields, std::vector<int> child);

  // Paths to the fields below `field` that own a column, in the order of their numbers.
  // `every_field`: the rule of version 2.0.
  static std::vector<ColumnPath> Collect(const Field& field, bool every_field);

  const std::vector<const Field*>& fields() const { return fields_; }
  const Field& leaf() const { return *fields_.back(); }
  // Ends with PathNode::kLeaf, whatever the last field is.
  const std::vector<encoding::PathNode>& nodes() const { return nodes_; }
  // Dotted name for messages.
  std::string name() const;

  // `data` (a top-level array) without the members that are not on the path. Shares
  // buffers.
  std::shared_ptr<arrow::ArrayData> Prune(
      const std::shared_ptr<arrow::ArrayData>& data) const;

 private:
  std::shared_ptr<arrow::ArrayData> PruneFrom(
      const std::shared_ptr<arrow::ArrayData>& data, size_t depth) const;

  std::vector<const Field*> fields_;
  std::vector<int> child_;
  std::vector<encoding::PathNode> nodes_;
  std::vector<std::shared_ptr<arrow::DataType>> types_;  // of each field, pruned
};

}  // namespace glaive::file
