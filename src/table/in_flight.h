// Files that this process is writing and that no version names yet: a clean-up of the
// same process must not take them for left-overs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

// Holds names as long as it lives. Not thread-safe itself; any number of them may exist.
class InFlightFiles {
 public:
  explicit InFlightFiles(const io::ObjectStore& store);
  ~InFlightFiles();
  InFlightFiles(const InFlightFiles&) = delete;
  InFlightFiles& operator=(const InFlightFiles&) = delete;

  // `path`: relative to the store's root.
  void Add(std::string_view path);

 private:
  const std::string prefix_;
  std::vector<std::string> keys_;
};

// Thread-safe.
bool IsInFlight(const io::ObjectStore& store, std::string_view path);

}  // namespace glaive::table
