// The next schema of a table: fields added, dropped, renamed, retyped. Pure functions;
// who writes the data of new fields is exec's business.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "table/dataset.h"

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}
namespace lance::file {
class Field;
}

namespace glaive::table {

// The field at `path` ("a.b", "a.`b.c`"), names exactly as written, list items by their
// names; a top-level column may also be named as it is when its name holds dots. Null
// when there is none.
const file::Field* FindField(const file::Schema& schema, std::string_view path);
// Quoted path of the field with this id; empty when there is none.
std::string PathOfField(const file::Schema& schema, int32_t id);

// First id for a new field: above all that the table ever gave.
Result<int32_t> NextFieldId(const Dataset& dataset);

// SchemaMismatch for a column that a table cannot have: its name is empty, holds a dot,
// comes twice or is that of a meta column (_rowid, ...).
Status CheckColumnNames(const arrow::Schema& columns);

struct AddedFields {
  file::Schema schema;  // the table's next one
  // Only what is new: trees whose inner nodes may be known structs.
  file::Schema added;
};
// `fields` behind those of the table. Structs of the same name are merged: their new
// members come last. InvalidInput for a column that exists already and for names that
// cannot be columns. Keys of the metadata of `fields` are added to the table's.
Result<AddedFields> AddFields(const file::Schema& table, const arrow::Schema& fields,
                              int32_t first_id);

// Without the fields at `paths`; structs and lists that lose their last member go too.
// NotFound names a path that is not there; InvalidInput when nothing would be left.
Result<file::Schema> DropFields(const file::Schema& table,
                                std::span<const std::string> paths);

struct ColumnAlteration {
  std::string path;
  std::optional<std::string> rename;
  std::optional<bool> nullable;
  std::shared_ptr<arrow::DataType> type;  // null: stays
};

struct FieldCast {
  int32_t old_id = -1;
  int32_t new_id = -1;
};

struct AlteredFields {
  file::Schema schema;
  std::vector<FieldCast> casts;
  std::vector<int32_t>
      made_non_null;  // ids in the old schema: their values must be looked at
};
// Paths refer to `table`, whatever the order. Fields that are cast get new ids from
// `first_id` on, in the order of the alterations. InvalidInput for a path that is not
// there, a name that is taken, and a cast that does not exist (see CanCast).
Result<AlteredFields> AlterFields(const file::Schema& table,
                                  std::span<const ColumnAlteration> alterations,
                                  int32_t first_id);

// InvalidInput when a field that is cast has an index, as upstream has it: the index
// would be lost.
Status CheckNotIndexed(const Dataset& dataset, std::span<const FieldCast> casts);

// The casts that a column may take: within integers, floats, text, binary, decimals,
// durations; between dates, times and timestamps; to and from dictionaries of such
// values; lists whose items may be cast. Values that do not fit are found when they are
// read.
bool CanCast(const arrow::DataType& from, const arrow::DataType& to);

// Ids of the fields that are flagged as the unenforced primary key, in schema order.
std::vector<int32_t> PrimaryKeyOf(const file::Schema& schema);
// SchemaMismatch when a field of the unenforced primary key, or a parent of it, is
// nullable or lies in a list.
Status CheckPrimaryKey(const file::Schema& schema);

// `schema` as the messages of a manifest. What `current` (the manifest's fields) knows of
// fields that stay, and this build does not, is kept.
void FieldsToProto(const file::Schema& schema,
                   const google::protobuf::RepeatedPtrField<lance::file::Field>& current,
                   google::protobuf::RepeatedPtrField<lance::file::Field>* out);

}  // namespace glaive::table
