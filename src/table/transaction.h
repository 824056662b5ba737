// Transactions: what a commit did, as other writers need to know it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace lance::table {
class Transaction;
}
namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

struct ManifestFile;

// "Append", "Delete", ...; "Unknown" for an operation that this build does not know.
std::string_view OperationName(const lance::table::Transaction& transaction);

// Of a committed version: the inline section, else the .txn file. NotFound when there is
// neither.
Result<std::shared_ptr<const lance::table::Transaction>> ReadTransaction(
    io::ObjectStore& store, const ManifestFile& manifest);

// Ids of existing fragments that the operation removes or changes.
std::set<uint64_t> ModifiedFragments(const lance::table::Transaction& transaction);

}  // namespace glaive::table
