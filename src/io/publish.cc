#include "io/publish.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include <linux/fs.h>
#include <sys/stat.h>

#include "io/path.h"
#include "io/posix_file.h"

namespace glaive::io {
namespace {

// The call cannot work on this file system, as opposed to having failed this once.
bool IsRefusal(int error_number) {
  switch (error_number) {
    case EPERM:
    case EACCES:  // SELinux and some FUSE file systems, although the directory is
                  // writable
    case ENOSYS:
    case EINVAL:
    case EXDEV:
    case EMLINK:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat info_a, info_b;
  return ::stat(a.c_str(), &info_a) == 0 && ::stat(b.c_str(), &info_b) == 0 &&
         info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

Status CreateExclusively(const std::string& path, ByteParts parts, bool durable) {
  const FileDescriptor fd = OpenFile(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!fd.valid()) return ErrnoStatus(errno, "create", path);
  Status status = WriteParts(fd.get(), parts, path);
  if (status.ok() && durable) status = SyncFile(fd.get(), path);
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

// 0, EEXIST, or another errno.
int ClaimName(const std::string& temporary, const std::string& path,
              PublishMethod method) {
  if (method == PublishMethod::kRenameNoReplace) {
    const int rc = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(),
                               RENAME_NOREPLACE);
    return rc == 0 ? 0 : errno;
  }
  int error_number = ::link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  // Over NFS a lost reply makes the client ask again and be told EEXIST or another error
  // although its own first attempt went through.
  if (error_number != 0 && SameFile(temporary, path)) error_number = 0;
  if (error_number == 0) ::unlink(temporary.c_str());
  return error_number;
}

// Gives a file without a name its first one. 0 or errno.
int LinkUnnamed(int fd, const std::string& path) {
  if (::linkat(fd, "", AT_FDCWD, path.c_str(), AT_EMPTY_PATH) == 0) return 0;
  if (errno != ENOENT) return errno;
  // Before Linux 6.10 that takes a capability; this way does not.
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0
             ? 0
             : errno;
}

// False: not on this file system, or this once; nothing was written.
Result<bool> WriteUnnamed(const std::string& path, ByteParts parts, PublishWays* ways) {
  const std::string parent(ParentPath(path));
  FileDescriptor fd = OpenFile(parent, O_WRONLY | O_TMPFILE);
  if (!fd.valid()) {
    if (errno == ENOENT) return ErrnoStatus(errno, "create", path);
    if (IsRefusal(errno) || errno == EISDIR) {
      ways->unnamed.store(false, std::memory_order_relaxed);
    }
    return false;
  }
  GLAIVE_RETURN_NOT_OK(WriteParts(fd.get(), parts, path));
  const int error_number = LinkUnnamed(fd.get(), path);
  if (error_number == 0) return true;
  if (error_number == EEXIST) return ErrnoStatus(error_number, "create", path);
  if (IsRefusal(error_number) || error_number == ENOENT) {
    ways->unnamed.store(false, std::memory_order_relaxed);
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<NewFile>> NewFile::Make(std::string path, ByteParts parts,
                                               std::atomic<PublishMethod>* method) {
  std::unique_ptr<NewFile> file(new NewFile(std::move(path), parts, method));
  if (method->load(std::memory_order_relaxed) == PublishMethod::kExclusiveCreate) {
    const std::string directory(ParentPath(file->path_));
    struct stat info;
    if (::stat(directory.c_str(), &info) != 0) {
      return ErrnoStatus(errno, "create", file->path_);
    }
    return file;
  }
  std::string temporary = TemporaryPathFor(file->path_);
  file->fd_ = OpenFile(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!file->fd_.valid()) return ErrnoStatus(errno, "create", file->path_);
  file->temporary_ = std::move(temporary);
  GLAIVE_RETURN_NOT_OK(WriteParts(file->fd_.get(), file->parts_, file->path_));
  return file;
}

void NewFile::StartWriteback() {
  size_t size = 0;
  for (const auto& part : parts_) size += part.size();
  if (fd_.valid()) io::StartWriteback(fd_.get(), 0, static_cast<int64_t>(size));
}

NewFile::~NewFile() { Drop(); }

void NewFile::Drop() {
  fd_.Close();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status NewFile::Sync() {
  if (!fd_.valid()) return Status::OK();
  GLAIVE_RETURN_NOT_OK(SyncFile(fd_.get(), path_));
  fd_.Close();
  return Status::OK();
}

Status NewFile::Publish(bool durable) {
  Status status = durable ? Sync() : Status::OK();
  fd_.Close();  // before others see it: network file systems write out what is left
  if (status.ok()) status = Claim(durable);
  Drop();
  GLAIVE_RETURN_NOT_OK(status);
  return durable ? SyncDirectory(std::string(ParentPath(path_))) : Status::OK();
}

Status NewFile::Claim(bool durable) {
  PublishMethod current = method_->load(std::memory_order_relaxed);
  if (temporary_.empty()) return CreateExclusively(path_, parts_, durable);
  if (current == PublishMethod::kExclusiveCreate) {
    current = PublishMethod::kLink;  // refused to another file since this one was made
  }
  int error_number = ClaimName(temporary_, path_, current);
  while (error_number != 0 && IsRefusal(error_number)) {
    if (current == PublishMethod::kRenameNoReplace) {
      GLAIVE_RETURN_NOT_OK(CreateExclusively(path_, parts_, durable));
      method_->store(PublishMethod::kExclusiveCreate, std::memory_order_relaxed);
      return Status::OK();
    }
    current = PublishMethod::kRenameNoReplace;
    error_number = ClaimName(temporary_, path_, current);
    if (error_number == 0) method_->store(current, std::memory_order_relaxed);
  }
  if (error_number != 0) return ErrnoStatus(error_number, "create", path_);
  temporary_.clear();
  return Status::OK();
}

Status WriteNewFile(const std::string& path, ByteParts parts, bool durable,
                    PublishWays* ways) {
  if (!durable && ways->unnamed.load(std::memory_order_relaxed)) {
    GLAIVE_ASSIGN_OR_RETURN(const bool written, WriteUnnamed(path, parts, ways));
    if (written) return Status::OK();
  }
  std::atomic<PublishMethod>* method = &ways->method;
  // Saves the writing when somebody else was faster; the claim below is what decides.
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) return ErrnoStatus(EEXIST, "create", path);
  GLAIVE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(path, parts, method));
  return file->Publish(durable);
}

}  // namespace glaive::io
