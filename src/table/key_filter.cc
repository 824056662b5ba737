#include "table/key_filter.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

namespace glaive::table {
namespace {

using lance::table::ExactKeySetFilter;
using lance::table::KeyBloomFilter;
using lance::table::KeyExistenceFilter;

// A split block filter: a key sets one bit in each of the eight words of one block.
constexpr size_t kWordBytes = 4;
constexpr size_t kBlockBytes = 8 * kWordBytes;

bool MayMeet(const ExactKeySetFilter& a, const ExactKeySetFilter& b) {
  const std::set<uint64_t> keys(a.key_hashes().begin(), a.key_hashes().end());
  return std::any_of(b.key_hashes().begin(), b.key_hashes().end(),
                     [&](uint64_t key) { return keys.count(key) > 0; });
}

bool MayMeet(const KeyBloomFilter& a, const KeyBloomFilter& b) {
  if (a.num_bits() != b.num_bits() || a.bitmap().size() != b.bitmap().size() ||
      a.number_of_items() != b.number_of_items() || a.probability() != b.probability() ||
      a.bitmap().size() % kBlockBytes != 0) {
    return true;
  }
  for (size_t block = 0; block < a.bitmap().size(); block += kBlockBytes) {
    bool all = true;
    for (size_t i = 0; i < kBlockBytes && all; i += kWordBytes) {
      uint32_t x;
      uint32_t y;
      std::memcpy(&x, a.bitmap().data() + block + i, kWordBytes);
      std::memcpy(&y, b.bitmap().data() + block + i, kWordBytes);
      all = (x & y) != 0;
    }
    if (all) return true;
  }
  return false;
}

}  // namespace

bool MayInsertSameKey(const lance::table::Transaction::Update& ours,
                      const lance::table::Transaction::Update& theirs) {
  if (!theirs.has_inserted_rows()) return true;
  const KeyExistenceFilter& a = ours.inserted_rows();
  const KeyExistenceFilter& b = theirs.inserted_rows();
  if (!std::equal(a.field_ids().begin(), a.field_ids().end(), b.field_ids().begin(),
                  b.field_ids().end())) {
    return true;
  }
  if (a.has_exact() && b.has_exact()) return MayMeet(a.exact(), b.exact());
  if (a.has_bloom() && b.has_bloom()) return MayMeet(a.bloom(), b.bloom());
  return true;
}

}  // namespace glaive::table
