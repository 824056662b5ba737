#include "exec/add_columns.h"

#include <algorithm>
#include <optional>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "exec/plan.h"
#include "exec/scan.h"
#include "expr/nullability.h"
#include "file/blob_v2_writer.h"
#include "file/version.h"
#include "format/table.pb.h"
#include "runtime/cancel.h"
#include "table/deletion_vector.h"
#include "table/mem_wal_entry.h"
#include "table/schema_change.h"

namespace glaive::exec {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Readers of files before version 2.2 expect a struct's members in one file.
Status CheckNewMembers(const table::Dataset& dataset, const file::Schema& added) {
  if (dataset.file_version() >= file::FileVersion::k2_2) return Status::OK();
  for (const file::Field& field : added.fields()) {
    if (dataset.schema().FindTopLevel(field.name) == nullptr) continue;
    return InvalidInput("Column ", field.name,
                        " is a struct col, add sub column is not supported in Lance "
                        "file version ",
                        file::FileVersionName(dataset.file_version()));
  }
  return Status::OK();
}

Result<table::AddedFields> PrepareFields(const table::Dataset& dataset,
                                         const arrow::Schema& columns) {
  GLAIVE_ASSIGN_OR_RETURN(const int32_t first_id, table::NextFieldId(dataset));
  GLAIVE_ASSIGN_OR_RETURN(auto fields,
                          table::AddFields(dataset.schema(), columns, first_id));
  GLAIVE_RETURN_NOT_OK(CheckNewMembers(dataset, fields.added));
  GLAIVE_RETURN_NOT_OK(table::CheckPrimaryKey(fields.schema));
  return fields;
}

Status CheckAllNull(const std::vector<std::shared_ptr<arrow::Field>>& fields,
                    const std::vector<file::Field>& known) {
  for (const auto& field : fields) {
    const auto there = std::find_if(known.begin(), known.end(), [&](const auto& f) {
      return f.name == field->name();
    });
    if (there != known.end() && field->type()->id() == arrow::Type::STRUCT) {
      GLAIVE_RETURN_NOT_OK(CheckAllNull(field->type()->fields(), there->children));
    } else if (!field->nullable()) {
      return InvalidInput("All-null columns must be nullable, but field '", field->name(),
                          "' is not.");
    }
  }
  return Status::OK();
}

// Whether the column that `sql` makes can be null.
bool NeverNull(const table::Dataset& dataset, const OutputPlan& plan, size_t column,
               const std::string& sql) {
  const OutputPlan::Column& source = plan.columns[column];
  if (source.read_index >= 0) {
    return !plan.read->arrow_schema()->field(source.read_index)->nullable();
  }
  if (source.expression == nullptr) return true;  // a meta column
  auto never = expr::NeverNull(sql, dataset.schema());
  if (never.ok() && *never) return true;
  if (!source.expression->columns().empty() ||
      !source.expression->extra_columns().empty()) {
    return false;
  }
  // A constant.
  const auto row = arrow::RecordBatch::Make(arrow::schema(arrow::FieldVector{}), 1,
                                            arrow::ArrayVector{});
  auto value = source.expression->Evaluate(*row);
  return value.ok() && (*value)->null_count() == 0 &&
         (*value)->type_id() != arrow::Type::NA;
}

// What a column copies is values: its key, its encoding and its description stay.
std::shared_ptr<arrow::Field> WithoutDescription(
    const std::shared_ptr<arrow::Field>& field) {
  if (field->metadata() == nullptr) return field;
  std::vector<std::string> keys, values;
  for (int64_t i = 0; i < field->metadata()->size(); ++i) {
    if (!field->metadata()->key(i).starts_with("ARROW:extension:")) continue;
    keys.push_back(field->metadata()->key(i));
    values.push_back(field->metadata()->value(i));
  }
  return field->WithMetadata(
      keys.empty() ? nullptr
                   : arrow::key_value_metadata(std::move(keys), std::move(values)));
}

Status CheckCanCompute(const table::Dataset& dataset) {
  return table::CheckNoMemWal(
      dataset, "add a computed column to",
      "rows still in the WAL would read null for it. Add it as all-nulls, or drop the "
      "MemWAL first.");
}

// A row's id and address are no values that a column may keep: they belong to the scan.
Status CheckNoMetaColumns(const table::Dataset& dataset, const OutputPlan& plan) {
  for (const OutputPlan::Column& column : plan.columns) {
    std::string meta = column.meta;
    if (column.expression != nullptr && !column.expression->extra_columns().empty()) {
      meta = column.expression->extra_columns().front();
    }
    if (meta.empty()) continue;
    std::string names;
    for (const file::Field& field : dataset.schema().fields()) {
      names += (names.empty() ? "" : ", ") + field.name;
    }
    return InvalidInput("No field named ", meta, ". Valid fields are ", names, ".");
  }
  return Status::OK();
}

Result<table::Dataset::Ptr> AddComputed(
    const table::Dataset::Ptr& dataset,
    const std::vector<std::pair<std::string, std::string>>& expressions,
    const ColumnChangeOptions& options) {
  GLAIVE_RETURN_NOT_OK(CheckCanCompute(*dataset));
  Selection select;
  select.columns = expressions;
  GLAIVE_ASSIGN_OR_RETURN(auto plan,
                          SnapshotState::Of(*dataset)->Output(*dataset, select));
  GLAIVE_RETURN_NOT_OK(CheckNoMetaColumns(*dataset, *plan));
  arrow::FieldVector fields;
  for (size_t i = 0; i < plan->columns.size(); ++i) {
    auto field = plan->schema->field(static_cast<int>(i));
    field = WithoutDescription(field);
    fields.push_back(
        field->WithNullable(!NeverNull(*dataset, *plan, i, expressions[i].second)));
  }
  for (const auto& [name, sql] : expressions) {
    const file::Field* source = table::FindField(dataset->schema(), sql);
    if (source != nullptr && source->is_blob()) {
      return NotSupported("copying the blob column '", sql, "' into a new column");
    }
  }
  const auto columns = arrow::schema(std::move(fields));
  for (const auto& field : columns->fields()) {
    if (dataset->schema().FindTopLevel(field->name()) != nullptr) {
      return InvalidInput("Column ", field->name(), " already exists in the dataset");
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto prepared, PrepareFields(*dataset, *columns));
  ColumnFiles files(dataset, std::move(prepared.added), options);
  if (!expressions.empty()) {
    const auto rename = [&](const BatchPtr& live) -> Result<BatchPtr> {
      return arrow::RecordBatch::Make(columns, live->num_rows(), live->columns());
    };
    GLAIVE_RETURN_NOT_OK(ComputeColumns(&files, *plan, rename, nullptr, options));
  }
  return files.Commit(prepared.schema);
}

// The rows of a stream, in pieces of a size that is asked for.
class RowStream {
 public:
  RowStream(arrow::RecordBatchReader& reader, CancelToken* cancel)
      : reader_(reader), cancel_(cancel) {}

  // Between 1 and `most` rows; null at the end.
  Result<BatchPtr> Next(int64_t most) {
    while (batch_ == nullptr || position_ == batch_->num_rows()) {
      if (cancel_ != nullptr) GLAIVE_RETURN_NOT_OK(cancel_->CheckOnCaller());
      position_ = 0;
      GLAIVE_RETURN_NOT_OK(reader_.ReadNext(&batch_));
      if (batch_ == nullptr) return batch_;
    }
    const int64_t count = std::min(most, batch_->num_rows() - position_);
    auto piece = batch_->Slice(position_, count);
    position_ += count;
    return piece;
  }

 private:
  arrow::RecordBatchReader& reader_;
  CancelToken* const cancel_;
  BatchPtr batch_;
  int64_t position_ = 0;
};

Status FillFromStream(ColumnFiles* files, int fragment, RowStream* stream) {
  const table::Dataset& dataset = files->dataset();
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(const auto rows, FragmentRows::Open(dataset, *state, fragment));
  const int64_t physical = dataset.physical_rows(fragment);
  const table::DeletionVector* deletions = rows.deletions;
  const int64_t live = physical - (deletions == nullptr ? 0 : deletions->size());
  GLAIVE_ASSIGN_OR_RETURN(auto writer, files->Open(fragment));
  if (live == 0) {
    GLAIVE_RETURN_NOT_OK(writer->WriteLive(nullptr, RowMask{}, physical));
  }
  int64_t seen = 0;
  int64_t written = 0;
  while (seen < live) {
    GLAIVE_ASSIGN_OR_RETURN(auto piece, stream->Next(live - seen));
    if (piece == nullptr) {
      return InvalidInput("Stream ended before producing values for all rows in dataset");
    }
    seen += piece->num_rows();
    // Deleted rows behind the piece go with it.
    int64_t end = seen;
    if (seen == live) {
      end = physical;
    } else if (deletions != nullptr) {
      end = deletions->SelectLive(seen, physical);
    }
    GLAIVE_ASSIGN_OR_RETURN(const RowMask mask,
                            SelectRows(rows, nullptr, written, end - written));
    GLAIVE_RETURN_NOT_OK(writer->WriteLive(piece, mask, end - written));
    written = end;
  }
  return writer->Finish();
}

}  // namespace

Result<table::Dataset::Ptr> AddColumns(
    table::Dataset::Ptr dataset,
    const std::vector<std::pair<std::string, std::string>>& expressions,
    const ColumnChangeOptions& options) {
  return ChangeWithRetries(std::move(dataset), "add_columns", options.cancel,
                           [&](const table::Dataset::Ptr& latest) {
                             return AddComputed(latest, expressions, options);
                           });
}

Result<table::Dataset::Ptr> AddNullColumns(table::Dataset::Ptr dataset,
                                           const arrow::Schema& columns) {
  return ChangeWithRetries(
      std::move(dataset), "add_columns", nullptr,
      [&](const table::Dataset::Ptr& latest) -> Result<table::Dataset::Ptr> {
        GLAIVE_RETURN_NOT_OK(CheckAllNull(columns.fields(), latest->schema().fields()));
        GLAIVE_ASSIGN_OR_RETURN(auto prepared, PrepareFields(*latest, columns));
        ColumnFiles none(latest, file::Schema());
        return none.Commit(prepared.schema);
      });
}

Result<table::Dataset::Ptr> AddColumnsFromReader(table::Dataset::Ptr dataset,
                                                 arrow::RecordBatchReader& data,
                                                 const ColumnChangeOptions& options) {
  GLAIVE_RETURN_NOT_OK(CheckCanCompute(*dataset));
  GLAIVE_ASSIGN_OR_RETURN(auto prepared, PrepareFields(*dataset, *data.schema()));
  ColumnFiles files(dataset, std::move(prepared.added), options);
  RowStream stream(data, options.cancel);
  if (!files.columns().fields().empty()) {
    for (int i = 0; i < dataset->num_fragments(); ++i) {
      if (dataset->physical_rows(i) == 0) continue;
      GLAIVE_RETURN_NOT_OK(FillFromStream(&files, i, &stream));
    }
    GLAIVE_ASSIGN_OR_RETURN(auto rest, stream.Next(1));
    if (rest != nullptr) {
      return InvalidInput("Stream produced more values than expected for dataset");
    }
  }
  return files.Commit(prepared.schema);
}

FragmentWithColumns::FragmentWithColumns() = default;
FragmentWithColumns::~FragmentWithColumns() = default;
FragmentWithColumns::FragmentWithColumns(FragmentWithColumns&&) noexcept = default;
FragmentWithColumns& FragmentWithColumns::operator=(FragmentWithColumns&&) noexcept =
    default;

namespace {

constexpr int32_t kTombstone = -2;  // a column of a file that another file has now

void CollectIds(const file::Field& field, std::vector<int32_t>* ids) {
  ids->push_back(field.id);
  for (const file::Field& child : field.children) CollectIds(child, ids);
}

// The fields of the table that `data` holds new values for.
Result<file::Schema> ReplacedFields(const table::Dataset& dataset,
                                    const arrow::Schema& data) {
  std::vector<int32_t> ids;
  for (const auto& field : data.fields()) {
    const file::Field* known = dataset.schema().FindTopLevel(field->name());
    if (known == nullptr) {
      return InvalidInput("Invalid input, there is no column '", field->name(),
                          "' to update");
    }
    if (known->is_blob() || file::HoldsBlobsV2(*known)) {
      return NotSupported("updating the blob column '", field->name(), "' of a fragment");
    }
    ids.push_back(known->id);
  }
  return dataset.schema().ProjectByIds(ids);
}

// `file` without the columns of `replaced`; true when columns are left.
bool DropFields(const std::vector<int32_t>& replaced, lance::table::DataFile* file) {
  bool left = false;
  for (int32_t& id : *file->mutable_fields()) {
    if (std::find(replaced.begin(), replaced.end(), id) != replaced.end()) {
      id = kTombstone;
    }
    left |= id != kTombstone;
  }
  return left;
}

}  // namespace

Result<FragmentWithColumns> WriteFragmentColumns(const table::Dataset::Ptr& dataset,
                                                 int fragment,
                                                 arrow::RecordBatchReader& data,
                                                 bool replace,
                                                 const ColumnChangeOptions& options) {
  GLAIVE_RETURN_NOT_OK(CheckCanCompute(*dataset));
  FragmentWithColumns out;
  file::Schema written;
  if (replace) {
    GLAIVE_ASSIGN_OR_RETURN(written, ReplacedFields(*dataset, *data.schema()));
    out.schema = dataset->schema();
    for (const file::Field& field : written.fields()) CollectIds(field, &out.field_ids);
  } else {
    GLAIVE_ASSIGN_OR_RETURN(auto prepared, PrepareFields(*dataset, *data.schema()));
    written = std::move(prepared.added);
    out.schema = std::move(prepared.schema);
    for (const file::Field& field : written.fields()) CollectIds(field, &out.field_ids);
  }
  out.fragment =
      std::make_unique<lance::table::DataFragment>(dataset->fragment(fragment));
  ColumnFiles files(dataset, std::move(written), options);
  RowStream stream(data, options.cancel);
  GLAIVE_RETURN_NOT_OK(FillFromStream(&files, fragment, &stream));
  GLAIVE_ASSIGN_OR_RETURN(auto rest, stream.Next(1));
  if (rest != nullptr) {
    return InvalidInput("Stream produced more values than expected for fragment ",
                        dataset->fragment_id(fragment));
  }
  if (replace) {
    auto* old = out.fragment->mutable_files();
    for (int k = old->size() - 1; k >= 0; --k) {
      if (!DropFields(out.field_ids, old->Mutable(k))) old->DeleteSubrange(k, 1);
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(*out.fragment->add_files(), files.Keep(fragment));
  return out;
}

}  // namespace glaive::exec
