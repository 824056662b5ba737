#include "base/status.h"

#include <memory>

namespace glaive {
namespace {

constexpr char kDetailTypeId[] = "glaive::ErrorDetail";

class ErrorDetail : public arrow::StatusDetail {
 public:
  explicit ErrorDetail(ErrorKind kind) : kind_(kind) {}
  const char* type_id() const override { return kDetailTypeId; }
  std::string ToString() const override { return std::string(ErrorKindName(kind_)); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

arrow::StatusCode CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kNotFound:
      return arrow::StatusCode::KeyError;
    case ErrorKind::kAlreadyExists:
      return arrow::StatusCode::AlreadyExists;
    case ErrorKind::kNotSupported:
      return arrow::StatusCode::NotImplemented;
    case ErrorKind::kIo:
    case ErrorKind::kCorruption:
    case ErrorKind::kFenced:
    case ErrorKind::kWriterFailed:
      return arrow::StatusCode::IOError;
    case ErrorKind::kResourceExhausted:
      return arrow::StatusCode::CapacityError;
    case ErrorKind::kCancelled:
    case ErrorKind::kTimeout:
      return arrow::StatusCode::Cancelled;
    case ErrorKind::kInternal:
      return arrow::StatusCode::UnknownError;
    default:
      return arrow::StatusCode::Invalid;
  }
}

}  // namespace

std::string_view ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kNone:
      return "None";
    case ErrorKind::kNotFound:
      return "NotFound";
    case ErrorKind::kAlreadyExists:
      return "AlreadyExists";
    case ErrorKind::kInvalidInput:
      return "InvalidInput";
    case ErrorKind::kSchemaMismatch:
      return "SchemaMismatch";
    case ErrorKind::kRetryableConflict:
      return "RetryableConflict";
    case ErrorKind::kConflict:
      return "Conflict";
    case ErrorKind::kTooManyRetries:
      return "TooManyRetries";
    case ErrorKind::kCorruption:
      return "Corruption";
    case ErrorKind::kNotSupported:
      return "NotSupported";
    case ErrorKind::kIo:
      return "Io";
    case ErrorKind::kResourceExhausted:
      return "ResourceExhausted";
    case ErrorKind::kCancelled:
      return "Cancelled";
    case ErrorKind::kTimeout:
      return "Timeout";
    case ErrorKind::kClosed:
      return "Closed";
    case ErrorKind::kFenced:
      return "Fenced";
    case ErrorKind::kWriterFailed:
      return "WriterFailed";
    case ErrorKind::kInternal:
      return "Internal";
  }
  return "Internal";
}

ErrorKind KindOf(const Status& status) {
  if (status.ok()) return ErrorKind::kNone;
  if (status.detail() && status.detail()->type_id() == kDetailTypeId) {
    return static_cast<const ErrorDetail&>(*status.detail()).kind();
  }
  switch (status.code()) {
    case arrow::StatusCode::OutOfMemory:
    case arrow::StatusCode::CapacityError:
      return ErrorKind::kResourceExhausted;
    case arrow::StatusCode::NotImplemented:
      return ErrorKind::kNotSupported;
    case arrow::StatusCode::IOError:
      return ErrorKind::kIo;
    case arrow::StatusCode::Cancelled:
      return ErrorKind::kCancelled;
    case arrow::StatusCode::KeyError:
      return ErrorKind::kNotFound;
    case arrow::StatusCode::AlreadyExists:
      return ErrorKind::kAlreadyExists;
    case arrow::StatusCode::UnknownError:
      return ErrorKind::kInternal;
    default:
      return ErrorKind::kInvalidInput;
  }
}

Status MakeError(ErrorKind kind, std::string message) {
  return Status(CodeOf(kind), std::move(message), std::make_shared<ErrorDetail>(kind));
}

Status WithContext(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  return status.WithMessage(context, ": ", status.message());
}

}  // namespace glaive
