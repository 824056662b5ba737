// Objects as files below a directory of the local file system.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <arrow/buffer.h>
#include <sys/stat.h>

#include "io/file_cache.h"
#include "io/local_writer.h"
#include "io/object_store.h"
#include "io/path.h"
#include "io/posix_file.h"
#include "io/publish.h"

namespace glaive::io {
namespace {

// What a store shares with all its children.
struct Shared {
  explicit Shared(const LocalStoreOptions& options)
      : files(options.max_open_files), publish(options.publish_method) {}
  FileCache files;
  PublishWays publish;
};

class LocalObject : public RandomAccessObject {
 public:
  LocalObject(std::string_view path, std::shared_ptr<const OpenedFile> file)
      : path_(path), file_(std::move(file)) {}

  const std::string& path() const override { return path_; }
  int64_t size_bytes() const override { return file_->size_bytes; }

  Result<std::shared_ptr<arrow::Buffer>> Read(ByteRange range) override {
    GLAIVE_RETURN_NOT_OK(CheckRange(range, size_bytes(), path_));
    return std::make_shared<arrow::Buffer>(file_->content, range.offset, range.length);
  }

  Result<std::vector<std::shared_ptr<arrow::Buffer>>> ReadMany(
      std::span<const ByteRange> ranges) override {
    std::vector<std::shared_ptr<arrow::Buffer>> buffers;
    buffers.reserve(ranges.size());
    for (const ByteRange& range : ranges) {
      GLAIVE_ASSIGN_OR_RETURN(buffers.emplace_back(), Read(range));
    }
    return buffers;
  }

 private:
  const std::string path_;
  const std::shared_ptr<const OpenedFile> file_;
};

int64_t ModifiedMicros(const struct stat& info) {
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000 +
         info.st_mtim.tv_nsec / 1000;
}

// Calls visit(name, is_directory, descriptor of the directory) for each entry, temporary
// files left out. A missing directory has no entries.
template <typename Visit>
Status ForEachEntry(const std::string& directory, bool with_temporaries, Visit visit) {
  FileDescriptor fd = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return Status::OK();
    return ErrnoStatus(errno, "list", directory);
  }
  DIR* stream = ::fdopendir(fd.get());
  if (stream == nullptr) return ErrnoStatus(errno, "list", directory);
  const int dir_fd = fd.Release();  // closed with the stream
  Status status;
  while (status.ok()) {
    errno = 0;
    const struct dirent* entry = ::readdir(stream);
    if (entry == nullptr) {
      if (errno != 0) status = ErrnoStatus(errno, "list", directory);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool is_directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
      struct stat info;
      if (::fstatat(dir_fd, entry->d_name, &info, 0) != 0) continue;  // gone, or dangling
      is_directory = S_ISDIR(info.st_mode);
    }
    if (!is_directory && !with_temporaries && name.starts_with(kTemporaryPrefix))
      continue;
    status = visit(entry->d_name, is_directory, dir_fd);
  }
  ::closedir(stream);
  return status;
}

Status ListInto(const std::string& directory, const std::string& prefix, bool recursive,
                int depth, std::vector<ObjectInfo>* out) {
  // A cycle of symbolic links would otherwise lead nowhere.
  if (depth > 64) {
    return InvalidInput("cannot list '", directory, "': more than 64 nested directories");
  }
  std::vector<std::string> below;
  GLAIVE_RETURN_NOT_OK(ForEachEntry(
      directory, false, [&](const char* name, bool is_directory, int dir_fd) -> Status {
        if (is_directory && recursive) {
          below.emplace_back(name);
          return Status::OK();
        }
        struct stat info;
        if (::fstatat(dir_fd, name, &info, 0) != 0) {
          if (errno == ENOENT) return Status::OK();  // deleted meanwhile
          return ErrnoStatus(errno, "look at", JoinPath(directory, name));
        }
        out->push_back({JoinPath(prefix, name), is_directory ? 0 : info.st_size,
                        ModifiedMicros(info), is_directory});
        return Status::OK();
      }));
  for (const std::string& name : below) {
    GLAIVE_RETURN_NOT_OK(ListInto(JoinPath(directory, name), JoinPath(prefix, name), true,
                                  depth + 1, out));
  }
  return Status::OK();
}

// Symbolic links are removed, not followed.
Status RemoveTree(const std::string& directory) {
  std::vector<std::string> names;
  GLAIVE_RETURN_NOT_OK(
      ForEachEntry(directory, true, [&](const char* name, bool, int) -> Status {
        names.emplace_back(name);
        return Status::OK();
      }));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) return ErrnoStatus(errno, "delete", path);
    GLAIVE_RETURN_NOT_OK(RemoveTree(path));
  }
  if (::rmdir(directory.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, "delete directory", directory);
  }
  return Status::OK();
}

