// Primary keys as bytes whose order is the order of the keys, and a hash set of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/append_array.h"

namespace glaive {
class Runtime;
}

namespace glaive::memwal {

// The keys of some rows, encoded one after the other. Per column: 0x00 for null, else
// 0x01 and the value: signed integers and dates as 8 bytes big-endian with the sign bit
// flipped, unsigned ones plain, booleans one byte, text and bytes with each 0x00 written
// as 0x00 0xFF and 0x00 0x00 at the end. Equal bytes are equal keys, and memcmp gives
// the order of the columns.
struct EncodedKeys {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> ends;  // of each key in `bytes`
  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  std::string_view operator[](int64_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends[static_cast<size_t>(i) - 1];
    return {reinterpret_cast<const char*>(bytes.data()) + begin,
            ends[static_cast<size_t>(i)] - begin};
  }
};

// Whether a column of this type can be (part of) a key: integers, booleans, Utf8,
// LargeUtf8, Binary, LargeBinary.
bool IsKeyType(const arrow::DataType& type);

// `columns`: of one length, in key order. NotSupported for other types than IsKeyType's.
Result<EncodedKeys> EncodeKeys(std::span<const std::shared_ptr<arrow::Array>> columns);
// The key columns of a batch.
Result<EncodedKeys> EncodeKeys(const arrow::RecordBatch& batch,
                               std::span<const int> columns);

// What KeyMap::Build wants to know of the keys of a batch; any thread can find it out.
struct KeyTags {
  std::vector<uint32_t> tags;           // the upper half of each hash
  std::array<uint64_t, 16> words = {};  // that they take in a map, by the upper four bits
  uint64_t longest = 0;                 // words of one
};
KeyTags TagKeys(const EncodedKeys& keys);

// A hash of a key that depends on secrets of the process, so that nobody can craft keys
// that collide. Not to be stored.
uint64_t HashKey(std::string_view key);

// Key -> the row that it was last added with, over an arena of key bytes of its own.
//
// One thread may Put while any number of others Find: what was put before the finder got
// to know of it (by any synchronisation) is found. Nothing is freed or moved before the
// destruction. Keys have at most 16 GiB together, rows are below 2^32 - 1.
class KeyMap {
 public:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  // Names a key of the map for its life.
  using KeyRef = uint32_t;
  // Not initialized, so that arrays of them cost nothing before they are used.
  struct Link {
    uint32_t previous;  // row of the same key, or kNoRow
    KeyRef key;
  };

  // By row.
  using Links = AppendArray<Link, 10>;

  KeyMap();
  ~KeyMap();
  KeyMap(KeyMap&&) noexcept;
  KeyMap& operator=(KeyMap&&) noexcept;
  // Before the first Put.
  void Reserve(int64_t keys);
  // The row that `key` had before, or -1.
  int64_t Put(std::string_view key, uint32_t row);
  // Puts keys[begin + i] with row first_row + i for i < count, in order; faster than one
  // by one. `links` (may be null): one per row, each written before its row becomes what
  // Find gives. The number of keys that were there already.
  int64_t PutAll(const EncodedKeys& keys, int64_t begin, int64_t count,
                 uint32_t first_row, Link* links);
  // Puts all keys of `batches`, whose rows are numbered from 0 on, into a map that has
  // none, in parallel where that is worth it. `tags`: of each batch. `links` has room for
  // all rows. Nobody may look at the map meanwhile. The number of keys that came before.
  // After an error (memory) the map is of no use.
  Result<int64_t> Build(std::span<const EncodedKeys> batches,
                        std::span<const KeyTags> tags, Links* links, Runtime* runtime);
  // -1: none.
  int64_t Find(std::string_view key) const;
  std::string_view key(KeyRef ref) const;
  int64_t num_keys() const;
  int64_t size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::memwal
