// Where the keys of a table's rows are: an index per fragment that is built when it is
// first asked, or a scan of the key columns where such indices would not fit.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "memwal/file_keys.h"
#include "memwal/keys.h"
#include "runtime/fork.h"
#include "table/dataset.h"

namespace glaive::memwal {

// Of one version of a table, which every call takes again, so that keeping this does not
// keep the version alive. Thread-safe. Indices are kept in the runtime's cache by the
// data files that hold the key columns: a new version of the table costs what is new.
class BaseKeys {
 public:
  // Indices may take so many bytes together; 0: a quarter of the memory budget, at most
  // half a GiB.
  static Result<std::shared_ptr<const BaseKeys>> Make(
      const table::Dataset& base, const std::vector<std::string>& key_columns,
      int64_t max_bytes = 0);

  struct Place {
    int fragment = 0;  // index in the snapshot
    uint32_t offset = 0;
  };
  // A live row of each key, where there is one.
  Result<std::vector<std::optional<Place>>> FindLive(const table::Dataset& base,
                                                     const EncodedKeys& keys) const;

  // The physical offsets, ascending, of the rows that have one of `keys`, for each of
  // `fragments` (indices in the snapshot); deleted rows may be among them.
  Result<std::vector<std::vector<uint32_t>>> Matching(const table::Dataset& base,
                                                      const std::vector<int>& fragments,
                                                      const EncodedKeys& keys) const;

  // Names the data files that hold the keys of a fragment. What is known of them holds
  // for as long as they exist.
  const std::string& file_of(int fragment) const {
    return files_[static_cast<size_t>(fragment)];
  }
  bool indexed() const { return indexed_; }

 private:
  BaseKeys() = default;
  Result<std::vector<std::shared_ptr<const FileKeys>>> Indices(
      const table::Dataset& base, const std::vector<int>& fragments) const;
  Result<std::vector<std::vector<uint32_t>>> ScanMatching(
      const table::Dataset& base, const std::vector<int>& fragments,
      const EncodedKeys& keys) const;

  file::Schema key_columns_;
  std::vector<std::string> files_;  // by fragment
  bool indexed_ = true;
  mutable ForkSafeMutex mutex_;
  mutable std::vector<std::shared_ptr<const FileKeys>> indices_;  // guarded by mutex_
};

}  // namespace glaive::memwal
