// SQL predicates: parse, bind to a schema, evaluate over record batches with three-valued
// logic.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"

namespace glaive::expr {

// Columns beside those of the schema that an expression may name, with their types.
using ExtraColumns =
    std::vector<std::pair<std::string, std::shared_ptr<arrow::DataType>>>;
// _rowid, _rowaddr, _rowoffset, _row_created_at_version and
// _row_last_updated_at_version, all uint64: what every scan can give.
const ExtraColumns& RowMetaColumns();

// A bound predicate. Immutable; Evaluate may run on several threads at once.
class Predicate {
 public:
  // Parses and binds. InvalidInput shows the place of the error ("... at position 7 near
  // 'x'"); NotFound-like unknown columns are InvalidInput naming the column and the
  // columns there are.
  static Result<std::shared_ptr<const Predicate>> Make(
      std::string_view sql, const file::Schema& schema,
      const ExtraColumns& extra = RowMetaColumns());
  ~Predicate();

  // Paths of the fields that Evaluate needs (quoted form, for Schema::Project), meta
  // columns
  // (_rowid, _rowaddr, _rowoffset) excluded and reported by the flags below.
  const std::vector<std::string>& columns() const;
  // Names of the extra columns that Evaluate needs.
  const std::vector<std::string>& extra_columns() const;
  bool needs_row_id() const;
  bool needs_row_address() const;
  bool needs_row_offset() const;

  // `batch` holds at least columns() (and the meta columns asked for). Sets bit i of
  // `keep` (LSB first, batch.num_rows() bits) iff the predicate is TRUE for row i.
  // Returns their number.
  Result<int64_t> Evaluate(const arrow::RecordBatch& batch, uint8_t* keep) const;
  // TRUE / FALSE / NULL per row.
  Result<std::shared_ptr<arrow::BooleanArray>> EvaluateToArray(
      const arrow::RecordBatch& batch) const;
  // In the notation of plans: `id = Int64(1)`.
  std::string ToString() const;

 private:
  Predicate();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An expression with a value of any type, conditions included (they are booleans with
// nulls): for `select({"alias": "expr"})`, `update(values_sql=...)` and computed columns.
// Functions and operators that upstream knows and that are not built are NotSupported by
// name. Immutable; Evaluate may run on several threads at once.
class ScalarExpr {
 public:
  static Result<std::shared_ptr<const ScalarExpr>> Make(
      std::string_view sql, const file::Schema& schema,
      const ExtraColumns& extra = RowMetaColumns());
  // The value cast to `type` by the rules of SQL's CAST, as upstream does with the values
  // of an update: fractions are cut off, text is parsed, NULL takes any type. A value
  // that has no place in `type` (300 for int8, 'abc' for a number) is InvalidInput: at
  // once when the expression is constant, from Evaluate otherwise. Pairs of types without
  // a cast are InvalidInput here.
  static Result<std::shared_ptr<const ScalarExpr>> MakeCastTo(
      std::string_view sql, const file::Schema& schema,
      std::shared_ptr<arrow::DataType> type,
      const ExtraColumns& extra = RowMetaColumns());
  ~ScalarExpr();
  const std::vector<std::string>& columns() const;
  const std::vector<std::string>& extra_columns() const;
  // The path, when the expression is nothing but a column.
  const std::string* plain_column() const;
  // NullType for the bare literal NULL.
  std::shared_ptr<arrow::DataType> type() const;
  // An array of batch.num_rows() values of type(). `batch` as for Predicate::Evaluate.
  Result<std::shared_ptr<arrow::Array>> Evaluate(const arrow::RecordBatch& batch) const;

 private:
  ScalarExpr();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::expr
