// The list of documents of one token, as version 2 of the format stores it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace glaive::text {

// What scores are made of: those of the partition.
struct PartitionStatistics {
  uint64_t num_docs = 0;
  uint64_t total_tokens = 0;
};

// One token's documents, ascending, with how often each has it.
struct Posting {
  std::span<const uint32_t> docs;
  std::span<const uint32_t> frequencies;
  // Of all documents one after the other, each as differences; empty without positions.
  std::span<const uint32_t> position_deltas;
};

// One row of the postings file.
struct EncodedPosting {
  std::vector<std::string> blocks;
  float max_score = 0;
  std::vector<std::string> impacts;
  std::string positions;
  std::vector<uint32_t> position_offsets;  // of each block in `positions`
};

// `lengths`: tokens of every document of the partition, by its number.
EncodedPosting EncodePosting(const Posting& posting, std::span<const uint32_t> lengths,
                             const PartitionStatistics& statistics);

// A document's length in the eight bits that impacts have for it.
uint8_t LengthByte(uint32_t length);

}  // namespace glaive::text
