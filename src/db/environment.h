// What connections and datasets need from outside: the process's runtime, stores, table
// names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::db {

// The runtime that handles of this process share, made at first use. Thread-safe.
Result<std::shared_ptr<Runtime>> DefaultRuntime();

// InvalidInput unless `name` matches ^[a-zA-Z0-9_\-\.]+$, is neither "." nor "..", and
// makes a directory name that file systems take.
Status ValidateTableName(std::string_view name);

// "t" <-> "t.lance", the directory of a table below its database.
std::string TableDirectory(std::string_view name);

// The environment of the table whose directory is `uri` (a path, file:// or memory://).
Result<table::TableEnv> OpenTableEnv(std::string_view uri, bool create);

// Keys of `storage_options` that decide how new tables are written; others belong to
// stores. InvalidInput names a value that does not parse.
Status ApplyNewTableOptions(const std::map<std::string, std::string>& storage_options,
                            table::WriteOptions* options);

}  // namespace glaive::db
