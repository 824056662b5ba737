// Upkeep that runs by itself: small fragments are folded and old versions removed while
// a process writes to a table.
//
// One thread of low priority per process, started by the first write that leaves
// something to do. It gives way to calls: a fold that a concurrent change of rows makes
// useless is dropped. The thread stops at exit, and stands still while the process forks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::db {

struct MaintenanceSettings {
  bool enabled = true;
  // Versions younger than this stay, whatever else; so do tagged ones, those that
  // branches were made from, and those that this process has open.
  int64_t retention_us = int64_t{7} * 24 * 3600 * 1'000'000;
};

// From GLAIVE_AUTO_MAINTENANCE (0, false, off: none) and
// GLAIVE_AUTO_MAINTENANCE_RETENTION ("7days", "90s"), overridden by the options
// `auto_maintenance` ("true" or "false") and `auto_maintenance_retention`. InvalidInput
// names what does not parse.
Result<MaintenanceSettings> ParseMaintenanceSettings(
    const std::map<std::string, std::string>& storage_options);

// To be called with the version that a write made. Cheap; never blocks on I/O. Tables in
// memory are left alone.
void NoteWrite(const table::Dataset::Ptr& written, const MaintenanceSettings& settings);

// True when nothing was left to do before the time was over. For tests and for programs
// that end right after writing.
bool WaitForMaintenance(std::chrono::milliseconds most);

}  // namespace glaive::db
