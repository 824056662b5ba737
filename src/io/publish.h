// Gives a finished temporary file its name, or fails when the name is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "io/object_store.h"

namespace glaive::io {

// Writes `parts` to a new file at `path`. AlreadyExists when the name is taken; nothing
// is left behind on an error. The file is synced if `durable`, the directory is not.
// `method` is where to start and remembers what the file system refused. NotFound when
// the directory does not exist.
Status WriteNewFile(const std::string& path, ByteParts parts, bool durable,
                    std::atomic<PublishMethod>* method);

}  // namespace glaive::io
