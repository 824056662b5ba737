// Where bytes live: a flat name space of immutable objects with conditional creation.
//
// Paths are relative to the store's root, separated by '/', without a leading '/', and
// may not contain "." or ".." segments (InvalidInput). All methods are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace arrow {
class Buffer;
}

namespace glaive::io {

struct ByteRange {
  int64_t offset = 0;
  int64_t length = 0;
};

// Pieces of one object, in order.
using ByteParts = std::span<const std::span<const uint8_t>>;

struct ObjectInfo {
  std::string path;
  int64_t size_bytes = 0;
  int64_t modified_us = 0;  // microseconds since the Unix epoch; 0: unknown
  bool is_directory = false;
};

// An open object. Immutable, so reads may run in parallel.
class RandomAccessObject {
 public:
  virtual ~RandomAccessObject() = default;
  virtual const std::string& path() const = 0;
  virtual int64_t size_bytes() const = 0;
  // Exactly `range`; Corruption when it lies outside the object (the file is truncated).
  // Local files: a zero-copy slice of the mapping, which the buffer keeps alive.
  virtual Result<std::shared_ptr<arrow::Buffer>> Read(ByteRange range) = 0;
  // Several ranges, in parallel and coalesced where the store gains by it; results in
  // order.
  virtual Result<std::vector<std::shared_ptr<arrow::Buffer>>> ReadMany(
      std::span<const ByteRange> ranges) = 0;
};

// A new object being written. Invisible under its name until Finish, then complete.
// Destruction without Finish leaves nothing behind.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  virtual Status Append(std::span<const uint8_t> bytes) = 0;
  virtual int64_t position() const = 0;
  // Durable on return (local: published, file synced, directory synced).
  virtual Status Finish() = 0;
  virtual void Abort() = 0;

  // Finish in two steps, so that several objects wait for the disk together: complete
  // under its name, then durable, on any thread. From Publish on the object is the
  // caller's to delete, also when Sync fails.
  virtual Status Publish() { return Finish(); }
  virtual Status Sync() { return Status::OK(); }
};

// A new object that has its bytes, but no name yet. Destruction without Publish leaves
// nothing behind.
class PreparedPut {
 public:
  virtual ~PreparedPut() = default;
  // Brings the bytes to the disk, on any thread.
  virtual Status Sync() = 0;
  // As a durable PutPartsIfAbsent, which does what Sync has not done. Once.
  virtual Status Publish() = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Identifies the store and root, e.g. "/data/db/t.lance" or "memory://7/t.lance". Cache
  // keys begin with it.
  virtual const std::string& root() const = 0;
  // A store whose root is `path` below this one. Cheap; shares everything else. When
  // `path` is invalid (see above), every operation of the child fails with InvalidInput.
  virtual std::shared_ptr<ObjectStore> Child(std::string_view path) = 0;
  // True when List returns paths in ascending byte order and does so by pages.
  virtual bool lists_in_order() const = 0;

  // `size_hint`: the known size, saves a round trip; checked against the real one.
  virtual Result<std::shared_ptr<RandomAccessObject>> Open(
      std::string_view path, std::optional<int64_t> size_hint = std::nullopt) = 0;
  virtual Result<std::shared_ptr<arrow::Buffer>> Get(std::string_view path) = 0;
  // Head and Exists know objects only: a directory is NotFound, or false.
  virtual Result<ObjectInfo> Head(std::string_view path) = 0;  // NotFound
  virtual Result<bool> Exists(std::string_view path) = 0;
  // All objects below `prefix` (a directory; empty: the root), recursively or one level
  // with directories. In ascending byte order of their paths. A missing directory lists
  // as empty.
  virtual Result<std::vector<ObjectInfo>> List(std::string_view prefix,
                                               bool recursive) = 0;
  // Base names of the objects directly in `directory`, in no order. A missing directory
  // lists as empty. Cheaper than List where sizes cost a call each.
  virtual Result<std::vector<std::string>> ListNames(std::string_view directory) = 0;

  virtual Result<std::unique_ptr<ObjectWriter>> Create(std::string_view path) = 0;
  // Replaces atomically, durable on return; few bytes that need not be, in place (hints).
  virtual Status Put(std::string_view path, std::span<const uint8_t> bytes,
                     bool durable = true) = 0;
  // AlreadyExists when `path` exists; otherwise as Put. Exactly one of several callers
  // succeeds. The object is `parts` one after the other, so that nobody has to join them.
  // Not `durable`: it survives the death of the process, not that of the machine.
  virtual Status PutPartsIfAbsent(std::string_view path, ByteParts parts,
                                  bool durable = true) = 0;
  Status PutIfAbsent(std::string_view path, std::span<const uint8_t> bytes) {
    return PutPartsIfAbsent(path, ByteParts(&bytes, 1));
  }
  // The same in two steps, so that the bytes reach the disk while something else does.
  // `parts` must live as long as the result. Nothing is checked about the name yet.
  virtual Result<std::unique_ptr<PreparedPut>> PreparePutIfAbsent(std::string_view path,
                                                                  ByteParts parts);
  virtual Status Delete(std::string_view path) = 0;  // a missing object is no error
  // Deletes each of `paths`; one outcome each. Cheaper than one by one where a deletion
  // is made durable by a call of its own.
  virtual std::vector<Status> DeleteMany(std::span<const std::string> paths);
  // Deletes what killed writers left under temporary names directly in `directory`, if
  // it was last changed before `before_us`; the bytes of it. Listings leave such files
  // out. 0 on stores that have none.
  virtual Result<int64_t> DeleteTemporaries(std::string_view directory,
                                            int64_t before_us);
  // Removes everything below `prefix` and the directory itself. A missing one is no
  // error.
  virtual Status DeleteTree(std::string_view prefix) = 0;
  // Renames an object (replacing another) or a directory (AlreadyExists when `to` is one
  // that is not empty). NotSupported on stores without it.
  virtual Status Rename(std::string_view from, std::string_view to) = 0;
};

// How a new name is claimed so that exactly one of several writers succeeds. Not every
// file system offers every way: each falls back to the next.
enum class PublishMethod : uint8_t {
  kLink,             // link(2): works on all usual local file systems and NFS
  kRenameNoReplace,  // renameat2(RENAME_NOREPLACE): where hard links are refused (FAT,
                     // some FUSE)
  kExclusiveCreate,  // open(O_EXCL) under the final name: other readers may see it half
                     // written
};

struct LocalStoreOptions {
  // Mapped files are kept up to this number (no descriptors are held). The kernel's bound
  // for all mappings of a process is usually 65,530.
  int max_open_files = 8192;
  // Where PutIfAbsent starts; what the file system refuses is left out by itself.
  PublishMethod publish_method = PublishMethod::kLink;
};

// A directory of the local file system; when missing, created if `create`, otherwise
// NotFound.
Result<std::shared_ptr<ObjectStore>> OpenLocalStore(std::string_view directory,
                                                    bool create,
                                                    LocalStoreOptions options = {});
// An empty store in memory, gone with its last reference.
std::shared_ptr<ObjectStore> MakeMemoryStore();

// Splits a URI into a store rooted there: a path ("~" is the home directory),
// file:///path, file:/path, or memory:// (a new, empty store each time). Other schemes:
// NotSupported.
Result<std::shared_ptr<ObjectStore>> OpenStore(std::string_view uri, bool create);

}  // namespace glaive::io
