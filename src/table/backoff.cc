#include "table/backoff.h"

#include <thread>

#include "table/names.h"

namespace glaive::table {

void PauseAtRandom(std::chrono::steady_clock::duration slot, int64_t most) {
  const auto choices = static_cast<uint64_t>(most) + 1;
  std::this_thread::sleep_for(slot * static_cast<int64_t>(RandomU64() % choices));
}

}  // namespace glaive::table
