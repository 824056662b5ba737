// A Lance schema: Arrow fields with ids, as stored in files and manifests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}
namespace lance::file {
class Field;
class Schema;
}  // namespace lance::file

namespace glaive::file {

// One node of the schema tree.
struct Field {
  std::string name;
  int32_t id = -1;
  int32_t parent_id = -1;
  std::string logical_type;
  // Type as the user sees it: extension types of Arrow are represented by their storage
  // type plus the ARROW:extension:* keys in `metadata`. Agrees with `children` (names,
  // nullability, metadata).
  std::shared_ptr<arrow::DataType> type;
  bool nullable = true;
  std::map<std::string, std::string> metadata;
  std::vector<Field> children;

  bool is_leaf() const { return children.empty(); }
  // One physical column for the whole struct.
  bool is_packed_struct() const;
  // Large binary kept out of line (`lance-encoding:blob`).
  bool is_blob() const;
  // A blob as users describe it, struct<data, uri> of extension lance.blob.v2. Files of
  // version 2.2 hold a descriptor in its place.
  bool is_blob_v2() const;
  // True when this field owns a column in files of version 2.1 and later.
  bool owns_column() const;
  std::shared_ptr<arrow::Field> ToArrow() const;
};

// Immutable after construction; cheap to share by const reference.
class Schema {
 public:
  Schema() = default;
  explicit Schema(std::vector<Field> fields,
                  std::map<std::string, std::string> metadata = {});

  // Ids depth first from `first_id`. Types that Lance cannot store: NotSupported naming
  // the column. Views become string/binary, arrow.json becomes lance.json, as upstream
  // stores them.
  static Result<Schema> FromArrow(const arrow::Schema& schema, int32_t first_id = 0);
  // From the flattened form of files and manifests. Corruption when the tree is broken.
  static Result<Schema> FromProto(
      const google::protobuf::RepeatedPtrField<lance::file::Field>& fields,
      std::map<std::string, std::string> metadata = {});
  static Result<Schema> FromProto(const lance::file::Schema& schema);

  void ToProto(google::protobuf::RepeatedPtrField<lance::file::Field>* fields) const;
  void ToProto(lance::file::Schema* schema) const;
  std::shared_ptr<arrow::Schema> ToArrow() const;

  const std::vector<Field>& fields() const { return fields_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  int32_t max_id() const;  // -1 when empty

  const Field* FindById(int32_t id) const;
  // Path of names from the root, exact first, then case-insensitive if that is
  // unambiguous.
  const Field* FindByPath(std::span<const std::string> path) const;
  const Field* FindTopLevel(std::string_view name) const;  // exact only

  // The sub-tree made of the named fields, in the order given; "a.b" keeps only member b
  // of a, several members of one struct are merged; back-quotes protect dots, and are
  // needed only where a name with dots could be a member as well. NotFound names the
  // column.
  Result<Schema> Project(std::span<const std::string> paths) const;
  // The sub-tree made of the fields with these ids (and their ancestors, whole sub-trees
  // for non-leaf ids), in schema order.
  Schema ProjectByIds(std::span<const int32_t> ids) const;

  // Blobs of the second kind replaced by what files hold and scans return for them: the
  // packed struct<kind: uint8, position: uint64, size: uint64, blob_id: uint32, blob_uri:
  // utf8>.
  Schema WithBlobDescriptors() const;

  // Fields that own a column, in pre-order, for the given major rule (2.0: every field).
  std::vector<const Field*> ColumnFields(bool v2_0) const;

 private:
  std::vector<Field> fields_;
  std::map<std::string, std::string> metadata_;
};

// Splits "a.`b.c`.d" into {"a", "b.c", "d"}. InvalidInput on an unclosed quote or an
// empty segment.
Result<std::vector<std::string>> ParseFieldPath(std::string_view text);
// The inverse: quotes segments that need it.
std::string FormatFieldPath(std::span<const std::string> path);

// Logical type string <-> Arrow type for fields without children of their own.
Result<std::string> LogicalTypeOf(const arrow::DataType& type);
Result<std::shared_ptr<arrow::DataType>> ParseLogicalType(std::string_view text);

}  // namespace glaive::file
