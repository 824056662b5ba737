#include "runtime/shared_ptr_locks.h"

#include <memory>

#ifdef __GLIBCXX__
#include <array>
#include <cstring>
#include <optional>
#include <vector>
#endif

namespace glaive {

#ifdef __GLIBCXX__
namespace {

using Locker = std::_Sp_locker;  // locks the mutex of an address while it lives
constexpr int kMostMutexes = 16;
constexpr int kAddresses = 1024;  // enough that each mutex has some of them

// The number of its mutex is the first thing that a locker holds.
unsigned MutexOf(const void* address) {
  const Locker locker(address);
  unsigned char number;
  std::memcpy(&number, static_cast<const void*>(&locker), 1);
  return number;
}

// One address of each mutex, in the order in which a thread that needs two takes them.
std::vector<const void*> OneAddressEach() {
  static const std::array<char, kAddresses> places{};
  std::array<const void*, kMostMutexes> found{};
  for (const char& place : places) {
    const unsigned number = MutexOf(&place);
    if (number < kMostMutexes) found[number] = &place;
  }
  std::vector<const void*> addresses;
  for (const void* address : found) {
    if (address != nullptr) addresses.push_back(address);
  }
  return addresses;
}

const std::vector<const void*>& Addresses() {
  static const auto* addresses = new std::vector<const void*>(OneAddressEach());
  return *addresses;
}
const auto& g_made_at_load = Addresses();  // not at a fork

std::array<std::optional<Locker>, kMostMutexes> g_held;

}  // namespace

void LockSharedPtrs() {
  (void)g_made_at_load;
  size_t next = 0;
  for (const void* address : Addresses()) g_held[next++].emplace(address);
}

void UnlockSharedPtrs() {
  for (auto& held : g_held) held.reset();
}

#else

void LockSharedPtrs() {}
void UnlockSharedPtrs() {}

#endif

}  // namespace glaive
