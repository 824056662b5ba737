// Versions that this process is reading, so that upkeep leaves them alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

// Announces one version as long as it lives.
class LiveVersion {
 public:
  LiveVersion(const io::ObjectStore& store, int64_t version);
  ~LiveVersion();
  LiveVersion(const LiveVersion&) = delete;
  LiveVersion& operator=(const LiveVersion&) = delete;

 private:
  const std::string root_;
  const int64_t version_;
};

// Ascending, without repeats. Thread-safe.
std::vector<int64_t> LiveVersions(const io::ObjectStore& store);

}  // namespace glaive::table
