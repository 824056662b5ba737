#include "index/text/fst_reader.h"

#include <string>
#include <vector>

#include "index/text/fst_format.h"

namespace glaive::text {
namespace {

uint64_t Number(std::span<const uint8_t> bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

Status Damaged(const char* what) {
  return Corruption("the token map of a full-text index is damaged: ", what);
}

}  // namespace

// One node, with its places in the bytes. Every part was checked to be inside of them,
// and every target to stand before the node.
struct FstReader::Node {
  bool final = false;
  uint64_t final_output = 0;
  size_t count = 0;
  uint64_t start = 0;  // its first byte
  size_t target_size = 0;
  size_t output_size = 0;
  // Ends of what is read from behind.
  size_t inputs_end = 0;
  size_t targets_end = 0;
  size_t outputs_end = 0;
  // The only one of a node of one transition.
  bool single = false;
  uint8_t input = 0;

  uint8_t Input(std::span<const uint8_t> bytes, size_t i) const {
    return single ? input : bytes[inputs_end - 1 - i];
  }
  uint64_t Output(std::span<const uint8_t> bytes, size_t i) const {
    return output_size == 0
               ? 0
               : Number(bytes, outputs_end - (i + 1) * output_size, output_size);
  }
  // The address, or kFstNone when there can be none.
  uint64_t Target(std::span<const uint8_t> bytes, size_t i) const {
    if (single && target_size == 0) return start - 1;  // the node before
    const uint64_t delta =
        Number(bytes, targets_end - (i + 1) * target_size, target_size);
    if (delta == 0) return kFstEmptyFinal;
    if (delta > start || start - delta < kFstHeaderBytes) return kFstNone;
    return start - delta;
  }
};

Result<FstReader> FstReader::Open(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFstHeaderBytes + kFstFooterBytes) return Damaged("too short");
  if (Number(bytes, 0, 8) != kFstVersion) return Damaged("not of version 3");
  const size_t footer = bytes.size() - kFstFooterBytes;
  if (Number(bytes, footer + 16, 4) != FstChecksum(bytes.first(footer + 16))) {
    return Damaged("wrong checksum");
  }
  return FstReader(bytes.first(footer), Number(bytes, footer, 8),
                   Number(bytes, footer + 8, 8));
}

Result<FstReader::Node> FstReader::ReadNode(uint64_t address) const {
  Node node;
  if (address == kFstEmptyFinal) {
    node.final = true;
    return node;
  }
  if (address < kFstHeaderBytes || address >= bytes_.size()) {
    return Damaged("a node outside of it");
  }
  // `at`: the parts from here on are taken. Nothing stands before the header's end.
  size_t at = static_cast<size_t>(address);
  bool inside = true;
  const auto take = [&](size_t size) {
    inside = inside && at - kFstHeaderBytes >= size;
    if (inside) at -= size;
    return inside;
  };
  const uint8_t state = bytes_[at];
  const uint8_t low = state & kFstLowBits;
  if (state >= kFstOne) {
    node.single = true;
    node.count = 1;
    if (low != 0) {
      node.input = static_cast<uint8_t>(kFstCommonInputs[low - 1u]);
    } else if (take(1)) {
      node.input = bytes_[at];
    }
    if (state < kFstOneNext && take(1)) {
      node.target_size = bytes_[at] >> 4;
      node.output_size = bytes_[at] & 15;
      if (node.target_size == 0) return Damaged("a transition to nowhere");
    }
  } else {
    node.final = (state & kFstFinal) != 0;
    node.count = low;
    if (low == 0 && take(1)) node.count = bytes_[at] == 1 ? 256 : bytes_[at];
    if (take(1)) {
      node.target_size = bytes_[at] >> 4;
      node.output_size = bytes_[at] & 15;
    }
    if (node.count > 0 && node.target_size == 0) return Damaged("transitions to nowhere");
    if (node.count > kFstIndexFrom) take(256);
    node.inputs_end = at;
    take(node.count);
  }
  if (node.target_size > 8 || node.output_size > 8) return Damaged("numbers too wide");
  node.targets_end = at;
  take(node.count * node.target_size);
  node.outputs_end = at;
  take(node.count * node.output_size);
  if (node.final && node.output_size > 0 && take(node.output_size)) {
    node.final_output = Number(bytes_, at, node.output_size);
  }
  if (!inside) return Damaged("a node that is cut off");
  node.start = at;
  for (size_t i = 0; i < node.count; ++i) {
    const uint64_t target = node.Target(bytes_, i);
    if (target != kFstEmptyFinal && (target < kFstHeaderBytes || target >= node.start)) {
      return Damaged("a transition to nowhere");
    }
    if (i > 0 && node.Input(bytes_, i) <= node.Input(bytes_, i - 1)) {
      return Damaged("transitions in a wrong order");
    }
  }
  return node;
}

Result<std::optional<uint64_t>> FstReader::Find(std::string_view key) const {
  uint64_t address = root_, value = 0;
  for (const char c : key) {
    GLAIVE_ASSIGN_OR_RETURN(const Node node, ReadNode(address));
    size_t i = 0;
    while (i < node.count && node.Input(bytes_, i) != static_cast<uint8_t>(c)) ++i;
    if (i == node.count) return std::nullopt;
    value += node.Output(bytes_, i);
    address = node.Target(bytes_, i);
  }
  GLAIVE_ASSIGN_OR_RETURN(const Node end, ReadNode(address));
  if (!end.final) return std::nullopt;
  return value + end.final_output;
}

Status FstReader::ForEach(const Visit& visit) const {
  struct Place {
    Node node;
    uint64_t value;
    size_t next = 0;
  };
  std::vector<Place> path;
  std::string key;
  uint64_t seen = 0;
  const auto enter = [&](uint64_t address, uint64_t value) -> Status {
    GLAIVE_ASSIGN_OR_RETURN(Node node, ReadNode(address));
    // Only the root of a map without keys leads nowhere.
    if (!node.final && node.count == 0 && !key.empty()) {
      return Damaged("a way that ends nowhere");
    }
    if (node.final) {
      // Nodes are shared: a small map can claim to hold any number of keys.
      if (++seen > size_) return Damaged("more keys than it says");
      GLAIVE_RETURN_NOT_OK(visit(key, value + node.final_output));
    }
    path.push_back({node, value});
    return Status::OK();
  };
  GLAIVE_RETURN_NOT_OK(enter(root_, 0));
  while (!path.empty()) {
    Place& place = path.back();
    if (place.next == place.node.count) {
      path.pop_back();
      if (!key.empty()) key.pop_back();
      continue;
    }
    const size_t i = place.next++;
    key.push_back(static_cast<char>(place.node.Input(bytes_, i)));
    GLAIVE_RETURN_NOT_OK(
        enter(place.node.Target(bytes_, i), place.value + place.node.Output(bytes_, i)));
  }
  return seen == size_ ? Status::OK() : Damaged("fewer keys than it says");
}

}  // namespace glaive::text
