// Files of the local store, opened for reading and kept mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/stat.h>

#include "base/status.h"

namespace arrow {
class Buffer;
}

namespace glaive::io {

// The whole content of a file as it was when opened. Immutable.
struct OpenedFile {
  std::shared_ptr<arrow::Buffer> content;
  int64_t size_bytes = 0;
  int64_t heap_bytes = 0;  // what of it is memory of its own, not a mapping

  // The file that a name led to, and its last change: a replaced or rewritten file
  // differs.
  struct Identity {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size_bytes = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    bool operator==(const Identity&) const = default;
    static Identity Of(const struct stat& info);
  } identity;
};

// Opens files whole: big ones as a mapping, small ones as a copy (cheaper than a mapping
// below some pages, and safe against other programs that truncate files). Keeps the most
// recently used ones, without holding descriptors. Thread-safe; survives fork.
//
// A file that another program truncates while it is mapped raises SIGBUS when the lost
// pages are touched. Lance files are never changed in place, so this is left to the
// kernel; sizes are checked each time a file is opened.
class FileCache {
 public:
  explicit FileCache(int max_files);
  ~FileCache();

  // NotFound, InvalidInput for what is not a regular file. One stat(2) when the file is
  // known.
  Result<std::shared_ptr<const OpenedFile>> Open(const std::string& path);

  // Forgets `path`, so that a deleted file frees its disk space.
  void Forget(const std::string& path);
  // Forgets `directory` and everything below it.
  void ForgetTree(const std::string& directory);

  int64_t num_files() const;

 private:
  struct State;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The content of a file as a copy in memory, not kept.
Result<std::shared_ptr<arrow::Buffer>> ReadWholeFile(const std::string& path);

}  // namespace glaive::io
