#include "io/posix_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <system_error>

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "io/path.h"

namespace glaive::io {
namespace {

// write(2) moves at most 0x7ffff000 bytes; smaller calls keep it interruptible.
constexpr size_t kMaxBytesPerCall = size_t{64} << 20;

uint64_t ProcessNonce() {
  static const uint64_t nonce = [] {
    uint64_t value = 0;
    // Only uniqueness matters: should the call fail, pid and counter still tell names
    // apart.
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) value = 0;
    return value;
  }();
  return nonce;
}

void AppendHex(uint64_t value, std::string* out) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  out->append(digits, end);
}

}  // namespace

void FileDescriptor::Close() {
  // A failed close is not retried (Linux frees the descriptor in any case); data that
  // matters was synced before.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Status ErrnoStatus(int error_number, std::string_view action, std::string_view path) {
  const std::string reason = std::generic_category().message(error_number);
  switch (error_number) {
    case ENOENT:
      return NotFound("cannot ", action, " '", path, "': it does not exist");
    case EEXIST:
      return AlreadyExists("cannot ", action, " '", path, "': it exists already");
    case ENOTEMPTY:
      return AlreadyExists("cannot ", action, " '", path,
                           "': the directory is not empty");
    case ENAMETOOLONG:
      return InvalidInput("cannot ", action, " '", path,
                          "': the name is too long for the file system");
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EINVAL:
    case EILSEQ:
      return InvalidInput("cannot ", action, " '", path, "': ", reason);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ResourceExhausted(
          "cannot ", action, " '", path, "': ", reason,
          "; raise the process's limit (ulimit -n, vm.max_map_count)");
    case ENOSPC:
    case EDQUOT:
      return IoError("cannot ", action, " '", path, "': ", reason,
                     "; free some disk space");
    default:
      return IoError("cannot ", action, " '", path, "': ", reason);
  }
}

FileDescriptor OpenFile(const std::string& path, int flags, unsigned mode) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

Status WriteAll(int fd, std::span<const uint8_t> bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(fd, bytes.data(), std::min(bytes.size(), kMaxBytesPerCall));
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "write", path);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return Status::OK();
}

Status WriteParts(int fd, std::span<const std::span<const uint8_t>> parts,
                  std::string_view path) {
  constexpr size_t kPartsPerCall = 256;  // IOV_MAX is 1024 on Linux
  struct iovec pieces[kPartsPerCall];
  size_t done = 0;  // bytes of parts.front() that are written
  while (!parts.empty()) {
    size_t count = 0, bytes = 0;
    for (; count < std::min(parts.size(), kPartsPerCall) && bytes < kMaxBytesPerCall;
         ++count) {
      const auto left = parts[count].subspan(count == 0 ? done : 0);
      const size_t take = std::min(left.size(), kMaxBytesPerCall - bytes);
      pieces[count] = {const_cast<uint8_t*>(left.data()), take};
      bytes += take;
    }
    size_t written = 0;
    if (bytes > 0) {
      const ssize_t got = ::writev(fd, pieces, static_cast<int>(count));
      if (got < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus(errno, "write", path);
      }
      written = static_cast<size_t>(got);
    }
    while (!parts.empty() && parts.front().size() - done <= written) {
      written -= parts.front().size() - done;
      done = 0;
      parts = parts.subspan(1);
    }
    done += written;
  }
  return Status::OK();
}

Status ReadExactly(int fd, int64_t offset, std::span<uint8_t> bytes,
                   std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t got =
        ::pread(fd, bytes.data(), std::min(bytes.size(), kMaxBytesPerCall), offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "read", path);
    }
    if (got == 0) {
      return Corruption("file '", path, "' ends at byte ", offset, ", ", bytes.size(),
                        " bytes before its expected end");
    }
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return Status::OK();
}

void StartWriteback(int fd, int64_t offset, int64_t length) {
  if (length > 0) ::sync_file_range(fd, offset, length, SYNC_FILE_RANGE_WRITE);
}

Status SyncFile(int fd, std::string_view path) {
  // Data plus what is needed to read it back (size, extents); not the times.
  while (::fdatasync(fd) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "sync", path);
  }
  return Status::OK();
}

Status SyncDirectory(const std::string& directory) {
  const FileDescriptor fd = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) return ErrnoStatus(errno, "open directory", directory);
  while (::fsync(fd.get()) != 0) {
    if (errno == EINTR) continue;
    // Some network file systems cannot sync directories: they publish names
    // synchronously.
    if (errno == EINVAL || errno == ENOTSUP || errno == EROFS) break;
    return ErrnoStatus(errno, "sync directory", directory);
  }
  return Status::OK();
}

Status MakeDirectories(const std::string& directory, bool durable) {
  if (directory.empty()) return Status::OK();
  if (::mkdir(directory.c_str(), 0777) == 0) {
    if (!durable) return Status::OK();
    const std::string_view parent = ParentPath(directory);
    if (parent.empty()) return SyncDirectory(directory.starts_with('/') ? "/" : ".");
    return SyncDirectory(std::string(parent));
  }
  if (errno == EEXIST) {
    struct stat info;
    if (::stat(directory.c_str(), &info) != 0) {
      return ErrnoStatus(errno, "look at", directory);
    }
    if (!S_ISDIR(info.st_mode))
      return ErrnoStatus(ENOTDIR, "create directory", directory);
    return Status::OK();
  }
  if (errno != ENOENT) return ErrnoStatus(errno, "create directory", directory);
  const std::string_view parent = ParentPath(directory);
  if (parent.empty()) return ErrnoStatus(ENOENT, "create directory", directory);
  GLAIVE_RETURN_NOT_OK(MakeDirectories(std::string(parent), durable));
  // Another process may have created it by now, or even removed the parent: one more look
  // each.
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "create directory", directory);
  }
  return durable ? SyncDirectory(std::string(parent)) : Status::OK();
}

std::string TemporaryPathFor(std::string_view path) {
  static std::atomic<uint64_t> counter{0};
  std::string name(path.substr(0, path.size() - BaseName(path).size()));
  name.append(kTemporaryPrefix);
  AppendHex(static_cast<uint64_t>(::getpid()), &name);
  name.push_back('-');
  AppendHex(ProcessNonce(), &name);
  name.push_back('-');
  AppendHex(counter.fetch_add(1, std::memory_order_relaxed), &name);
  return name;
}

}  // namespace glaive::io
