#include "exec/update.h"

#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "exec/assignments.h"
#include "exec/find_rows.h"
#include "exec/moved_rows.h"
#include "exec/retry.h"
#include "file/blob_v2_writer.h"
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
  file::Schema written;                   // all columns of the table
  std::shared_ptr<arrow::Schema> schema;  // of the batches for the writer
  std::vector<NewColumn> columns;         // one per column of `schema`
  std::unique_ptr<BoundColumns> kept;     // read to be written as they are
  std::unique_ptr<BoundColumns> inputs;   // read for the expressions
  MetaNeeds needs;
  std::vector<uint32_t> fields_modified;
};

void CollectIds(const file::Field& field, std::vector<uint32_t>* out) {
  out->push_back(static_cast<uint32_t>(field.id));
  for (const file::Field& child : field.children) CollectIds(child, out);
}

Result<UpdatePlan> MakePlan(const table::Dataset& dataset,
                            const std::vector<Assignment>& assignments) {
  UpdatePlan plan;
  plan.written = dataset.schema();
  const auto stored = dataset.schema().ToArrow();
  const auto shown = dataset.arrow_schema();
  GLAIVE_ASSIGN_OR_RETURN(plan.columns,
                          BindAssignments(dataset.schema(), *shown, assignments));
  arrow::FieldVector fields;
  std::vector<file::Field> kept;
  std::vector<std::string> inputs;
  for (int c = 0; c < stored->num_fields(); ++c) {
    const file::Field& field = dataset.schema().fields()[static_cast<size_t>(c)];
    const NewColumn& column = plan.columns[static_cast<size_t>(c)];
    if (column.kept()) {
      kept.push_back(field);
      fields.push_back(stored->field(c));
      continue;
    }
    CollectIds(field, &plan.fields_modified);
    // JSON is given as text; the writer brings it into its stored form.
    fields.push_back(shown->field(c));
    if (column.expression == nullptr) continue;
    for (const std::string& path : column.expression->columns()) {
      if (std::find(inputs.begin(), inputs.end(), path) == inputs.end()) {
        inputs.push_back(path);
      }
    }
    plan.needs.Add(column.expression->extra_columns());
  }
  plan.schema = arrow::schema(std::move(fields));
  plan.kept = std::make_unique<BoundColumns>(file::Schema(std::move(kept)),
                                             dataset.num_fragments());
  GLAIVE_ASSIGN_OR_RETURN(file::Schema read, dataset.schema().Project(inputs));
  plan.inputs = std::make_unique<BoundColumns>(std::move(read), dataset.num_fragments());
  return plan;
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
  int next_kept = 0;
  for (const NewColumn& column : plan.columns) {
    std::shared_ptr<arrow::Array> array;
    if (column.kept()) {
      array = kept->column(next_kept++);
    } else if (column.value != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(array, RepeatValue(column.value, rows));
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

// The rows [begin, end) of those found, of which there are some.
FoundRows PartOf(const FoundRows& found, size_t begin, size_t end) {
  FoundRows part;
  part.fragment = found.fragment;
  part.offsets.assign(found.offsets.begin() + static_cast<std::ptrdiff_t>(begin),
                      found.offsets.begin() + static_cast<std::ptrdiff_t>(end));
  part.start = part.offsets.front();
  part.count = int64_t{part.offsets.back()} + 1 - part.start;
  return part;
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
      pieces.push_back(PartOf(range, at, std::min(range.offsets.size(), at + most)));
    }
  }
  return pieces;
}

// Pieces cut further, so that the blobs of one need little memory.
Result<std::vector<FoundRows>> CutByKeptBlobs(const table::Dataset& dataset,
                                              const SnapshotState& state,
                                              const UpdatePlan& plan,
                                              std::vector<FoundRows> pieces) {
  std::vector<file::Field> fields;
  for (const file::Field& field : plan.kept->written().fields()) {
    if (HoldsBlobs(field)) fields.push_back(field);
  }
  if (fields.empty()) return pieces;
  const BoundColumns blobs(file::Schema(std::move(fields)), dataset.num_fragments());
  std::vector<FoundRows> out;
  for (const FoundRows& piece : pieces) {
    GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                            FragmentRows::Open(dataset, state, piece.fragment));
    const std::vector<int64_t> rows(piece.offsets.begin(), piece.offsets.end());
    GLAIVE_ASSIGN_OR_RETURN(const auto batch, fragment.Take(blobs, rows));
    size_t begin = 0;
    for (const int64_t end : CutByBlobs(blobs.written(), *batch)) {
      out.push_back(PartOf(piece, begin, static_cast<size_t>(end)));
      begin = static_cast<size_t>(end);
    }
  }
  return out;
}

Status WriteRows(const table::Dataset& dataset, const UpdatePlan& plan,
                 std::vector<FoundRows> found, CancelToken* cancel,
                 table::FragmentWriter* writer,
                 std::vector<lance::table::DataFragment>* fragments) {
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(found, CutForReading(dataset, *state, plan, std::move(found)));
  GLAIVE_ASSIGN_OR_RETURN(found, CutByKeptBlobs(dataset, *state, plan, std::move(found)));
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
  for (const file::Field& field : plan.kept->written().fields()) {
    if (HoldsBlobs(field)) limits.outside_blob_fields.push_back(field.id);
  }
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
