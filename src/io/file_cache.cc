#include "io/file_cache.h"

#include <fcntl.h>

#include <cerrno>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <arrow/buffer.h>
#include <sys/mman.h>

#include "io/posix_file.h"
#include "runtime/fork.h"

namespace glaive::io {
namespace {

// Up to here one read(2) into memory is cheaper than mmap, page faults and munmap.
constexpr int64_t kMaxCopiedBytes = 16 << 10;
// Bound for all copies that the cache keeps.
constexpr int64_t kMaxCopiedBytesTotal = int64_t{64} << 20;

class MappedBuffer : public arrow::Buffer {
 public:
  MappedBuffer(const uint8_t* data, int64_t size) : arrow::Buffer(data, size) {}
  ~MappedBuffer() override {
    ::munmap(const_cast<uint8_t*>(data()), static_cast<size_t>(size()));
  }
};

int64_t Nanoseconds(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Status CheckRegular(const struct stat& info, const std::string& path) {
  if (S_ISREG(info.st_mode)) return Status::OK();
  if (S_ISDIR(info.st_mode)) {
    return NotFound("cannot open '", path, "': it is a directory, not a file");
  }
  return InvalidInput("cannot open '", path, "': it is not a regular file");
}

Result<std::shared_ptr<arrow::Buffer>> CopyContent(int fd, int64_t size,
                                                   const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(size));
  GLAIVE_RETURN_NOT_OK(
      ReadExactly(fd, 0, {buffer->mutable_data(), static_cast<size_t>(size)}, path));
  return buffer;
}

// O_NONBLOCK: a FIFO in the way must not block the call.
Result<FileDescriptor> OpenForReading(const std::string& path, struct stat* info) {
  FileDescriptor fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  if (::fstat(fd.get(), info) != 0) return ErrnoStatus(errno, "look at", path);
  GLAIVE_RETURN_NOT_OK(CheckRegular(*info, path));
  return fd;
}

Result<std::shared_ptr<const OpenedFile>> OpenUncached(const std::string& path) {
  struct stat info;
  GLAIVE_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(path, &info));
  auto file = std::make_shared<OpenedFile>();
  file->identity = OpenedFile::Identity::Of(info);
  file->size_bytes = info.st_size;
  if (info.st_size <= kMaxCopiedBytes) {
    GLAIVE_ASSIGN_OR_RETURN(file->content, CopyContent(fd.get(), info.st_size, path));
    file->heap_bytes = info.st_size;
    return file;
  }
  void* data = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED,
                      fd.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  file->content =
      std::make_shared<MappedBuffer>(static_cast<const uint8_t*>(data), info.st_size);
  return file;
}

}  // namespace

OpenedFile::Identity OpenedFile::Identity::Of(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size, Nanoseconds(info.st_mtim),
          Nanoseconds(info.st_ctim)};
}

// All members guarded by `mutex`.
struct FileCache::State {
  using File = std::shared_ptr<const OpenedFile>;
  struct Entry {
    std::string path;
    File file;
  };
  using Entries = std::list<Entry>;

  std::mutex mutex;
  Entries entries;  // most recently used first
  std::unordered_map<std::string_view, Entries::iterator> by_path;  // views into entries
  int64_t heap_bytes = 0;

  // Files to be closed go to `dropped`, to be released outside of the lock.
  void Remove(Entries::iterator entry, std::vector<File>* dropped) {
    heap_bytes -= entry->file->heap_bytes;
    dropped->push_back(std::move(entry->file));
    by_path.erase(entry->path);
    entries.erase(entry);
  }
};

struct FileCache::Impl {
  explicit Impl(int max) : max_files(max) {}
  const int max_files;
  mutable ForkAware<State> state{[] { return std::make_unique<State>(); }};
};

FileCache::FileCache(int max_files) : impl_(std::make_unique<Impl>(max_files)) {}
FileCache::~FileCache() = default;

Result<std::shared_ptr<const OpenedFile>> FileCache::Open(const std::string& path) {
  State& state = impl_->state.get();
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    const int error_number = errno;
    if (error_number == ENOENT) Forget(path);
    return ErrnoStatus(error_number, "open", path);
  }
  const auto identity = OpenedFile::Identity::Of(info);
  std::vector<State::File> dropped;
  {
    std::lock_guard lock(state.mutex);
    auto found = state.by_path.find(path);
    if (found != state.by_path.end()) {
      const auto entry = found->second;
      if (entry->file->identity == identity) {
        state.entries.splice(state.entries.begin(), state.entries, entry);
        return entry->file;
      }
      state.Remove(entry, &dropped);
    }
  }
  GLAIVE_RETURN_NOT_OK(CheckRegular(info, path));
  GLAIVE_ASSIGN_OR_RETURN(State::File file, OpenUncached(path));
  if (impl_->max_files <= 0) return file;
  {
    std::lock_guard lock(state.mutex);
    auto found = state.by_path.find(path);  // another thread may have been faster
    if (found != state.by_path.end()) state.Remove(found->second, &dropped);
    state.entries.push_front({path, file});
    state.by_path.emplace(state.entries.front().path, state.entries.begin());
    state.heap_bytes += file->heap_bytes;
    while (state.entries.size() > static_cast<size_t>(impl_->max_files) ||
           state.heap_bytes > kMaxCopiedBytesTotal) {
      state.Remove(std::prev(state.entries.end()), &dropped);
    }
  }
  return file;
}

void FileCache::Forget(const std::string& path) {
  State& state = impl_->state.get();
  std::vector<State::File> dropped;
  std::lock_guard lock(state.mutex);
  const auto found = state.by_path.find(path);
  if (found != state.by_path.end()) state.Remove(found->second, &dropped);
}

void FileCache::ForgetTree(const std::string& directory) {
  State& state = impl_->state.get();
  std::vector<State::File> dropped;
  const std::string below = directory + "/";
  std::lock_guard lock(state.mutex);
  for (auto entry = state.entries.begin(); entry != state.entries.end();) {
    const auto next = std::next(entry);
    if (entry->path == directory || entry->path.starts_with(below)) {
      state.Remove(entry, &dropped);
    }
    entry = next;
  }
}

int64_t FileCache::num_files() const {
  State& state = impl_->state.get();
  std::lock_guard lock(state.mutex);
  return static_cast<int64_t>(state.entries.size());
}

Result<std::shared_ptr<arrow::Buffer>> ReadWholeFile(const std::string& path) {
  struct stat info;
  GLAIVE_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(path, &info));
  return CopyContent(fd.get(), info.st_size, path);
}

}  // namespace glaive::io
