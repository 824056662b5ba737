// Generations that readers of this process look at, so that collection leaves them alone.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace glaive::io {
class ObjectStore;
}

namespace glaive::memwal {

// Announces directories of generations (relative to the table, see GenerationDir) as long
// as it lives. To be taken before the shard manifest that names them is a grace old:
// right after it was read.
class LiveGenerations {
 public:
  LiveGenerations(const io::ObjectStore& table, std::vector<std::string> directories);
  ~LiveGenerations();
  LiveGenerations(const LiveGenerations&) = delete;
  LiveGenerations& operator=(const LiveGenerations&) = delete;

 private:
  const std::string root_;
  const std::vector<std::string> directories_;
};

// Those of one table that somebody announced. Thread-safe.
std::set<std::string> FindLiveGenerations(const io::ObjectStore& table);

}  // namespace glaive::memwal
