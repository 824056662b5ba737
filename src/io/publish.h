// Gives a finished temporary file its name, or fails when the name is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/object_store.h"
#include "io/posix_file.h"

namespace glaive::io {

// Where to start, and what a file system refused. Thread-safe.
struct PublishWays {
  explicit PublishWays(PublishMethod start)
      : method(start), unnamed(start == PublishMethod::kLink) {}
  std::atomic<PublishMethod> method;
  // Files that need not be durable get no temporary name: two changes of the directory
  // less. Not for others: the name of one could be on the disk before the count of its
  // names is, where nothing is journalled, and it would be taken for deleted.
  std::atomic<bool> unnamed;
};

// A new file under a temporary name, until it is published. Where a file system offers
// no way to claim a name for it, the file is written when it is published.
class NewFile : public PreparedPut {
 public:
  // `path` is absolute. `method` is where to start and remembers what the file system
  // refused; it and the bytes of `parts` must live as long as the result. NotFound when
  // the directory does not exist.
  static Result<std::unique_ptr<NewFile>> Make(std::string path, ByteParts parts,
                                               std::atomic<PublishMethod>* method);
  ~NewFile() override;

  // Lets the bytes be on their way to the disk before Sync waits for them.
  void StartWriteback();
  Status Sync() override;
  Status Publish() override { return Publish(/*durable=*/true); }
  // AlreadyExists when the name is taken. Not `durable`: neither the file nor its
  // directory is synced.
  Status Publish(bool durable);

 private:
  NewFile(std::string path, ByteParts parts, std::atomic<PublishMethod>* method)
      : path_(std::move(path)), parts_(parts.begin(), parts.end()), method_(method) {}
  Status Claim(bool durable);
  void Drop();

  const std::string path_;
  const std::vector<std::span<const uint8_t>> parts_;
  std::atomic<PublishMethod>* const method_;
  std::string temporary_;  // empty: there is none
  FileDescriptor fd_;      // of it, until it is synced
};

// Writes `parts` to a new file at `path`, all at once. AlreadyExists when the name is
// taken; nothing is left behind on an error. Synced, as is its directory, if `durable`.
Status WriteNewFile(const std::string& path, ByteParts parts, bool durable,
                    PublishWays* ways);

}  // namespace glaive::io
