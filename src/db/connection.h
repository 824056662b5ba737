// A database: a directory of tables.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "db/table.h"

namespace glaive::memwal {
struct UpkeepSettings;  // memwal/upkeep.h
}

namespace glaive::db {

struct ConnectionOptions {
  ReadConsistency read_consistency;
  std::map<std::string, std::string> storage_options;
};

enum class CreateMode : uint8_t {
  kCreate,     // AlreadyExists when there is a table of this name
  kOverwrite,  // a new version with the new schema
  kExistOk,    // open what is there, the data is not looked at
};

struct CreateTableOptions {
  CreateMode mode = CreateMode::kCreate;
  std::map<std::string, std::string> storage_options;  // win over the connection's
  std::function<void(int64_t rows)> progress;
  CancelToken* cancel = nullptr;
  std::string directory;  // below the root; empty: as the name says
};

// Thread-safe. Names that are not allowed are InvalidInput, see ValidateTableName.
class Connection {
 public:
  // `uri` is a path, file:// (both made when missing) or memory:// (empty, and this
  // connection's own).
  static Result<std::shared_ptr<Connection>> Open(std::string_view uri,
                                                  ConnectionOptions options);

  // The store's root as an absolute path, or "memory://".
  const std::string& uri() const { return uri_; }
  const ReadConsistency& read_consistency() const { return options_.read_consistency; }
  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  // Later calls are Closed; tables already open stay usable.
  void Close() { open_.store(false, std::memory_order_relaxed); }

  // Sorted; names after `start_after`, at most `limit`.
  Result<std::vector<std::string>> TableNames(
      const std::optional<std::string>& start_after, std::optional<int64_t> limit);
  Result<bool> TableExists(std::string_view name);
  std::string TableUri(std::string_view name) const;
  // Pinned when `version` is given. `directory`, one name below the root: where the table
  // is when that does not follow from its name.
  Result<std::shared_ptr<Table>> OpenTable(
      std::string_view name, const std::optional<VersionRef>& version = std::nullopt,
      std::string_view directory = {});
  Result<std::shared_ptr<Table>> CreateTable(std::string_view name,
                                             arrow::RecordBatchReader& data,
                                             const CreateTableOptions& options);
  Result<std::shared_ptr<Table>> CreateEmptyTable(std::string_view name,
                                                  const arrow::Schema& schema,
                                                  const CreateTableOptions& options);
  // A shallow clone: a table of its own that begins with the files of another one where
  // they are. AlreadyExists when there is a table of that name.
  Result<std::shared_ptr<Table>> CloneTable(std::string_view name,
                                            const std::string& source_uri,
                                            const std::optional<VersionRef>& version);
  Status DropTable(std::string_view name, bool ignore_missing,
                   std::string_view directory = {});
  Status DropAllTables();
  // NotSupported on stores that cannot rename.
  Status RenameTable(std::string_view from, std::string_view to);

 private:
  Connection(std::string uri, table::TableEnv root, ConnectionOptions options);
  Status CheckUsable(std::string_view name, std::string_view directory = {}) const;
  Status CheckOpen() const;
  // Its files, after its writers of this process were told to stop.
  Status DeleteTable(std::string_view name, std::string_view directory = {});
  table::TableEnv EnvOf(std::string_view name, std::string_view directory = {}) const;
  std::string UriOf(const std::string& directory) const;
  std::shared_ptr<Table> MakeHandle(std::string_view name, table::Dataset::Ptr dataset,
                                    bool pinned, std::string_view directory = {}) const;
  template <typename WriteFn>
  Result<std::shared_ptr<Table>> Create(std::string_view name,
                                        const CreateTableOptions& options, WriteFn write);

  const std::string uri_;
  const table::TableEnv root_;
  const ConnectionOptions options_;
  std::shared_ptr<const MaintenanceSettings> maintenance_;    // set by Open
  std::shared_ptr<const memwal::UpkeepSettings> lsm_upkeep_;  // the same
  std::atomic<bool> open_{true};
};

}  // namespace glaive::db
