// A part of the memory budget that is held for as long as this object lives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "runtime/runtime.h"

namespace glaive {

class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(MemoryReservation&& other) noexcept { *this = std::move(other); }
  MemoryReservation& operator=(MemoryReservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryReservation() {
    if (budget_ != nullptr) budget_->Release(bytes_);
  }

  // ResourceExhausted when the budget has no room; the message says that `what` in table
  // `where` needs the memory. The budget must outlive the result.
  static Result<MemoryReservation> Make(MemoryBudget& budget, int64_t bytes,
                                        std::string_view what, std::string_view where) {
    if (Status status = budget.Reserve(bytes); !status.ok()) [[unlikely]] {
      return WithContext(status, std::string(what) + " in table " + std::string(where));
    }
    MemoryReservation made;
    made.budget_ = &budget;
    made.bytes_ = bytes;
    return made;
  }

 private:
  MemoryBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace glaive
