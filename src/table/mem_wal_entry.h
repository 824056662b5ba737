// What the table layer knows of the system index __lance_mem_wal, by which a table says
// that it has an LSM write path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

inline constexpr char kMemWalIndex[] = "__lance_mem_wal";

// Corruption when the index section does not decode.
Result<bool> HasMemWal(const Dataset& dataset);
// The highest generation of a shard (16 bytes) that is recorded as merged; 0: none, also
// without an entry.
Result<uint64_t> RecordedGeneration(const Dataset& dataset, std::string_view shard);
// InvalidInput "cannot `what` a table with a MemWAL attached: `why`" when it has one.
Status CheckNoMemWal(const Dataset& dataset, const std::string& what,
                     const std::string& why);

}  // namespace glaive::table
