// Gives a finished temporary file its name, or fails when the name is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "io/object_store.h"

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

// Writes `parts` to a new file at `path`. AlreadyExists when the name is taken; nothing
// is left behind on an error. The file is synced if `durable`, the directory is not.
// NotFound when the directory does not exist.
Status WriteNewFile(const std::string& path, ByteParts parts, bool durable,
                    PublishWays* ways);

}  // namespace glaive::io
