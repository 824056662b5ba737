#include "exec/alter_columns.h"

#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "exec/morsel.h"
#include "exec/plan.h"
#include "format/table.pb.h"
#include "runtime/runtime.h"
#include "table/mem_wal_entry.h"

namespace glaive::exec {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// `array` of the tree `from` as one of the tree `to`, which has the same shape down to
// the fields that are cast.
Result<ArrayPtr> CastTree(const file::Field& from, const file::Field& to,
                          const ArrayPtr& array, bool checked) {
  if (from.id != to.id) {
    auto cast = CastColumn(array, to.type, checked);
    if (!cast.ok()) {
      return WithContext(cast.status(), "column '" + from.name + "'");
    }
    return cast;
  }
  auto data = array->data()->Copy();
  data->type = to.type;
  if (from.children.size() != to.children.size() ||
      data->child_data.size() != to.children.size()) {
    return InternalError("column '", from.name, "' changed its shape");
  }
  for (size_t i = 0; i < to.children.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(auto child,
                            CastTree(from.children[i], to.children[i],
                                     arrow::MakeArray(data->child_data[i]), checked));
    data->child_data[i] = child->data();
  }
  return arrow::MakeArray(data);
}

// Only the fields on the way to those that are cast.
struct CastPlan {
  file::Schema from;
  file::Schema to;
};

CastPlan PlanCast(const file::Schema& before, const table::AlteredFields& altered) {
  std::vector<int32_t> old_ids, new_ids;
  for (const table::FieldCast& cast : altered.casts) {
    old_ids.push_back(cast.old_id);
    new_ids.push_back(cast.new_id);
  }
  return {before.ProjectByIds(old_ids), altered.schema.ProjectByIds(new_ids)};
}

std::shared_ptr<OutputPlan> ReadPlan(const table::Dataset& dataset, file::Schema schema) {
  auto plan = std::make_shared<OutputPlan>();
  plan->schema = schema.ToArrow();
  for (int i = 0; i < plan->schema->num_fields(); ++i) {
    OutputPlan::Column column;
    column.read_index = i;
    plan->columns.push_back(std::move(column));
  }
  plan->read = std::make_unique<BoundColumns>(std::move(schema), dataset.num_fragments());
  return plan;
}

// Whether some file of the fragment holds a field of `schema`.
bool HoldsAny(const lance::table::DataFragment& fragment, const file::Schema& schema) {
  for (const auto& file : fragment.files()) {
    for (int32_t id : file.fields()) {
      if (id >= 0 && schema.FindById(id) != nullptr) return true;
    }
  }
  return false;
}

// Whether a list that stays gets some of its items' members from another file.
bool CastsInLists(const file::Schema& cast, const file::Schema& before) {
  std::vector<const file::Field*> open;
  for (const file::Field& field : cast.fields()) open.push_back(&field);
  while (!open.empty()) {
    const file::Field* field = open.back();
    open.pop_back();
    if (before.FindById(field->id) == nullptr) continue;
    if (field->logical_type != "struct") return true;
    for (const file::Field& child : field->children) open.push_back(&child);
  }
  return false;
}

Result<table::Dataset::Ptr> CastColumns(const table::Dataset::Ptr& dataset,
                                        const table::AlteredFields& altered,
                                        const ColumnChangeOptions& options) {
  const CastPlan plan = PlanCast(dataset->schema(), altered);
  if (dataset->file_version() == file::FileVersion::k2_0) {
    for (const file::Field& field : plan.to.fields()) {
      if (dataset->schema().FindById(field.id) == nullptr) continue;
      return NotSupported("casting a part of column '", field.name,
                          "' in a table of file version 2.0; cast columns of the top "
                          "level, or write the table anew in a later version");
    }
  }
  const auto read = ReadPlan(*dataset, plan.from);
  const auto cast_schema = plan.to.ToArrow();
  const auto cast = [&](const BatchPtr& batch, bool checked) -> Result<BatchPtr> {
    arrow::ArrayVector arrays;
    for (size_t i = 0; i < plan.to.fields().size(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(auto array,
                              CastTree(plan.from.fields()[i], plan.to.fields()[i],
                                       batch->column(static_cast<int>(i)), checked));
      arrays.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(cast_schema, batch->num_rows(), std::move(arrays));
  };
  const ColumnFunction live = [&](const BatchPtr& batch) { return cast(batch, true); };
  ColumnFunction whole;
  if (CastsInLists(plan.to, dataset->schema())) {
    whole = [&](const BatchPtr& batch) { return cast(batch, false); };
  }
  ColumnFiles files(dataset, plan.to, options);
  // Where no file holds the column its values are nulls, of any type.
  const auto wanted = [&](int fragment) {
    return HoldsAny(dataset->fragment(fragment), plan.from);
  };
  GLAIVE_RETURN_NOT_OK(ComputeColumns(&files, *read, live, wanted, options, whole));
  return files.Commit(altered.schema, altered.made_non_null.empty());
}

// True when a row is null at the field `id` or one of its parents.
Result<bool> AnyNull(const file::Field& field, int32_t id, const ArrayPtr& array) {
  if (array->null_count() > 0) return true;
  if (field.id == id) return false;
  if (field.children.size() != 1 && field.logical_type != "struct") {
    return InternalError("column '", field.name, "' has no member to look at");
  }
  if (field.logical_type == "struct") {
    const auto& rows = static_cast<const arrow::StructArray&>(*array);
    return AnyNull(field.children[0], id, rows.field(0));
  }
  if (array->type_id() == arrow::Type::LIST) {
    GLAIVE_ASSIGN_OR_RETURN(auto items,
                            static_cast<const arrow::ListArray&>(*array).Flatten());
    return AnyNull(field.children[0], id, items);
  }
  if (array->type_id() == arrow::Type::LARGE_LIST) {
    GLAIVE_ASSIGN_OR_RETURN(auto items,
                            static_cast<const arrow::LargeListArray&>(*array).Flatten());
    return AnyNull(field.children[0], id, items);
  }
  return NotSupported("making a part of column '", field.name, "' non-nullable");
}

Status CheckNoNulls(const table::Dataset& dataset, int32_t id,
                    const ColumnChangeOptions& options) {
  const std::vector<int32_t> ids = {id};
  const file::Schema schema = dataset.schema().ProjectByIds(ids).WithBlobDescriptors();
  const auto error = [&] {
    return InvalidInput("Column \"", table::PathOfField(dataset.schema(), id),
                        "\" contains NULL values and cannot be made non-nullable");
  };
  const auto plan = ReadPlan(dataset, schema);
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(const MorselPlan morsels,
                          CutMorsels(dataset, *plan->read, MorselOptions()));
  return dataset.env().runtime->ParallelFor(
      static_cast<int64_t>(morsels.morsels.size()),
      [&](int64_t m) -> Status {
        const Morsel& morsel = morsels.morsels[static_cast<size_t>(m)];
        GLAIVE_ASSIGN_OR_RETURN(const auto rows,
                                FragmentRows::Open(dataset, *state, morsel.fragment));
        GLAIVE_ASSIGN_OR_RETURN(const RowMask mask,
                                SelectRows(rows, nullptr, morsel.start, morsel.count));
        if (mask.count == 0) return Status::OK();
        GLAIVE_ASSIGN_OR_RETURN(
            auto batch, ReadSelected(rows, *plan, morsel.start, morsel.count, mask));
        GLAIVE_ASSIGN_OR_RETURN(const bool any,
                                AnyNull(schema.fields()[0], id, batch->column(0)));
        return any ? error() : Status::OK();
      },
      options.cancel);
}

Result<table::Dataset::Ptr> Alter(const table::Dataset::Ptr& dataset,
                                  std::span<const table::ColumnAlteration> alterations,
                                  const ColumnChangeOptions& options) {
  if (std::any_of(alterations.begin(), alterations.end(),
                  [](const auto& a) { return a.type != nullptr; })) {
    GLAIVE_RETURN_NOT_OK(table::CheckNoMemWal(
        *dataset, "change a column's type on",
        "a cast takes a new field id, which rows still in the WAL cannot be matched to. "
        "Drop the MemWAL, or add a column of the new type and backfill it."));
  }
  GLAIVE_ASSIGN_OR_RETURN(const int32_t first_id, table::NextFieldId(*dataset));
  GLAIVE_ASSIGN_OR_RETURN(const auto altered,
                          table::AlterFields(dataset->schema(), alterations, first_id));
  if (!altered.made_non_null.empty()) {
    GLAIVE_RETURN_NOT_OK(table::CheckNoMemWal(
        *dataset, "make a column non-nullable on",
        "the check runs against the base table, and a write admitted into the WAL while "
        "it runs is not there to be checked. Drop the MemWAL first."));
  }
  for (int32_t id : altered.made_non_null) {
    GLAIVE_RETURN_NOT_OK(CheckNoNulls(*dataset, id, options));
  }
  if (!altered.casts.empty()) {
    GLAIVE_RETURN_NOT_OK(table::CheckNotIndexed(*dataset, altered.casts));
    return CastColumns(dataset, altered, options);
  }
  return CommitSchema(*dataset, altered.schema, altered.made_non_null.empty());
}

}  // namespace

Result<table::Dataset::Ptr> AlterColumns(
    table::Dataset::Ptr dataset, std::span<const table::ColumnAlteration> alterations,
    const ColumnChangeOptions& options) {
  return ChangeWithRetries(std::move(dataset), "alter_columns", options.cancel,
                           [&](const table::Dataset::Ptr& latest) {
                             return Alter(latest, alterations, options);
                           });
}

Result<table::Dataset::Ptr> DropColumns(table::Dataset::Ptr dataset,
                                        std::span<const std::string> paths) {
  return ChangeWithRetries(
      std::move(dataset), "drop_columns", nullptr,
      [&](const table::Dataset::Ptr& latest) -> Result<table::Dataset::Ptr> {
        GLAIVE_ASSIGN_OR_RETURN(const auto schema,
                                table::DropFields(latest->schema(), paths));
        return CommitSchema(*latest, schema, /*preserves_nullability=*/true);
      });
}

}  // namespace glaive::exec
