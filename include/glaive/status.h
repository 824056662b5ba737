// Errors of the public API: Arrow's Status and Result, each failure with a kind.
#pragma once

#include <cstdint>
#include <string_view>

#include <arrow/result.h>
#include <arrow/status.h>

namespace glaive {

using Status = arrow::Status;
template <typename T>
using Result = arrow::Result<T>;

enum class ErrorKind : uint8_t {
  kNone = 0,
  kNotFound,           // table, version, tag, column or file does not exist
  kAlreadyExists,      // table, tag or object exists
  kInvalidInput,       // an argument is wrong
  kSchemaMismatch,     // data does not fit the table's schema
  kRetryableConflict,  // a concurrent commit touched the same rows: run the operation
                       // again
  kConflict,           // a concurrent commit makes this operation impossible
  kTooManyRetries,     // own retries used up against retryable conflicts
  kCorruption,         // bytes on disk are not what the format says
  kNotSupported,       // a feature that this build does not have
  kIo,                 // the operating system or the store failed
  kResourceExhausted,  // memory budget or another bound was reached
  kCancelled,          // the caller asked to stop
  kTimeout,            // the caller's deadline passed
  kClosed,             // the handle was closed
  kFenced,             // another writer claimed the shard: open a new writer
  kWriterFailed,       // an append failed or its outcome is unknown; the writer serves
                       // nothing any more: open a new one, which replays the log
  kInternal,           // a broken invariant: please report
};

// Name of a kind as it appears in messages and docs, e.g. "NotFound".
std::string_view ErrorKindName(ErrorKind kind);

// The kind of `status`: kNone when ok, otherwise the attached kind, or the nearest kind
// for errors that come from Arrow itself.
ErrorKind KindOf(const Status& status);

}  // namespace glaive
