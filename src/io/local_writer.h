// Writing files of the local store: streamed, or at once; published under their name when
// complete.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/object_store.h"
#include "io/posix_file.h"

namespace glaive::io {

// Streams into a temporary file beside `path`, renamed at Finish. The rename comes before
// the sync: where metadata is journalled, that is one wait for the journal instead of
// two. A crash in between may leave a file with holes, which nothing names. Not
// thread-safe.
class LocalWriter : public ObjectWriter {
 public:
  // `path` is absolute. Missing directories above it are created.
  static Result<std::unique_ptr<ObjectWriter>> Make(std::string path);

  ~LocalWriter() override;
  Status Append(std::span<const uint8_t> bytes) override;
  int64_t position() const override { return position_; }
  Status Finish() override;
  void Abort() override;
  Status Publish() override;
  Status Sync() override;

 private:
  LocalWriter(std::string path, std::string temporary, FileDescriptor fd);
  Status Flush();
  Status WriteOut(ByteParts parts);
  void StartWriteback();
  Status WriteInPieces(std::span<const uint8_t> bytes);

  const std::string path_;
  const std::string temporary_;
  FileDescriptor fd_;  // invalid once finished or aborted
  bool published_ = false;
  std::unique_ptr<uint8_t[]> buffer_;
  size_t buffered_ = 0;
  int64_t position_ = 0;           // of the next Append
  int64_t written_ = 0;            // handed to the kernel
  int64_t writeback_started_ = 0;  // of it, asked to be on its way to the disk
  Status failure_;  // of an Append: Finish must not publish a file with a hole
};

// Puts `bytes` under the absolute `path` in place of what was there, in one step. A few
// bytes that need not be durable are written over the old ones: a rename over a file
// makes some file systems write the new one out at once.
Status ReplaceFile(const std::string& path, std::span<const uint8_t> bytes, bool durable);

}  // namespace glaive::io