class LocalStore : public ObjectStore {
 public:
  // Every operation of a store whose way here was invalid fails with `validity`.
  LocalStore(std::string root, std::shared_ptr<Shared> shared, Status validity)
      : root_(std::move(root)),
        shared_(std::move(shared)),
        validity_(std::move(validity)) {}

  const std::string& root() const override { return root_; }
  bool lists_in_order() const override { return false; }

  std::shared_ptr<ObjectStore> Child(std::string_view path) override {
    Status validity = validity_.ok() ? ValidateDirectoryPath(path).status() : validity_;
    return std::make_shared<LocalStore>(JoinPath(root_, path), shared_, validity);
  }

  Result<std::shared_ptr<RandomAccessObject>> Open(
      std::string_view path, std::optional<int64_t> size_hint) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<const OpenedFile> file,
                            shared_->files.Open(full));
    GLAIVE_RETURN_NOT_OK(CheckSizeHint(size_hint, file->size_bytes, full));
    return std::make_shared<LocalObject>(path, std::move(file));
  }

  Result<std::shared_ptr<arrow::Buffer>> Get(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    return ReadWholeFile(full);
  }

  Result<ObjectInfo> Head(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    struct stat info;
    if (::stat(full.c_str(), &info) != 0) {
      return ErrnoStatus(errno == ENOTDIR ? ENOENT : errno, "look at", full);
    }
    if (S_ISDIR(info.st_mode)) return ErrnoStatus(ENOENT, "look at", full);
    return ObjectInfo{std::string(path), info.st_size, ModifiedMicros(info), false};
  }

  Result<bool> Exists(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    struct stat info;
    if (::stat(full.c_str(), &info) == 0) return !S_ISDIR(info.st_mode);
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ErrnoStatus(errno, "look at", full);
  }

  Result<std::vector<ObjectInfo>> List(std::string_view prefix, bool recursive) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullDirectory(&prefix));
    std::vector<ObjectInfo> found;
    GLAIVE_RETURN_NOT_OK(ListInto(full, std::string(prefix), recursive, 0, &found));
    std::sort(found.begin(), found.end(),
              [](const ObjectInfo& a, const ObjectInfo& b) { return a.path < b.path; });
    return found;
  }

  Result<std::vector<std::string>> ListNames(std::string_view directory) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullDirectory(&directory));
    std::vector<std::string> names;
    GLAIVE_RETURN_NOT_OK(ForEachEntry(
        full, false, [&](const char* name, bool is_directory, int) -> Status {
          if (!is_directory) names.emplace_back(name);
          return Status::OK();
        }));
    return names;
  }

  Result<std::unique_ptr<ObjectWriter>> Create(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(std::string full, FullPath(path));
    return LocalWriter::Make(std::move(full));
  }

  Status Put(std::string_view path, std::span<const uint8_t> bytes,
             bool durable) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    return ReplaceFile(full, bytes, durable);
  }

  Status PutPartsIfAbsent(std::string_view path, ByteParts parts, bool durable) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    const std::string parent(ParentPath(full));
    Status status = WriteNewFile(full, parts, durable, &shared_->publish);
    if (KindOf(status) == ErrorKind::kNotFound) {
      GLAIVE_RETURN_NOT_OK(MakeDirectories(parent, true));
      status = WriteNewFile(full, parts, durable, &shared_->publish);
    }
    return status;
  }

  Result<std::unique_ptr<PreparedPut>> PreparePutIfAbsent(std::string_view path,
                                                          ByteParts parts) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    auto file = NewFile::Make(full, parts, &shared_->publish.method);
    if (KindOf(file.status()) == ErrorKind::kNotFound) {
      GLAIVE_RETURN_NOT_OK(MakeDirectories(std::string(ParentPath(full)), true));
      file = NewFile::Make(full, parts, &shared_->publish.method);
    }
    GLAIVE_RETURN_NOT_OK(file.status());
    (*file)->StartWriteback();
    return std::unique_ptr<PreparedPut>(std::move(*file));
  }

  Status Delete(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullPath(path));
    shared_->files.Forget(full);
    if (::unlink(full.c_str()) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return Status::OK();
      return ErrnoStatus(errno, "delete", full);
    }
    return SyncDirectory(std::string(ParentPath(full)));
  }

  std::vector<Status> DeleteMany(std::span<const std::string> paths) override {
    std::vector<Status> outcomes;
    outcomes.reserve(paths.size());
    std::set<std::string> directories;
    for (const std::string& path : paths) {
      auto full = FullPath(path);
      if (!full.ok()) {
        outcomes.push_back(full.status());
        continue;
      }
      shared_->files.Forget(*full);
      if (::unlink(full->c_str()) == 0) {
        directories.emplace(ParentPath(*full));
        outcomes.push_back(Status::OK());
      } else if (errno == ENOENT || errno == ENOTDIR) {
        outcomes.push_back(Status::OK());
      } else {
        outcomes.push_back(ErrnoStatus(errno, "delete", *full));
      }
    }
    // The files are gone for everybody; should a crash bring some back, they are only
    // in the way of nobody.
    for (const std::string& directory : directories) {
      Status ignored = SyncDirectory(directory);
      static_cast<void>(ignored.ok());
    }
    return outcomes;
  }

  Result<int64_t> DeleteTemporaries(std::string_view directory,
                                    int64_t before_us) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullDirectory(&directory));
    // Those of this process may be in use: everything up to its counter.
    std::string own = TemporaryPathFor("x");
    own.resize(own.rfind('-') + 1);
    int64_t bytes = 0;
    GLAIVE_RETURN_NOT_OK(ForEachEntry(
        full, true, [&](const char* name, bool is_directory, int dir_fd) -> Status {
          struct stat info;
          const std::string_view found(name);
          if (is_directory || !found.starts_with(kTemporaryPrefix) ||
              found.starts_with(own) ||
              ::fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
              ModifiedMicros(info) >= before_us) {
            return Status::OK();
          }
          if (::unlinkat(dir_fd, name, 0) == 0) bytes += info.st_size;
          return Status::OK();
        }));
    return bytes;
  }

  Status DeleteTree(std::string_view prefix) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full, FullDirectory(&prefix));
    shared_->files.ForgetTree(full);
    struct stat info;
    if (::lstat(full.c_str(), &info) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return Status::OK();
      return ErrnoStatus(errno, "delete", full);
    }
    if (!S_ISDIR(info.st_mode)) return ErrnoStatus(ENOTDIR, "delete directory", full);
    GLAIVE_RETURN_NOT_OK(RemoveTree(full));
    return SyncDirectory(std::string(ParentPath(full)));
  }

  Status Rename(std::string_view from, std::string_view to) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string full_from, FullPath(from));
    GLAIVE_ASSIGN_OR_RETURN(const std::string full_to, FullPath(to));
    struct stat info;
    if (::lstat(full_from.c_str(), &info) != 0) {
      return ErrnoStatus(errno, "rename", full_from);
    }
    const std::string parent_from(ParentPath(full_from));
    const std::string parent_to(ParentPath(full_to));
    GLAIVE_RETURN_NOT_OK(MakeDirectories(parent_to, true));
    if (::rename(full_from.c_str(), full_to.c_str()) != 0) {
      return ErrnoStatus(errno, "rename", errno == ENOTEMPTY ? full_to : full_from);
    }
    shared_->files.ForgetTree(full_from);
    shared_->files.ForgetTree(full_to);
    GLAIVE_RETURN_NOT_OK(SyncDirectory(parent_to));
    return parent_from == parent_to ? Status::OK() : SyncDirectory(parent_from);
  }

 private:
  Result<std::string> FullPath(std::string_view path) const {
    GLAIVE_RETURN_NOT_OK(validity_);
    GLAIVE_RETURN_NOT_OK(ValidateObjectPath(path));
    return JoinPath(root_, path);
  }

  // Also takes the '/' at the end off `*directory`.
  Result<std::string> FullDirectory(std::string_view* directory) const {
    GLAIVE_RETURN_NOT_OK(validity_);
    GLAIVE_ASSIGN_OR_RETURN(*directory, ValidateDirectoryPath(*directory));
    return JoinPath(root_, *directory);
  }

  const std::string root_;
  const std::shared_ptr<Shared> shared_;
  const Status validity_;
};

}  // namespace

Result<std::shared_ptr<ObjectStore>> OpenLocalStore(std::string_view directory,
                                                    bool create,
                                                    LocalStoreOptions options) {
  if (directory.empty()) return InvalidInput("the path of a directory must not be empty");
  if (directory.find('\0') != std::string_view::npos) {
    return InvalidInput("the path of a directory must not contain a NUL byte");
  }
  // Made absolute and free of ".." by text alone, so that equal directories have equal
  // roots.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory, error);
  if (error) return ErrnoStatus(error.value(), "find", directory);
  std::string root = absolute.lexically_normal().string();
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();

  struct stat info;
  if (::stat(root.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return ErrnoStatus(ENOTDIR, "open directory", root);
  } else if (errno == ENOENT && create) {
    GLAIVE_RETURN_NOT_OK(MakeDirectories(root, true));
  } else {
    return ErrnoStatus(errno, "open directory", root);
  }
  return std::make_shared<LocalStore>(std::move(root), std::make_shared<Shared>(options),
                                      Status::OK());
}

}  // namespace glaive::io
