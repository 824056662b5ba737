// Background work keeps off the threads that serve calls.
#pragma once

namespace glaive {

// As long as one lives, ParallelFor of any Runtime runs everything on the calling thread.
class InlineScope {
 public:
  InlineScope() : before_(active_) { active_ = true; }
  ~InlineScope() { active_ = before_; }
  InlineScope(const InlineScope&) = delete;
  InlineScope& operator=(const InlineScope&) = delete;

  static bool active() { return active_; }

 private:
  inline static thread_local bool active_ = false;
  const bool before_;
};

}  // namespace glaive
