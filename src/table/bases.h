// Files of a table that lie under other roots than its own: those of the table that a
// branch or shallow clone was made from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/fork.h"
#include "table/dataset.h"

namespace lance::table {
class DataFile;
class DeletionFile;
class Manifest;
}  // namespace lance::table

namespace glaive::table {

// The base paths of one manifest; their stores are opened when they are needed.
// Thread-safe.
class Bases {
 public:
  // Null when the manifest names none. Corruption when two have one id.
  static Result<std::shared_ptr<const Bases>> Make(const TableEnv& env,
                                                   const lance::table::Manifest& header);

  struct Base {
    std::shared_ptr<io::ObjectStore> store;
    bool is_dataset_root = false;  // else files lie right below, without directories
  };
  // Corruption when the manifest has no such base.
  Result<Base> Find(uint32_t id) const;

 private:
  struct Entry {
    std::string path;
    bool is_dataset_root = false;
    std::shared_ptr<io::ObjectStore> store;  // guarded by mutex_; null: not open yet
  };

  TableEnv env_;  // without bases and runtime
  // The runtime's cache keeps snapshots, and these their bases.
  std::weak_ptr<Runtime> runtime_;
  mutable ForkSafeMutex mutex_;
  mutable std::map<uint32_t, Entry> entries_;
};

// Where a file of the table is.
struct FilePlace {
  std::shared_ptr<io::ObjectStore> store;
  std::string path;
};
Result<FilePlace> PlaceOf(const TableEnv& env, const lance::table::DataFile& file);
Result<FilePlace> PlaceOf(const TableEnv& env, uint64_t fragment_id,
                          const lance::table::DeletionFile& file);

}  // namespace glaive::table
