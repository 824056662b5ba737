// Thin, error-typed layer over the POSIX calls of the local store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace glaive::io {

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close();
  // Gives the descriptor away.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// The error for `error_number` (errno) of "cannot <action> '<path>'", of the nearest
// kind.
Status ErrnoStatus(int error_number, std::string_view action, std::string_view path);

// open(2), again after an interruption. -1 with errno on failure.
FileDescriptor OpenFile(const std::string& path, int flags, unsigned mode = 0666);

Status WriteAll(int fd, std::span<const uint8_t> bytes, std::string_view path);
// The same for pieces, of which many go to the kernel in one call.
Status WriteParts(int fd, std::span<const std::span<const uint8_t>> parts,
                  std::string_view path);

// Reads exactly bytes.size() bytes from `offset` on; Corruption when the file ends
// before.
Status ReadExactly(int fd, int64_t offset, std::span<uint8_t> bytes,
                   std::string_view path);

// Asks for bytes to be on their way to the disk, so that a later sync finds little to do.
// Advice only: a file system without it syncs everything then.
void StartWriteback(int fd, int64_t offset, int64_t length);
Status SyncFile(int fd, std::string_view path);
Status SyncDirectory(const std::string& directory);

// Creates `directory` and the missing ones above it. With `durable`, syncs the parent of
// each directory that was created.
Status MakeDirectories(const std::string& directory, bool durable);

// A name for a new temporary file in the directory of `path`; not used by any other
// process.
std::string TemporaryPathFor(std::string_view path);

}  // namespace glaive::io
