// Reads the automaton that upstream keeps the tokens of a full-text index in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"

namespace glaive::text {

// A view of bytes, which are not trusted: each node is checked when it is come to. Must
// not outlive them. Thread-safe.
class FstReader {
 public:
  // Corruption: no map of version 3, or a wrong checksum.
  static Result<FstReader> Open(std::span<const uint8_t> bytes);

  uint64_t size() const { return size_; }

  // The value of a key; nullopt when it is not there.
  Result<std::optional<uint64_t>> Find(std::string_view key) const;

  // All keys in ascending order. What `visit` returns ends it when it is an error.
  // Corruption when there are more or fewer keys than the map says.
  using Visit = std::function<Status(std::string_view key, uint64_t value)>;
  Status ForEach(const Visit& visit) const;

 private:
  struct Node;
  FstReader(std::span<const uint8_t> bytes, uint64_t size, uint64_t root)
      : bytes_(bytes), size_(size), root_(root) {}
  Result<Node> ReadNode(uint64_t address) const;

  std::span<const uint8_t> bytes_;  // without the footer
  uint64_t size_;
  uint64_t root_;
};

}  // namespace glaive::text
