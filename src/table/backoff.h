// The pause after a lost race against other writers.
#pragma once

#include <chrono>
#include <cstdint>

namespace glaive::table {

// Waits a random number of slots, 0 to `most` of them: writers that collided draw
// different pauses. Thread-safe.
void PauseAtRandom(std::chrono::steady_clock::duration slot, int64_t most);

}  // namespace glaive::table
