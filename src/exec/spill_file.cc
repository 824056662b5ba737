#include "exec/spill_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/array/data.h>
#include <arrow/io/file.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

namespace glaive::exec {
namespace {

// Metadata would make readers build arrays of extension types.
std::shared_ptr<arrow::DataType> PlainType(const std::shared_ptr<arrow::DataType>& type);

std::shared_ptr<arrow::Field> PlainField(const std::shared_ptr<arrow::Field>& field) {
  return arrow::field(field->name(), PlainType(field->type()), true);
}

std::shared_ptr<arrow::DataType> PlainType(const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case arrow::Type::STRUCT: {
      arrow::FieldVector fields;
      for (const auto& field : type->fields()) fields.push_back(PlainField(field));
      return arrow::struct_(std::move(fields));
    }
    case arrow::Type::LIST:
      return arrow::list(PlainField(type->field(0)));
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(PlainField(type->field(0)));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          PlainField(type->field(0)),
          static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    default:
      return type;
  }
}

// The same values under a type that differs in metadata and nullability only.
std::shared_ptr<arrow::ArrayData> Retype(const arrow::ArrayData& data,
                                         const std::shared_ptr<arrow::DataType>& type) {
  auto out = data.Copy();
  out->type = type;
  if (type->id() == arrow::Type::DICTIONARY) return out;
  for (size_t c = 0; c < out->child_data.size(); ++c) {
    const int index = static_cast<int>(c);
    if (index >= type->num_fields()) break;
    out->child_data[c] = Retype(*out->child_data[c], type->field(index)->type());
  }
  return out;
}

std::shared_ptr<arrow::RecordBatch> Retype(const arrow::RecordBatch& batch,
                                           const std::shared_ptr<arrow::Schema>& schema) {
  std::vector<std::shared_ptr<arrow::ArrayData>> columns;
  for (int c = 0; c < batch.num_columns(); ++c) {
    columns.push_back(Retype(*batch.column_data(c), schema->field(c)->type()));
  }
  return arrow::RecordBatch::Make(schema, batch.num_rows(), std::move(columns));
}

// Reads from a descriptor at a place of its own.
class Stream final : public arrow::io::InputStream {
 public:
  Stream(int fd, int64_t size) : fd_(fd), size_(size) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return at_; }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    bytes = std::min(bytes, size_ - at_);
    int64_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::pread(fd_, static_cast<char*>(out) + done,
                                  static_cast<size_t>(bytes - done), at_ + done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return IoError("a temporary file of a merge cannot be read");
      done += got;
    }
    at_ += done;
    return done;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    bytes = std::min(bytes, size_ - at_);
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(int64_t got, Read(bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  const int fd_;
  const int64_t size_;
  int64_t at_ = 0;
  bool closed_ = false;
};

class Reader final : public arrow::RecordBatchReader {
 public:
  Reader(std::shared_ptr<arrow::RecordBatchReader> plain,
         std::shared_ptr<arrow::Schema> schema)
      : plain_(std::move(plain)), schema_(std::move(schema)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    ARROW_RETURN_NOT_OK(plain_->ReadNext(batch));
    if (*batch != nullptr) *batch = Retype(**batch, schema_);
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::RecordBatchReader> plain_;
  std::shared_ptr<arrow::Schema> schema_;
};

Status SpillError(const std::string& directory, const std::string& why) {
  return IoError("a merge cannot keep its source in '", directory, "': ", why,
                 "; free space there, or name another directory (TMPDIR)");
}

}  // namespace

SpillFile::SpillFile() = default;

SpillFile::~SpillFile() {
  writer_.reset();
  if (out_ && !out_->closed()) {
    Status ignored = out_->Close();
    static_cast<void>(ignored.ok());
  }
  if (fd_ >= 0) ::close(fd_);
}

Result<std::unique_ptr<SpillFile>> SpillFile::Make(
    const std::string& directory, std::shared_ptr<arrow::Schema> schema) {
  std::string where = directory;
  if (where.empty()) {
    std::error_code error;
    where = std::filesystem::temp_directory_path(error).string();
    if (error) where = "/tmp";
  }
  std::string path = where + "/glaive-merge-XXXXXX";
  std::unique_ptr<SpillFile> file(new SpillFile);
  file->fd_ = ::mkstemp(path.data());
  if (file->fd_ < 0) return SpillError(where, std::strerror(errno));
  ::unlink(path.c_str());
  arrow::FieldVector fields;
  for (const auto& field : schema->fields()) fields.push_back(PlainField(field));
  file->plain_ = arrow::schema(std::move(fields));
  file->schema_ = std::move(schema);
  const int copy = ::dup(file->fd_);
  if (copy < 0) return SpillError(where, std::strerror(errno));
  GLAIVE_ASSIGN_OR_RETURN(file->out_, arrow::io::FileOutputStream::Open(copy));
  GLAIVE_ASSIGN_OR_RETURN(file->writer_,
                          arrow::ipc::MakeStreamWriter(file->out_, file->plain_));
  return file;
}

Status SpillFile::Write(const arrow::RecordBatch& batch) {
  const Status status = writer_->WriteRecordBatch(*Retype(batch, plain_));
  if (!status.ok())
    return SpillError("the directory of temporary files", status.message());
  return Status::OK();
}

Status SpillFile::Finish() {
  GLAIVE_RETURN_NOT_OK(writer_->Close());
  GLAIVE_ASSIGN_OR_RETURN(size_bytes_, out_->Tell());
  return out_->Close();
}

Result<std::shared_ptr<arrow::RecordBatchReader>> SpillFile::Read() const {
  GLAIVE_ASSIGN_OR_RETURN(auto plain, arrow::ipc::RecordBatchStreamReader::Open(
                                          std::make_shared<Stream>(fd_, size_bytes_)));
  return std::make_shared<Reader>(std::move(plain), schema_);
}

}  // namespace glaive::exec
