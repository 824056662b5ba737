#include "exec/update.h"

#include <algorithm>
#include <set>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "exec/find_rows.h"
#include "exec/moved_rows.h"
#include "exec/retry.h"
#include "expr/predicate.h"
#include "format/table.pb.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/fragment_writer.h"

namespace glaive::exec {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Bytes of rows that one task reads at a time; a few tasks are in flight.
constexpr int64_t kTaskBytes = int64_t{4} << 20;

// How the new rows are made from the old ones, resolved against one snapshot.
struct UpdatePlan {
  struct Column {
    int kept = -1;  // >= 0: this column of the batch of kept columns
    std::shared_ptr<const expr::ScalarExpr> expression;
    std::shared_ptr<arrow::Array> value;
  };
  file::Schema written;                   // all columns of the table
  std::shared_ptr<arrow::Schema> schema;  // of the batches for the writer
  std::vector<Column> columns;            // one per column of `schema`
  std::unique_ptr<BoundColumns> kept;     // read to be written as they are
  std::unique_ptr<BoundColumns> inputs;   // read for the expressions
  MetaNeeds needs;
  std::vector<uint32_t> fields_modified;
};

void CollectIds(const file::Field& field, std::vector<uint32_t>* out) {
  out->push_back(static_cast<uint32_t>(field.id));
  for (const file::Field& child : field.children) CollectIds(child, out);
}

Status CheckAssignments(const table::Dataset& dataset,
                        const std::vector<Assignment>& assignments) {
  if (assignments.empty()) {
    return InvalidInput(
        "Invalid input, at least one column must be specified in an update");
  }
  std::set<std::string> seen;
  for (const Assignment& assignment : assignments) {
    if (!seen.insert(assignment.column).second) {
      return InvalidInput("Invalid input, column '", assignment.column,
                          "' is given two values in one update");
    }
    if (dataset.schema().FindTopLevel(assignment.column) != nullptr) continue;
    if (auto path = file::ParseFieldPath(assignment.column);
        path.ok() && path->size() > 1 && dataset.schema().FindByPath(*path) != nullptr) {
      return NotSupported("updating the member '", assignment.column,
                          "' of a struct: give the whole column '", (*path)[0],
                          "' a value");
    }
    std::string known;
    for (const auto& field : dataset.schema().fields()) {
      known += (known.empty() ? "" : ", ") + field.name;
    }
    return InvalidInput("Invalid input, Column '", assignment.column,
                        "' does not exist in dataset schema; there are: ", known);
  }
  return Status::OK();
}

Result<UpdatePlan> MakePlan(const table::Dataset& dataset,
                            const std::vector<Assignment>& assignments) {
  GLAIVE_RETURN_NOT_OK(CheckAssignments(dataset, assignments));
  UpdatePlan plan;
  plan.written = dataset.schema();
  const auto stored = dataset.schema().ToArrow();
  const auto shown = dataset.arrow_schema();
  arrow::FieldVector fields;
  std::vector<file::Field> kept;
  std::vector<std::string> inputs;
  for (int c = 0; c < stored->num_fields(); ++c) {
    const file::Field& field = dataset.schema().fields()[static_cast<size_t>(c)];
    const auto assignment =
        std::find_if(assignments.begin(), assignments.end(),
                     [&](const Assignment& a) { return a.column == field.name; });
    UpdatePlan::Column column;
    if (assignment == assignments.end()) {
      column.kept = static_cast<int>(kept.size());
      kept.push_back(field);
      fields.push_back(stored->field(c));
      plan.columns.push_back(std::move(column));
      continue;
    }
    CollectIds(field, &plan.fields_modified);
    // JSON is given as text; the writer brings it into its stored form.
    fields.push_back(shown->field(c));
    const auto& type = shown->field(c)->type();
    if (assignment->value != nullptr) {
      column.value = assignment->value;
      if (!column.value->type()->Equals(*type)) {
        auto cast = arrow::compute::Cast(*column.value, type);
        if (!cast.ok()) {
          return InvalidInput("Invalid input, the value for column '", field.name,
                              "' is of type ", column.value->type()->ToString(), ", not ",
                              type->ToString());
        }
        column.value = std::move(*cast);
      }
      if (column.value->length() != 1) {
        return InvalidInput("Invalid input, column '", field.name,
                            "' needs one value, not ", column.value->length());
      }
    } else {
      auto expression =
          expr::ScalarExpr::MakeCastTo(assignment->sql, dataset.schema(), type);
      if (!expression.ok()) {
        return WithContext(expression.status(), "column '" + field.name + "'");
      }
      column.expression = std::move(*expression);
      for (const std::string& path : column.expression->columns()) {
        if (std::find(inputs.begin(), inputs.end(), path) == inputs.end()) {
          inputs.push_back(path);
        }
      }
      plan.needs.Add(column.expression->extra_columns());
    }
    plan.columns.push_back(std::move(column));
  }
  plan.schema = arrow::schema(std::move(fields));
  plan.kept = std::make_unique<BoundColumns>(file::Schema(std::move(kept)),
                                             dataset.num_fragments());
  GLAIVE_ASSIGN_OR_RETURN(file::Schema read, dataset.schema().Project(inputs));
  plan.inputs =
      std::make_unique<BoundColumns>(read.WithBlobDescriptors(), dataset.num_fragments());
  return plan;
}

// `value`, which has one row, `rows` times.
Result<std::shared_ptr<arrow::Array>> Repeat(const std::shared_ptr<arrow::Array>& value,
                                             int64_t rows) {
  GLAIVE_ASSIGN_OR_RETURN(auto zeros, arrow::AllocateBuffer(rows * 8));
  std::fill_n(zeros->mutable_data(), rows * 8, uint8_t{0});
  const arrow::Int64Array picks(rows, std::move(zeros));
  return arrow::compute::Take(*value, picks,
                              arrow::compute::TakeOptions::NoBoundsCheck());
}

// What the expressions of a plan see of the chosen rows.
Result<BatchPtr> ReadInputs(const UpdatePlan& plan, const FragmentRows& fragment,
                            const std::vector<int64_t>& offsets) {
  const auto rows = static_cast<int64_t>(offsets.size());
  GLAIVE_ASSIGN_OR_RETURN(auto read, fragment.Take(*plan.inputs, offsets));
  GLAIVE_ASSIGN_OR_RETURN(const MetaColumns meta,
                          fragment.MetaOfRows(plan.needs, offsets));
  if (read == nullptr) {
    read = arrow::RecordBatch::Make(arrow::schema(arrow::FieldVector()), rows,
                                    arrow::ArrayVector());
  }
  for (const char* name : {kRowId, kRowAddress, kRowOffset}) {
    const auto* values = meta.Find(name);
    if (values == nullptr || *values == nullptr) continue;
    GLAIVE_ASSIGN_OR_RETURN(
        read, read->AddColumn(read->num_columns(), arrow::field(name, arrow::uint64()),
                              *values));
  }
  return read;
}

Result<BatchPtr> MakeRows(const UpdatePlan& plan, const FragmentRows& fragment,
                          const FoundRows& found) {
  const auto rows = static_cast<int64_t>(found.offsets.size());
  GLAIVE_ASSIGN_OR_RETURN(
      const BatchPtr kept,
      ReadToRewrite(fragment, *plan.kept, found.start, found.count, found.offsets));
  BatchPtr inputs;
  arrow::ArrayVector arrays;
  for (const UpdatePlan::Column& column : plan.columns) {
    std::shared_ptr<arrow::Array> array;
    if (column.kept >= 0) {
      array = kept->column(column.kept);
    } else if (column.value != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(array, Repeat(column.value, rows));
    } else {
      if (inputs == nullptr) {
        const std::vector<int64_t> offsets(found.offsets.begin(), found.offsets.end());
        GLAIVE_ASSIGN_OR_RETURN(inputs, ReadInputs(plan, fragment, offsets));
      }
      GLAIVE_ASSIGN_OR_RETURN(array, column.expression->Evaluate(*inputs));
    }
    arrays.push_back(std::move(array));
  }
  return arrow::RecordBatch::Make(plan.schema, rows, std::move(arrays));
}

// Ranges cut so that one holds about kTaskBytes of rows.
Result<std::vector<FoundRows>> CutForReading(const table::Dataset& dataset,
                                             const SnapshotState& state,
                                             const UpdatePlan& plan,
                                             std::vector<FoundRows> found) {
  std::vector<FoundRows> pieces;
  for (FoundRows& range : found) {
    GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                            FragmentRows::Open(dataset, state, range.fragment));
    int64_t row_bytes = 1;
    if (!plan.kept->empty()) {
      GLAIVE_ASSIGN_OR_RETURN(auto projection,
                              plan.kept->Bind(dataset, range.fragment, *fragment.reader));
      row_bytes = std::max<int64_t>(1, fragment.reader->EstimateRowBytes(*projection));
    }
    const auto most = static_cast<size_t>(std::max<int64_t>(1, kTaskBytes / row_bytes));
    if (range.offsets.size() <= most) {
      pieces.push_back(std::move(range));
      continue;
    }
    for (size_t at = 0; at < range.offsets.size(); at += most) {
      const size_t end = std::min(range.offsets.size(), at + most);
      FoundRows piece;
      piece.fragment = range.fragment;
      piece.start = range.offsets[at];
      piece.count = int64_t{range.offsets[end - 1]} + 1 - piece.start;
      piece.offsets.assign(range.offsets.begin() + static_cast<std::ptrdiff_t>(at),
                           range.offsets.begin() + static_cast<std::ptrdiff_t>(end));
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

Status WriteRows(const table::Dataset& dataset, const UpdatePlan& plan,
                 std::vector<FoundRows> found, CancelToken* cancel,
                 table::FragmentWriter* writer,
                 std::vector<lance::table::DataFragment>* fragments) {
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(found, CutForReading(dataset, *state, plan, std::move(found)));
  MovedIdentity identity(dataset);
  Runtime& runtime = *dataset.env().runtime;
  const auto window = static_cast<size_t>(runtime.num_threads()) * 2;
  for (size_t next = 0; next < found.size(); next += window) {
    if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
    const size_t end = std::min(found.size(), next + window);
    std::vector<BatchPtr> batches(end - next);
    GLAIVE_RETURN_NOT_OK(runtime.ParallelFor(
        static_cast<int64_t>(batches.size()),
        [&](int64_t i) -> Status {
          const FoundRows& range = found[next + static_cast<size_t>(i)];
          GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                                  FragmentRows::Open(dataset, *state, range.fragment));
          GLAIVE_ASSIGN_OR_RETURN(batches[static_cast<size_t>(i)],
                                  MakeRows(plan, fragment, range));
          return Status::OK();
        },
        cancel));
    for (size_t i = 0; i < batches.size(); ++i) {
      const FoundRows& range = found[next + i];
      GLAIVE_RETURN_NOT_OK(writer->Write(*batches[i]));
      GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                              FragmentRows::Open(dataset, *state, range.fragment));
      GLAIVE_RETURN_NOT_OK(identity.Add(fragment, range.offsets));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(*fragments, writer->Finish(table::LastFile::kLeftToCommit));
  return identity.Stamp(fragments);
}

Result<UpdateResult> UpdateOnce(const table::Dataset& dataset,
                                const UpdateOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const UpdatePlan plan, MakePlan(dataset, options.assignments));
  GLAIVE_ASSIGN_OR_RETURN(auto found, FindRows(dataset, options.where, options.cancel));
  UpdateResult result;
  for (const FoundRows& range : found) {
    result.num_updated_rows += static_cast<int64_t>(range.offsets.size());
  }
  table::RowUpdate update;
  update.deleted = ToDeletedRows(dataset, found);
  update.fields_modified = plan.fields_modified;
  table::FragmentWriterOptions limits;
  limits.version = options.file_version.value_or(dataset.file_version());
  table::FragmentWriter writer(dataset.env(), plan.written, limits);
  if (!found.empty()) {
    GLAIVE_RETURN_NOT_OK(WriteRows(dataset, plan, std::move(found), options.cancel,
                                   &writer, &update.new_fragments));
  }
  table::CommitOutcome outcome = table::CommitOutcome::kNotCommitted;
  auto committed = dataset.CommitUpdate(update, &outcome);
  if (outcome != table::CommitOutcome::kNotCommitted) writer.Keep();
  GLAIVE_ASSIGN_OR_RETURN(result.dataset, std::move(committed));
  return result;
}

}  // namespace

Result<UpdateResult> Update(table::Dataset::Ptr dataset, const UpdateOptions& options) {
  return RunWithRetries(std::move(dataset), options.retry, "update", options.cancel,
                        [&](const table::Dataset::Ptr& snapshot, int) {
                          return UpdateOnce(*snapshot, options);
                        });
}

}  // namespace glaive::exec
