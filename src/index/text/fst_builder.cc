#include "index/text/fst_builder.h"

#include <algorithm>
#include <utility>

#include "index/text/fst_format.h"

namespace glaive::text {
namespace {

constexpr size_t kMaxKnown = size_t{1} << 16;

void PutNumber(uint64_t value, size_t size, std::string* out) {
  for (size_t i = 0; i < size; ++i) {
    out->push_back(static_cast<char>(value >> (8 * i)));
  }
}

// Bytes that a number takes; at least one.
size_t SizeOf(uint64_t value) {
  size_t size = 1;
  while (value >>= 8) ++size;
  return size;
}

char PackSizes(size_t target_size, size_t output_size) {
  return static_cast<char>(target_size << 4 | output_size);
}

}  // namespace

FstBuilder::FstBuilder() : open_(1), last_address_(kFstNone) {
  PutNumber(kFstVersion, 8, &bytes_);
  PutNumber(0, 8, &bytes_);  // of no type
}

Status FstBuilder::Add(std::string_view key, uint64_t value) {
  if (size_ > 0 && key <= last_key_) {
    return InvalidInput("keys of a token map in a wrong order");
  }
  ++size_;
  // What the key shares with the last one stays open. Outputs there become what both have
  // in common; what one of them has beyond moves on, away from the root.
  size_t shared = 0;
  while (shared < key.size() && shared < last_key_.size() &&
         key[shared] == last_key_[shared]) {
    Transition& step = open_[shared].transitions.back();
    const uint64_t common = std::min(step.output, value);
    const uint64_t beyond = step.output - common;
    if (beyond > 0) {
      Node& next = open_[shared + 1];
      for (Transition& each : next.transitions) each.output += beyond;
      if (next.final) next.final_output += beyond;
      step.output = common;
    }
    value -= common;
    ++shared;
  }
  CloseBelow(shared);
  for (size_t i = shared; i < key.size(); ++i) {
    // The whole rest of the value goes to the first new step.
    open_[i].transitions.push_back(
        {static_cast<uint8_t>(key[i]), i == shared ? value : 0, kFstNone});
    open_.emplace_back();
  }
  Node& end = open_[key.size()];
  end.final = true;
  if (shared == key.size()) end.final_output = value;
  last_key_.assign(key);
  return Status::OK();
}

void FstBuilder::CloseBelow(size_t depth) {
  while (open_.size() > depth + 1) {
    const uint64_t address = Write(open_.back());
    open_.pop_back();
    open_.back().transitions.back().target = address;
  }
}

uint64_t FstBuilder::Write(const Node& node) {
  if (node.final && node.transitions.empty() && node.final_output == 0) {
    return kFstEmptyFinal;
  }
  std::string what;
  what.push_back(node.final ? '\1' : '\0');
  PutNumber(node.final_output, 8, &what);
  for (const Transition& each : node.transitions) {
    what.push_back(static_cast<char>(each.input));
    PutNumber(each.output, 8, &what);
    PutNumber(each.target, 8, &what);
  }
  const auto found = known_.find(what);
  if (found != known_.end()) return found->second;
  const uint64_t start = bytes_.size();
  if (!node.final && node.transitions.size() == 1) {
    WriteOne(node.transitions[0], start);
  } else {
    WriteMany(node, start);
  }
  last_address_ = bytes_.size() - 1;
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.emplace(std::move(what), last_address_);
  return last_address_;
}

void FstBuilder::WriteOne(const Transition& transition, uint64_t start) {
  const bool next = transition.target == last_address_ && transition.output == 0;
  if (!next) {
    const uint64_t delta =
        transition.target == kFstEmptyFinal ? 0 : start - transition.target;
    const size_t output_size = transition.output == 0 ? 0 : SizeOf(transition.output);
    PutNumber(transition.output, output_size, &bytes_);
    PutNumber(delta, SizeOf(delta), &bytes_);
    bytes_.push_back(PackSizes(SizeOf(delta), output_size));
  }
  const size_t common =
      kFstCommonInputs.substr(0, kFstNumCommon).find(static_cast<char>(transition.input));
  uint8_t state = next ? kFstOneNext : kFstOne;
  if (common == std::string_view::npos) {
    bytes_.push_back(static_cast<char>(transition.input));
  } else {
    state = static_cast<uint8_t>(state | (common + 1));
  }
  bytes_.push_back(static_cast<char>(state));
}

void FstBuilder::WriteMany(const Node& node, uint64_t start) {
  const auto& steps = node.transitions;
  const auto delta_of = [&](const Transition& step) {
    return step.target == kFstEmptyFinal ? 0 : start - step.target;
  };
  uint64_t deltas = 0, outputs = node.final_output;  // all bits of all of them
  for (const Transition& step : steps) {
    deltas |= delta_of(step);
    outputs |= step.output;
  }
  const size_t target_size = steps.empty() ? 0 : SizeOf(deltas);
  const size_t output_size = outputs == 0 ? 0 : SizeOf(outputs);
  // Read from behind: the first transition comes last.
  if (output_size > 0) {
    if (node.final) PutNumber(node.final_output, output_size, &bytes_);
    for (size_t i = steps.size(); i-- > 0;) {
      PutNumber(steps[i].output, output_size, &bytes_);
    }
  }
  for (size_t i = steps.size(); i-- > 0;) {
    PutNumber(delta_of(steps[i]), target_size, &bytes_);
  }
  for (size_t i = steps.size(); i-- > 0;) {
    bytes_.push_back(static_cast<char>(steps[i].input));
  }
  if (steps.size() > kFstIndexFrom) {
    std::string index(256, '\xff');
    for (size_t i = 0; i < steps.size(); ++i) {
      index[steps[i].input] = static_cast<char>(i);
    }
    bytes_ += index;
  }
  bytes_.push_back(PackSizes(target_size, output_size));
  uint8_t state = node.final ? kFstFinal : 0;
  if (steps.empty() || steps.size() > kFstLowBits) {
    bytes_.push_back(static_cast<char>(steps.size() == 256 ? 1 : steps.size()));
  } else {
    state = static_cast<uint8_t>(state | steps.size());
  }
  bytes_.push_back(static_cast<char>(state));
}

std::string FstBuilder::Finish() && {
  CloseBelow(0);
  const uint64_t root = Write(open_[0]);
  PutNumber(size_, 8, &bytes_);
  PutNumber(root, 8, &bytes_);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes_.data());
  PutNumber(FstChecksum({data, bytes_.size()}), 4, &bytes_);
  return std::move(bytes_);
}

}  // namespace glaive::text
