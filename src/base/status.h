// Errors: Arrow's Status and Result, with Glaive's own kind attached.
//
// Only the factories below create errors. A message names the table, column or file that
// is concerned and says what to do. All functions here may be called from any thread.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "glaive/status.h"  // ErrorKind, KindOf, Status, Result

namespace glaive {

// `status` with `context` put before its message; the kind stays.
Status WithContext(const Status& status, std::string_view context);

Status MakeError(ErrorKind kind, std::string message);

namespace internal {
template <typename... Args>
std::string Join(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}
}  // namespace internal

#define GLAIVE_DEFINE_ERROR(Name, kind)              \
  template <typename... Args>                        \
  [[nodiscard]] Status Name(const Args&... args) {   \
    return MakeError(kind, internal::Join(args...)); \
  }

GLAIVE_DEFINE_ERROR(NotFound, ErrorKind::kNotFound)
GLAIVE_DEFINE_ERROR(AlreadyExists, ErrorKind::kAlreadyExists)
GLAIVE_DEFINE_ERROR(InvalidInput, ErrorKind::kInvalidInput)
GLAIVE_DEFINE_ERROR(SchemaMismatch, ErrorKind::kSchemaMismatch)
GLAIVE_DEFINE_ERROR(RetryableConflict, ErrorKind::kRetryableConflict)
GLAIVE_DEFINE_ERROR(Conflict, ErrorKind::kConflict)
GLAIVE_DEFINE_ERROR(TooManyRetries, ErrorKind::kTooManyRetries)
GLAIVE_DEFINE_ERROR(Corruption, ErrorKind::kCorruption)
GLAIVE_DEFINE_ERROR(NotSupported, ErrorKind::kNotSupported)
GLAIVE_DEFINE_ERROR(IoError, ErrorKind::kIo)
GLAIVE_DEFINE_ERROR(ResourceExhausted, ErrorKind::kResourceExhausted)
GLAIVE_DEFINE_ERROR(Cancelled, ErrorKind::kCancelled)
GLAIVE_DEFINE_ERROR(TimedOut, ErrorKind::kTimeout)
GLAIVE_DEFINE_ERROR(Closed, ErrorKind::kClosed)
GLAIVE_DEFINE_ERROR(Fenced, ErrorKind::kFenced)
GLAIVE_DEFINE_ERROR(WriterFailed, ErrorKind::kWriterFailed)
GLAIVE_DEFINE_ERROR(InternalError, ErrorKind::kInternal)
#undef GLAIVE_DEFINE_ERROR

}  // namespace glaive

#define GLAIVE_RETURN_NOT_OK(expr) ARROW_RETURN_NOT_OK(expr)
#define GLAIVE_ASSIGN_OR_RETURN(lhs, expr) ARROW_ASSIGN_OR_RAISE(lhs, expr)
