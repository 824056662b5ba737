// What this process may use of the machine: the affinity mask and the cgroup's limits.
#pragma once

#include <cstdint>
#include <string>

namespace glaive {

struct CgroupLimits {
  double cpus = 0;           // 0: unlimited
  int64_t memory_bytes = 0;  // 0: unlimited
};

// The tightest limits on the way from this process's control group to the root, version 1
// or 2. `root` is prepended to the system's paths (for tests). What cannot be read counts
// as unlimited.
CgroupLimits ReadCgroupLimits(const std::string& root = "");

// CPUs that this process may keep busy, at least 1: the affinity mask, bounded by the
// cgroup's quota (rounded up).
int GrantedCpus();

// Memory that this process may use, bytes: that of the machine, bounded by the cgroup.
int64_t GrantedMemoryBytes();

}  // namespace glaive
