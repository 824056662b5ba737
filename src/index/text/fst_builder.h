// A sorted map from bytes to numbers, as the minimal automaton that upstream keeps tokens
// in. Byte layout: docs/format/full-text.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace glaive::text {

class FstBuilder {
 public:
  FstBuilder();

  // Keys in ascending order of their bytes, each once; else InvalidInput.
  Status Add(std::string_view key, uint64_t value);

  // The whole map. Nothing can be added afterwards.
  std::string Finish() &&;

 private:
  struct Transition {
    uint8_t input = 0;
    uint64_t output = 0;
    uint64_t target = 0;  // address; of the last one of an open node: not known yet
  };
  struct Node {
    bool final = false;
    uint64_t final_output = 0;
    std::vector<Transition> transitions;
  };

  // Writes what stands behind the first `depth` bytes of the last key.
  void CloseBelow(size_t depth);
  uint64_t Write(const Node& node);
  void WriteOne(const Transition& transition, uint64_t start);
  void WriteMany(const Node& node, uint64_t start);

  std::string bytes_;
  std::string last_key_;
  uint64_t size_ = 0;
  // Nodes along the last key: open_[i] stands behind i bytes of it.
  std::vector<Node> open_;
  uint64_t last_address_;
  // Nodes that were written, by what they are. Bounded: forgetting makes the map larger,
  // not wrong.
  std::unordered_map<std::string, uint64_t> known_;
};

}  // namespace glaive::text
