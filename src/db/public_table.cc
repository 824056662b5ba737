// glaive::Connect, glaive::Connection and glaive::Table: the public face of db/.
#include <arrow/api.h>

#include "db/connection.h"
#include "db/public_query.h"
#include "db/read_source.h"
#include "exec/scan.h"
#include "exec/select_columns.h"
#include "glaive/glaive.h"
#include "runtime/process_worker.h"

namespace glaive {
namespace {

db::CreateTableOptions ToOptions(CreateMode mode) {
  db::CreateTableOptions options;
  switch (mode) {
    case CreateMode::kCreate:
      options.mode = db::CreateMode::kCreate;
      break;
    case CreateMode::kOverwrite:
      options.mode = db::CreateMode::kOverwrite;
      break;
    case CreateMode::kExistOk:
      options.mode = db::CreateMode::kExistOk;
      break;
  }
  return options;
}

Result<Table> Wrap(Result<std::shared_ptr<db::Table>> table) {
  GLAIVE_ASSIGN_OR_RETURN(auto impl, std::move(table));
  return Table(std::move(impl));
}

Result<std::shared_ptr<arrow::Array>> OneVector(std::vector<float> vector) {
  if (vector.empty()) {
    return InvalidInput(
        "Invalid input, a query vector must be a non-empty list of numbers");
  }
  const auto dimension = static_cast<int32_t>(vector.size());
  arrow::FloatBuilder builder;
  GLAIVE_RETURN_NOT_OK(builder.AppendValues(vector));
  GLAIVE_ASSIGN_OR_RETURN(auto values, builder.Finish());
  return arrow::FixedSizeListArray::FromArrays(values, dimension);
}

Result<exec::Selection> Select(const table::Dataset& dataset,
                               const std::vector<std::string>& columns) {
  if (columns.empty()) return exec::Selection{};
  return exec::SelectColumns(dataset.schema(), columns);
}

}  // namespace

Result<Connection> Connect(const std::string& uri, const ConnectOptions& options) {
  db::ConnectionOptions inner;
  inner.read_consistency = options.read_consistency_interval;
  inner.storage_options = options.storage_options;
  GLAIVE_ASSIGN_OR_RETURN(auto impl, db::Connection::Open(uri, std::move(inner)));
  return Connection(std::move(impl));
}

Connection::Connection(std::shared_ptr<db::Connection> impl) : impl_(std::move(impl)) {}

const std::string& Connection::uri() const { return impl_->uri(); }

Result<std::vector<std::string>> Connection::TableNames() const {
  return impl_->TableNames(std::nullopt, std::nullopt);
}

Result<Table> Connection::OpenTable(const std::string& name) const {
  return Wrap(impl_->OpenTable(name));
}

Result<Table> Connection::CreateTable(const std::string& name,
                                      std::shared_ptr<arrow::RecordBatchReader> data,
                                      CreateMode mode) const {
  return Wrap(impl_->CreateTable(name, *data, ToOptions(mode)));
}

Result<Table> Connection::CreateTable(const std::string& name,
                                      const std::shared_ptr<arrow::Table>& data,
                                      CreateMode mode) const {
  arrow::TableBatchReader reader(data);
  return Wrap(impl_->CreateTable(name, reader, ToOptions(mode)));
}

Result<Table> Connection::CreateTable(const std::string& name,
                                      const std::shared_ptr<arrow::Schema>& schema,
                                      CreateMode mode) const {
  return Wrap(impl_->CreateEmptyTable(name, *schema, ToOptions(mode)));
}

Status Connection::DropTable(const std::string& name) const {
  return impl_->DropTable(name, /*ignore_missing=*/false);
}

Status Connection::RenameTable(const std::string& from, const std::string& to) const {
  return impl_->RenameTable(from, to);
}

Table::Table(std::shared_ptr<db::Table> impl) : impl_(std::move(impl)) {}

const std::string& Table::name() const { return impl_->name(); }
const std::string& Table::uri() const { return impl_->uri(); }

Result<int64_t> Table::version() const {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  return dataset->version();
}

Result<std::shared_ptr<arrow::Schema>> Table::schema() const {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  return dataset->arrow_schema();
}

std::vector<std::string> Table::TakeWarnings() { return impl_->TakeWarnings(); }

Result<int64_t> Table::CountRows(const std::string& predicate) const {
  GLAIVE_ASSIGN_OR_RETURN(const auto source, impl_->Source(std::nullopt));
  return db::CountRows(source, predicate);
}

Result<int64_t> Table::Add(std::shared_ptr<arrow::RecordBatchReader> data) {
  return impl_->Add(std::move(data), {});
}

Result<int64_t> Table::Add(const std::shared_ptr<arrow::Table>& data) {
  return impl_->Add(std::make_shared<arrow::TableBatchReader>(data), {});
}

Result<int64_t> Table::Overwrite(std::shared_ptr<arrow::RecordBatchReader> data) {
  db::AddOptions options;
  options.overwrite = true;
  return impl_->Add(std::move(data), options);
}

Result<DeleteResult> Table::Delete(const std::string& predicate) {
  GLAIVE_ASSIGN_OR_RETURN(auto outcome, impl_->Delete(predicate));
  return DeleteResult{outcome.num_deleted_rows, outcome.version};
}

Query Table::Scan() const {
  auto state = std::make_shared<Query::State>();
  state->table = impl_;
  return Query(std::move(state));
}

VectorQuery Table::Search(std::vector<float> vector) const {
  auto state = std::make_shared<VectorQuery::State>();
  state->table = impl_;
  state->queries = OneVector(std::move(vector));
  return VectorQuery(std::move(state));
}

VectorQuery Table::Search(std::shared_ptr<arrow::Array> vectors) const {
  auto state = std::make_shared<VectorQuery::State>();
  state->table = impl_;
  state->queries = std::move(vectors);
  return VectorQuery(std::move(state));
}

Result<std::shared_ptr<arrow::Table>> Table::TakeOffsets(
    const std::vector<int64_t>& offsets, const std::vector<std::string>& columns) const {
  GLAIVE_ASSIGN_OR_RETURN(const auto source, impl_->Source(std::nullopt));
  GLAIVE_ASSIGN_OR_RETURN(auto selection, Select(*source.base, columns));
  return db::TakeOffsets(source, offsets, selection);
}

Result<std::shared_ptr<arrow::Table>> Table::TakeRowIds(
    const std::vector<uint64_t>& row_ids, const std::vector<std::string>& columns) const {
  GLAIVE_ASSIGN_OR_RETURN(const auto source, impl_->Source(std::nullopt));
  GLAIVE_ASSIGN_OR_RETURN(auto selection, Select(*source.base, columns));
  return db::TakeRowIds(source, row_ids, selection);
}

Result<std::vector<Version>> Table::ListVersions() const {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  GLAIVE_ASSIGN_OR_RETURN(auto versions, dataset->ListVersions());
  std::vector<Version> out;
  out.reserve(versions.size());
  for (auto& v : versions)
    out.push_back({v.version, v.timestamp_us, std::move(v.metadata)});
  return out;
}

Status Table::Checkout(int64_t version) { return impl_->Checkout(version); }
Status Table::Checkout(const std::string& tag) { return impl_->Checkout(tag); }
Status Table::CheckoutLatest() { return impl_->CheckoutLatest(); }
Result<int64_t> Table::Restore() { return impl_->Restore(std::nullopt); }

Result<std::map<std::string, int64_t>> Table::ListTags() const {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  GLAIVE_ASSIGN_OR_RETURN(auto tags, dataset->ListTags());
  std::map<std::string, int64_t> out;
  for (const auto& [name, info] : tags) out[name] = info.version;
  return out;
}

Status Table::CreateTag(const std::string& tag, int64_t version) {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  return dataset->CreateTag(tag, version);
}

Status Table::UpdateTag(const std::string& tag, int64_t version) {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  return dataset->UpdateTag(tag, version);
}

Status Table::DeleteTag(const std::string& tag) {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, impl_->Snapshot());
  return dataset->DeleteTag(tag);
}

void StopBackgroundWork() { StopProcessWorkers(); }

}  // namespace glaive
