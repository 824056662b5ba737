// An array that one thread appends to while others read: elements never move.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace glaive::memwal {

// Chunks of doubling size behind a fixed directory. One thread calls Grow and writes
// elements; a reader may touch an element once it knows, by a synchronisation of the
// owner's (a counter stored with release, say), that it was written.
template <typename T, int kFirstBits>
class AppendArray {
 public:
  static constexpr uint64_t kFirst = uint64_t{1} << kFirstBits;

  AppendArray() = default;
  AppendArray(const AppendArray&) = delete;
  AppendArray& operator=(const AppendArray&) = delete;
  ~AppendArray() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
  }

  // Makes room for elements below `size`; new ones are default-initialized.
  void Grow(uint64_t size) {
    if (size == 0) return;
    for (int c = Chunk(size - 1); c >= 0 && at(c) == nullptr; --c) GrowChunk(Begin(c));
  }

  // Makes room for the elements that lie with `i` in one piece, only.
  void GrowChunk(uint64_t i) {
    auto& chunk = chunks_[static_cast<size_t>(Chunk(i))];
    if (chunk.load(std::memory_order_relaxed) != nullptr) return;
    chunk.store(new T[kFirst << Chunk(i)], std::memory_order_release);
  }

  T& operator[](uint64_t i) {
    const int c = Chunk(i);
    return at(c)[i - Begin(c)];
  }
  const T& operator[](uint64_t i) const {
    const int c = Chunk(i);
    return at(c)[i - Begin(c)];
  }

  // Number of elements from `i` on that lie one behind the other.
  static uint64_t Contiguous(uint64_t i) { return Begin(Chunk(i) + 1) - i; }

  int64_t size_bytes() const {
    int64_t bytes = 0;
    for (int c = 0; c < kChunks; ++c) {
      if (at(c) != nullptr) bytes += static_cast<int64_t>(sizeof(T) * (kFirst << c));
    }
    return bytes;
  }

 private:
  static constexpr int kChunks = 33 - kFirstBits;  // 2^32 elements and more
  static int Chunk(uint64_t i) {
    return static_cast<int>(std::bit_width((i >> kFirstBits) + 1)) - 1;
  }
  static uint64_t Begin(int chunk) { return (kFirst << chunk) - kFirst; }
  T* at(int chunk) const {
    return chunks_[static_cast<size_t>(chunk)].load(std::memory_order_acquire);
  }

  std::array<std::atomic<T*>, kChunks> chunks_{};
};

}  // namespace glaive::memwal
