#include "runtime/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace glaive {
namespace {

// Version 1 spells "no limit" as a number near 2^63.
constexpr int64_t kUnlimitedMemory = int64_t{1} << 60;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// 0 when the file is missing or holds no positive number ("max", -1).
double ReadNumber(const std::string& path) {
  double value = 0;
  std::istringstream line(FirstLine(path));
  return line >> value && value > 0 ? value : 0;
}

double Tighter(double a, double b) {
  if (a <= 0) return b;
  if (b <= 0) return a;
  return std::min(a, b);
}

void AddMemory(double bytes, CgroupLimits* limits) {
  if (bytes <= 0 || bytes >= static_cast<double>(kUnlimitedMemory)) return;
  limits->memory_bytes =
      static_cast<int64_t>(Tighter(static_cast<double>(limits->memory_bytes), bytes));
}

void AddVersion2(const std::string& directory, CgroupLimits* limits) {
  std::istringstream line(FirstLine(directory + "/cpu.max"));
  double quota = 0, period = 0;
  if (line >> quota >> period && quota > 0 && period > 0) {
    limits->cpus = Tighter(limits->cpus, quota / period);
  }
  AddMemory(ReadNumber(directory + "/memory.max"), limits);
}

void AddVersion1Cpu(const std::string& directory, CgroupLimits* limits) {
  const double quota = ReadNumber(directory + "/cpu.cfs_quota_us");
  const double period = ReadNumber(directory + "/cpu.cfs_period_us");
  if (quota > 0 && period > 0) limits->cpus = Tighter(limits->cpus, quota / period);
}

void AddVersion1Memory(const std::string& directory, CgroupLimits* limits) {
  AddMemory(ReadNumber(directory + "/memory.limit_in_bytes"), limits);
}

// Calls add(directory) for `group` below `mount` and for each group above it. Inside a
// container the own group may be mounted as the root, so that is always looked at.
template <typename Add>
void Climb(const std::string& mount, std::string group, Add add) {
  while (group.size() > 1) {
    add(mount + group);
    group.resize(group.rfind('/'));
  }
  add(mount);
}

bool HasController(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

CgroupLimits ReadCgroupLimits(const std::string& root) {
  CgroupLimits limits;
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  // Lines "hierarchy-id:controllers:/group"; version 2 has id 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second =
        first == std::string::npos ? std::string::npos : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (!group.starts_with('/')) continue;
    if (controllers.empty()) {
      for (const char* below : {"", "/unified"}) {
        Climb(mount + below, group,
              [&](const std::string& directory) { AddVersion2(directory, &limits); });
      }
      continue;
    }
    // Mounted under the controller's own name or under the whole list.
    if (HasController(controllers, "cpu")) {
      for (const std::string& name : {std::string("cpu"), controllers}) {
        Climb(mount + "/" + name, group,
              [&](const std::string& directory) { AddVersion1Cpu(directory, &limits); });
      }
    }
    if (HasController(controllers, "memory")) {
      Climb(mount + "/memory", group,
            [&](const std::string& directory) { AddVersion1Memory(directory, &limits); });
    }
  }
  return limits;
}

int GrantedCpus() {
  int cpus = 0;
  // The mask of a machine with more than 1,024 CPUs does not fit cpu_set_t: grow until it
  // does.
  for (int bits = CPU_SETSIZE; bits <= (1 << 20) && cpus == 0; bits *= 4) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    if (mask == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    CPU_ZERO_S(bytes, mask);
    if (::sched_getaffinity(0, bytes, mask) == 0) cpus = CPU_COUNT_S(bytes, mask);
    CPU_FREE(mask);
  }
  if (cpus == 0) cpus = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const CgroupLimits limits = ReadCgroupLimits();
  if (limits.cpus > 0 && limits.cpus < cpus) {
    cpus = static_cast<int>(std::ceil(limits.cpus));
  }
  return std::max(1, cpus);
}

int64_t GrantedMemoryBytes() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  int64_t bytes = pages > 0 && page_bytes > 0 ? pages * page_bytes : int64_t{1} << 30;
  const CgroupLimits limits = ReadCgroupLimits();
  if (limits.memory_bytes > 0) bytes = std::min(bytes, limits.memory_bytes);
  return bytes;
}

}  // namespace glaive
