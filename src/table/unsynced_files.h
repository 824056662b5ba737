// Files of a change that are written, but not on the disk yet: the commit brings them
// there, all at once, before a version names them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"

namespace lance::table {
class Transaction;
}
namespace glaive::io {
class ObjectStore;
class ObjectWriter;
}  // namespace glaive::io

namespace glaive::table {

struct TableEnv;

// Owns such files until a commit whose transaction names them takes them over: they must
// live until then. Files that no commit took are dropped, which leaves nothing behind.
// Thread-safe.
class UnsyncedFiles {
 public:
  explicit UnsyncedFiles(const io::ObjectStore& store);
  ~UnsyncedFiles();
  UnsyncedFiles(const UnsyncedFiles&) = delete;
  UnsyncedFiles& operator=(const UnsyncedFiles&) = delete;

  // `complete` has all bytes of the file at `path`, relative to the store's root.
  void Add(const std::string& path, std::unique_ptr<io::ObjectWriter> complete);
  // Gives up a file that is not needed any more. False when it may exist by now.
  bool Drop(const std::string& path);

 private:
  const std::string prefix_;
  std::mutex mutex_;
  std::vector<std::string> keys_;  // guarded by mutex_
};

// Makes the files durable that `transaction` names and that are owned by an UnsyncedFiles
// of this process, all at the same time, and runs `beside` meanwhile, each once. An error
// leaves some of them finished.
Status FinishUnsynced(const TableEnv& env, const lance::table::Transaction& transaction,
                      const std::vector<std::function<Status()>>& beside = {});

}  // namespace glaive::table
