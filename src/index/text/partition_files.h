// The files of a full-text index with one partition, in version 2 of the format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "file/version.h"
#include "index/text/partition.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::text {

struct TextIndexFile {
  std::string name;
  int64_t size_bytes = 0;
};

// Writes the partition, which holds a document, as number `id` into `directory`.
Result<std::vector<TextIndexFile>> WriteTextIndex(io::ObjectStore& store,
                                                  const std::string& directory,
                                                  const Partition& partition, uint64_t id,
                                                  file::FileVersion version);

}  // namespace glaive::text
