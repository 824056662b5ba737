// Whether our transaction may be committed on top of one that came first.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace lance::table {
class Transaction;
}
namespace glaive::file {
class Schema;
}

namespace glaive::table {

enum class ConflictKind : uint8_t {
  kNone,          // nothing to do
  kRebase,        // both delete in a fragment: the rows decide, see table/row_deletions.h
  kRetryable,     // run the operation again on the newest version
  kIncompatible,  // the operation makes no sense any more
};

struct ConflictContext {
  // Schema that ours was made for.
  const file::Schema* schema = nullptr;
  // The rows that ours deletes are known, so that deletes of other rows can be merged.
  bool rows_known = false;
};

ConflictKind CheckConflict(const lance::table::Transaction& ours,
                           const lance::table::Transaction& theirs,
                           const ConflictContext& context);

// The errors, in upstream's words. `version` is theirs.
Status RetryableError(const lance::table::Transaction& ours,
                      const lance::table::Transaction& theirs, uint64_t version);
Status IncompatibleError(const lance::table::Transaction& ours,
                         const lance::table::Transaction& theirs, uint64_t version);

}  // namespace glaive::table
