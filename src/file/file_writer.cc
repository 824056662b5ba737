#include "file/file_writer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/blob_v2_writer.h"
#include "file/column_writer.h"
#include "file/json_columns.h"
#include "file/page_sink.h"
#include "file/write_cast.h"
#include "format/file.pb.h"
#include "format/file2.pb.h"
#include "io/object_store.h"

namespace glaive::file {
namespace {

constexpr int64_t kMaxBatchRows = (int64_t{1} << 32) - 1;

void PutU64(uint64_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

struct EncodedRows {
  int64_t num_rows = 0;
  // By column of the file.
  std::vector<std::vector<encoding::EncodedPage>> pages;
};

struct FileWriter::Impl {
  struct Column {
    std::vector<std::unique_ptr<ColumnWriter>> writers;
    bool blobs = false;    // holds lance.blob.v2
    bool outside = false;  // whose bytes may lie outside of the table
  };

  Schema schema;
  Schema stored;  // with descriptors in place of such blobs
  std::unique_ptr<BlobV2Writer> blobs;
  FileWriterOptions options;
  std::string path;
  std::unique_ptr<io::ObjectWriter> writer;
  std::unique_ptr<PageSink> sink;
  std::vector<Column> columns;  // one per top-level field
  bool has_json = false;
  int64_t num_rows = 0;
  std::vector<BufferLocation> global_buffers;  // index 1 and up
  std::map<std::string, std::string> extra_metadata;
  Status failure;  // of an earlier write: pages may be missing
  bool done = false;

  // An error of a write: nothing may follow it.
  Status Remember(const Status& status) {
    if (!status.ok()) failure = WithContext(status, "file '" + path + "'");
    return failure;
  }
  Status CheckOpen() const {
    if (done) return Closed("file '", path, "' was already finished or aborted");
    return failure;
  }

  // The columns of `batch` in their storage layout.
  Result<std::vector<std::shared_ptr<arrow::ArrayData>>> Prepare(
      const arrow::RecordBatch& batch) const;
  Result<std::vector<std::shared_ptr<arrow::ArrayData>>> PrepareStored(
      const arrow::RecordBatch& batch) const;
  Status AddColumns(const std::vector<std::shared_ptr<arrow::ArrayData>>& data);
  Status WriteTail(FileWriteSummary* summary);
};

Result<std::vector<std::shared_ptr<arrow::ArrayData>>> FileWriter::Impl::Prepare(
    const arrow::RecordBatch& batch) const {
  if (!has_json) return PrepareStored(batch);
  GLAIVE_ASSIGN_OR_RETURN(const auto stored_batch,
                          JsonToStorage(arrow::RecordBatch::Make(
                              batch.schema(), batch.num_rows(), batch.columns())));
  return PrepareStored(*stored_batch);
}

Result<std::vector<std::shared_ptr<arrow::ArrayData>>> FileWriter::Impl::PrepareStored(
    const arrow::RecordBatch& batch) const {
  if (batch.num_rows() > kMaxBatchRows) {
    return InvalidInput("file '", path, "': a batch may hold at most ", kMaxBatchRows,
                        " rows; write smaller batches");
  }
  std::vector<std::shared_ptr<arrow::ArrayData>> out;
  for (const Field& field : schema.fields()) {
    const std::vector<int> found = batch.schema()->GetAllFieldIndices(field.name);
    if (found.empty()) {
      return SchemaMismatch("column '", field.name, "' is missing in the data for file '",
                            path, "'");
    }
    if (found.size() > 1) {
      return SchemaMismatch("the data has ", found.size(), " columns named '", field.name,
                            "'");
    }
    GLAIVE_ASSIGN_OR_RETURN(auto data, CastForStorage(field, batch.column(found[0])));
    GLAIVE_RETURN_NOT_OK(CheckNulls(field, *data));
    const Column& own = columns[out.size()];
    if (own.blobs) {
      GLAIVE_RETURN_NOT_OK(CheckBlobValues(field, *data, own.outside));
    } else {
      for (const auto& column : own.writers) GLAIVE_RETURN_NOT_OK(column->Accept(*data));
    }
    out.push_back(std::move(data));
  }
  if (batch.num_columns() > static_cast<int>(out.size())) {
    std::unordered_set<std::string> known;
    for (const Field& field : schema.fields()) known.insert(field.name);
    for (const std::string& name : batch.schema()->field_names()) {
      if (!known.contains(name)) {
        return SchemaMismatch("file '", path, "' has no column '", name, "'");
      }
    }
  }
  return out;
}

Status FileWriter::Impl::AddColumns(
    const std::vector<std::shared_ptr<arrow::ArrayData>>& data) {
  int64_t batch_bytes = 0;
  for (const auto& array : data) batch_bytes += SliceBytes(*array);
  for (size_t i = 0; i < data.size(); ++i) {
    auto rows = data[i];
    if (columns[i].blobs) {
      GLAIVE_ASSIGN_OR_RETURN(rows, blobs->Write(schema.fields()[i], *rows, sink.get()));
      for (const auto& column : columns[i].writers) {
        GLAIVE_RETURN_NOT_OK(column->Accept(*rows));
      }
    }
    for (const auto& column : columns[i].writers) {
      GLAIVE_RETURN_NOT_OK(column->Add(rows, batch_bytes));
    }
  }
  return Status::OK();
}

Status FileWriter::Impl::WriteTail(FileWriteSummary* summary) {
  lance::file::FileDescriptor descriptor;
  stored.ToProto(descriptor.mutable_schema());
  for (const auto& [key, value] : extra_metadata) {
    (*descriptor.mutable_schema()->mutable_metadata())[key] = value;
  }
  descriptor.set_length(static_cast<uint64_t>(num_rows));
  // The messages that follow the descriptor are not aligned.
  const int64_t descriptor_at = writer->position();
  std::string tail = descriptor.SerializeAsString();
  const uint64_t descriptor_size = tail.size();

  const uint64_t start = static_cast<uint64_t>(descriptor_at);
  const uint64_t metadata_at = start + tail.size();
  std::string column_table;
  uint32_t num_columns = 0;
  for (const Column& column : columns) {
    for (const auto& one : column.writers) {
      const std::string message = one->metadata().SerializeAsString();
      PutU64(start + tail.size(), &column_table);
      PutU64(message.size(), &column_table);
      tail += message;
      ++num_columns;
    }
  }
  const uint64_t column_table_at = start + tail.size();
  tail += column_table;
  const uint64_t buffer_table_at = start + tail.size();
  PutU64(start, &tail);
  PutU64(descriptor_size, &tail);
  for (const BufferLocation& buffer : global_buffers) {
    PutU64(static_cast<uint64_t>(buffer.offset), &tail);
    PutU64(static_cast<uint64_t>(buffer.size), &tail);
  }
  PutU64(metadata_at, &tail);
  PutU64(column_table_at, &tail);
  PutU64(buffer_table_at, &tail);
  const uint32_t counts[2] = {static_cast<uint32_t>(global_buffers.size() + 1),
                              num_columns};
  tail.append(reinterpret_cast<const char*>(counts), sizeof(counts));
  const auto [major, minor] = FooterVersion(options.version);
  const uint16_t version[2] = {major, minor};
  tail.append(reinterpret_cast<const char*>(version), sizeof(version));
  tail += "LANC";
  GLAIVE_RETURN_NOT_OK(writer->Append(Bytes(tail)));
  summary->size_bytes = writer->position();
  return Status::OK();
}

FileWriter::FileWriter() : impl_(std::make_unique<Impl>()) {}

FileWriter::~FileWriter() {
  if (impl_ != nullptr && !impl_->done) Abort();
}

Result<std::unique_ptr<FileWriter>> FileWriter::Make(io::ObjectStore& store,
                                                     std::string path, Schema schema,
                                                     FileWriterOptions options) {
  auto out = std::unique_ptr<FileWriter>(new FileWriter);
  Impl& impl = *out->impl_;
  impl.done = true;  // nothing to abort until the object exists
  impl.schema = std::move(schema);
  impl.options = options;
  impl.path = std::move(path);
  impl.has_json = HasJson(*impl.schema.ToArrow());
  // The columns are made before the object: a type that cannot be stored leaves no trace.
  impl.sink = std::make_unique<PageSink>(nullptr);
  impl.stored = impl.schema.WithBlobDescriptors();
  impl.blobs = std::make_unique<BlobV2Writer>(store, impl.path);
  for (size_t i = 0; i < impl.schema.fields().size(); ++i) {
    const Field& field = impl.schema.fields()[i];
    const bool blobs = HoldsBlobsV2(field);
    if (blobs && options.version < FileVersion::k2_2) {
      return InvalidInput("column '", field.name,
                          "': blobs (lance.blob.v2) need file version 2.2, not ",
                          FileVersionName(options.version));
    }
    if (blobs) GLAIVE_RETURN_NOT_OK(CheckBlobsV2(field));
    GLAIVE_ASSIGN_OR_RETURN(auto writers, MakeColumnWriters(impl.stored.fields()[i],
                                                            options, impl.sink.get()));
    const auto& outside = options.outside_blob_fields;
    impl.columns.push_back(
        {std::move(writers), blobs,
         std::find(outside.begin(), outside.end(), field.id) != outside.end()});
  }
  GLAIVE_ASSIGN_OR_RETURN(impl.writer, store.Create(impl.path));
  *impl.sink = PageSink(impl.writer.get());
  impl.done = false;
  return out;
}

Status FileWriter::Write(const arrow::RecordBatch& batch) {
  Impl& impl = *impl_;
  GLAIVE_RETURN_NOT_OK(impl.CheckOpen());
  GLAIVE_ASSIGN_OR_RETURN(auto data, impl.Prepare(batch));
  if (batch.num_rows() == 0) return Status::OK();
  GLAIVE_RETURN_NOT_OK(impl.Remember(impl.AddColumns(data)));
  impl.num_rows += batch.num_rows();
  return Status::OK();
}

bool FileWriter::encodes_apart() const {
  for (const Impl::Column& column : impl_->columns) {
    if (column.blobs) return false;
    for (const auto& one : column.writers) {
      if (!one->encodes_apart()) return false;
    }
  }
  return true;
}

Result<std::shared_ptr<const EncodedRows>> FileWriter::Encode(
    const arrow::RecordBatch& batch) const {
  if (!encodes_apart()) return InternalError("file '", impl_->path, "' takes rows only");
  auto out = std::make_shared<EncodedRows>();
  out->num_rows = batch.num_rows();
  GLAIVE_ASSIGN_OR_RETURN(const auto data, impl_->Prepare(batch));
  for (size_t i = 0; i < data.size(); ++i) {
    for (const auto& one : impl_->columns[i].writers) {
      auto pages = one->Encode(data[i]);
      if (!pages.ok()) return WithContext(pages.status(), "file '" + impl_->path + "'");
      out->pages.push_back(std::move(*pages));
    }
  }
  return out;
}

Status FileWriter::Write(const EncodedRows& rows) {
  Impl& impl = *impl_;
  GLAIVE_RETURN_NOT_OK(impl.CheckOpen());
  size_t next = 0;
  for (const Impl::Column& column : impl.columns) {
    for (const auto& one : column.writers) {
      if (next == rows.pages.size()) return InternalError("rows of another file");
      GLAIVE_RETURN_NOT_OK(impl.Remember(one->AddPages(rows.pages[next++])));
    }
  }
  impl.num_rows += rows.num_rows;
  return Status::OK();
}

Result<int> FileWriter::AddGlobalBuffer(std::shared_ptr<arrow::Buffer> bytes) {
  Impl& impl = *impl_;
  GLAIVE_RETURN_NOT_OK(impl.CheckOpen());
  const std::shared_ptr<arrow::Buffer> pieces[] = {std::move(bytes)};
  auto at = impl.sink->Write(pieces);
  GLAIVE_RETURN_NOT_OK(impl.Remember(at.status()));
  impl.global_buffers.push_back(*at);
  return static_cast<int>(impl.global_buffers.size());
}

void FileWriter::AddSchemaMetadata(std::string key, std::string value) {
  impl_->extra_metadata[std::move(key)] = std::move(value);
}

Result<FileWriteSummary> FileWriter::Finish(
    std::unique_ptr<io::ObjectWriter>* unpublished) {
  Impl& impl = *impl_;
  GLAIVE_RETURN_NOT_OK(impl.CheckOpen());
  FileWriteSummary summary;
  summary.path = impl.path;
  summary.num_rows = impl.num_rows;
  const auto run = [&]() -> Status {
    for (const auto& column : impl.columns) {
      for (const auto& one : column.writers) GLAIVE_RETURN_NOT_OK(one->Flush());
    }
    GLAIVE_RETURN_NOT_OK(impl.WriteTail(&summary));
    GLAIVE_RETURN_NOT_OK(impl.blobs->Finish());
    return unpublished != nullptr ? Status::OK() : impl.writer->Finish();
  };
  Status status = run();
  if (!status.ok()) {
    Abort();
    return WithContext(status, "file '" + impl.path + "'");
  }
  impl.done = true;
  if (unpublished != nullptr) *unpublished = std::move(impl.writer);
  summary.blob_files = impl.blobs->files();
  int32_t number = 0;
  for (const Field* field :
       impl.schema.ColumnFields(impl.options.version == FileVersion::k2_0)) {
    summary.field_ids.push_back(field->id);
    summary.column_indices.push_back(number++);
  }
  return summary;
}

void FileWriter::Abort() {
  if (impl_->done) return;
  impl_->writer->Abort();
  impl_->blobs->Abort();
  impl_->done = true;
}

int64_t FileWriter::num_rows() const { return impl_->num_rows; }

int64_t FileWriter::bytes_written() const {
  return impl_->writer == nullptr ? 0 : impl_->writer->position();
}

}  // namespace glaive::file
