#include "io/local_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/stat.h>

#include "io/path.h"
#include "runtime/inline_scope.h"

namespace glaive::io {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
// From this size on, bytes go to the kernel from where they are.
constexpr size_t kDirectBytes = size_t{128} << 10;
// Writeback starts each time this much is new, or half of the file: the sync at the end
// then finds little to do, however small the file is.
constexpr int64_t kWritebackBytes = int64_t{8} << 20;
constexpr int64_t kMinWritebackBytes = int64_t{1} << 20;
// Background work writes so much and waits until the disk has it: the small files that
// others sync meanwhile, entries of a log say, would otherwise queue behind all of it.
constexpr size_t kBackgroundPiece = size_t{256} << 10;
constexpr size_t kMostInPlace = 64;

// Creates a temporary file for `path`, and the directories above it when they are
// missing.
Result<FileDescriptor> CreateTemporary(const std::string& path,
                                       const std::string& temporary, bool durable) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL;
  FileDescriptor fd = OpenFile(temporary, kFlags);
  if (!fd.valid() && errno == ENOENT) {
    GLAIVE_RETURN_NOT_OK(MakeDirectories(std::string(ParentPath(path)), durable));
    fd = OpenFile(temporary, kFlags);
  }
  if (!fd.valid()) return ErrnoStatus(errno, "create", path);
  return fd;
}

Status RenameInto(const std::string& temporary, const std::string& path, bool durable) {
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, "create", path);
  }
  return durable ? SyncDirectory(std::string(ParentPath(path))) : Status::OK();
}

// Cut afterwards, so that nobody finds an empty file.
Status OverwriteFile(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "look at", path);
  GLAIVE_RETURN_NOT_OK(WriteAll(fd, bytes, path));
  const auto size = static_cast<int64_t>(bytes.size());
  if (info.st_size > size && ::ftruncate(fd, size) != 0) {
    return ErrnoStatus(errno, "write", path);
  }
  return Status::OK();
}

}  // namespace

Result<std::unique_ptr<ObjectWriter>> LocalWriter::Make(std::string path) {
  std::string temporary = TemporaryPathFor(path);
  GLAIVE_ASSIGN_OR_RETURN(FileDescriptor fd, CreateTemporary(path, temporary, true));
  return std::unique_ptr<ObjectWriter>(
      new LocalWriter(std::move(path), std::move(temporary), std::move(fd)));
}

LocalWriter::LocalWriter(std::string path, std::string temporary, FileDescriptor fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

LocalWriter::~LocalWriter() { Abort(); }

Status LocalWriter::Append(std::span<const uint8_t> bytes) {
  if (!fd_.valid() || published_) {
    return Closed("file '", path_, "' was finished or aborted already");
  }
  GLAIVE_RETURN_NOT_OK(failure_);
  position_ += static_cast<int64_t>(bytes.size());
  if (bytes.size() >= kDirectBytes) {
    const std::span<const uint8_t> parts[] = {{buffer_.get(), buffered_}, bytes};
    buffered_ = 0;
    return WriteOut(parts);
  }
  if (buffered_ + bytes.size() > kBufferBytes) GLAIVE_RETURN_NOT_OK(Flush());
  if (bytes.empty()) return Status::OK();
  if (buffer_ == nullptr) {
    buffer_ = std::make_unique_for_overwrite<uint8_t[]>(kBufferBytes);
  }
  std::memcpy(buffer_.get() + buffered_, bytes.data(), bytes.size());
  buffered_ += bytes.size();
  return Status::OK();
}

Status LocalWriter::Flush() {
  const std::span<const uint8_t> bytes{buffer_.get(), std::exchange(buffered_, 0)};
  return WriteOut(ByteParts(&bytes, 1));
}

Status LocalWriter::WriteInPieces(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kBackgroundPiece));
    failure_ = WriteAll(fd_.get(), piece, path_);
    GLAIVE_RETURN_NOT_OK(failure_);
    // Advice only, as below.
    ::sync_file_range(fd_.get(), written_, static_cast<int64_t>(piece.size()),
                      SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    written_ += static_cast<int64_t>(piece.size());
    writeback_started_ = written_;
    bytes = bytes.subspan(piece.size());
  }
  return Status::OK();
}

Status LocalWriter::WriteOut(ByteParts parts) {
  if (InlineScope::active()) {
    for (const auto& part : parts) GLAIVE_RETURN_NOT_OK(WriteInPieces(part));
    return Status::OK();
  }
  failure_ = WriteParts(fd_.get(), parts, path_);
  GLAIVE_RETURN_NOT_OK(failure_);
  for (const auto& part : parts) written_ += static_cast<int64_t>(part.size());
  const int64_t waiting = written_ - writeback_started_;
  if (waiting >= kWritebackBytes ||
      (waiting >= kMinWritebackBytes && waiting >= written_ / 2)) {
    StartWriteback();
  }
  return Status::OK();
}

void LocalWriter::StartWriteback() {
  io::StartWriteback(fd_.get(), writeback_started_, written_ - writeback_started_);
  writeback_started_ = written_;
}

Status LocalWriter::Finish() {
  GLAIVE_RETURN_NOT_OK(Publish());
  return Sync();
}

Status LocalWriter::Publish() {
  if (!fd_.valid() || published_) {
    return Closed("file '", path_, "' was finished or aborted already");
  }
  Status status = failure_;
  if (status.ok()) status = Flush();
  if (status.ok()) status = RenameInto(temporary_, path_, false);
  if (!status.ok()) {
    Abort();
    return status;
  }
  published_ = true;
  buffer_.reset();
  StartWriteback();
  return Status::OK();
}

Status LocalWriter::Sync() {
  if (!fd_.valid() || !published_) {
    return Closed("file '", path_, "' is not published, or was synced already");
  }
  Status status = SyncFile(fd_.get(), path_);
  if (status.ok()) status = SyncDirectory(std::string(ParentPath(path_)));
  fd_.Close();
  if (!status.ok()) ::unlink(path_.c_str());
  return status;
}

void LocalWriter::Abort() {
  if (!fd_.valid()) return;
  fd_.Close();
  buffer_.reset();
  if (!published_) ::unlink(temporary_.c_str());
}

Status ReplaceFile(const std::string& path, std::span<const uint8_t> bytes,
                   bool durable) {
  if (!durable && bytes.size() <= kMostInPlace) {
    const FileDescriptor fd = OpenFile(path, O_WRONLY | O_NOFOLLOW);
    if (fd.valid()) return OverwriteFile(fd.get(), bytes, path);
  }
  const std::string temporary = TemporaryPathFor(path);
  GLAIVE_ASSIGN_OR_RETURN(FileDescriptor fd, CreateTemporary(path, temporary, durable));
  Status status = WriteAll(fd.get(), bytes, path);
  if (status.ok() && durable) status = SyncFile(fd.get(), path);
  fd.Close();
  if (status.ok()) status = RenameInto(temporary, path, durable);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace glaive::io
