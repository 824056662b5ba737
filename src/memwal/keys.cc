#include "memwal/keys.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <sys/mman.h>

#include "runtime/runtime.h"
#include "table/names.h"

namespace glaive::memwal {
namespace {

constexpr uint8_t kNull = 0;
constexpr uint8_t kPresent = 1;
constexpr uint8_t kEscape = 0xFF;

using ArrayPtr = std::shared_ptr<arrow::Array>;

// What one column adds to the keys: first sizes, then bytes.
class ColumnEncoder {
 public:
  virtual ~ColumnEncoder() = default;
  // Adds the size of row i's part to sizes[i].
  virtual void AddSizes(uint64_t* sizes) const = 0;
  // Writes row i's part at out[i], which moves behind it.
  virtual void Write(uint8_t** out) const = 0;
};

template <typename ArrayType>
class IntegerEncoder : public ColumnEncoder {
 public:
  explicit IntegerEncoder(const arrow::Array& array)
      : array_(static_cast<const ArrayType&>(array)) {}

  void AddSizes(uint64_t* sizes) const override {
    const bool nulls = array_.null_count() > 0;
    for (int64_t i = 0; i < array_.length(); ++i) {
      sizes[i] += nulls && array_.IsNull(i) ? 1 : 9;
    }
  }

  void Write(uint8_t** out) const override {
    const bool nulls = array_.null_count() > 0;
    for (int64_t i = 0; i < array_.length(); ++i) {
      if (nulls && array_.IsNull(i)) {
        *out[i]++ = kNull;
      } else {
        WriteValue(array_.Value(i), out[i]);
        out[i] += 9;
      }
    }
  }

  static void WriteValue(typename ArrayType::value_type value, uint8_t* out) {
    uint64_t word;
    if constexpr (std::is_signed_v<typename ArrayType::value_type>) {
      word = static_cast<uint64_t>(int64_t{value}) ^ (uint64_t{1} << 63);
    } else {
      word = value;
    }
    word = __builtin_bswap64(word);
    out[0] = kPresent;
    std::memcpy(out + 1, &word, 8);
  }

 private:
  const ArrayType& array_;
};

class BooleanEncoder : public ColumnEncoder {
 public:
  explicit BooleanEncoder(const arrow::Array& array)
      : array_(static_cast<const arrow::BooleanArray&>(array)) {}

  void AddSizes(uint64_t* sizes) const override {
    for (int64_t i = 0; i < array_.length(); ++i) sizes[i] += array_.IsNull(i) ? 1 : 2;
  }

  void Write(uint8_t** out) const override {
    for (int64_t i = 0; i < array_.length(); ++i) {
      if (array_.IsNull(i)) {
        *out[i]++ = kNull;
      } else {
        *out[i]++ = kPresent;
        *out[i]++ = array_.Value(i) ? 1 : 0;
      }
    }
  }

 private:
  const arrow::BooleanArray& array_;
};

template <typename ArrayType>
class BytesEncoder : public ColumnEncoder {
 public:
  explicit BytesEncoder(const arrow::Array& array)
      : array_(static_cast<const ArrayType&>(array)) {
    if (array_.length() == 0) return;
    const auto begin = array_.value_offset(0);
    const auto end = array_.value_offset(array_.length());
    has_zeros_ = end > begin && std::memchr(array_.value_data()->data() + begin, 0,
                                            static_cast<size_t>(end - begin)) != nullptr;
  }

  void AddSizes(uint64_t* sizes) const override {
    for (int64_t i = 0; i < array_.length(); ++i) {
      if (array_.IsNull(i)) {
        sizes[i] += 1;
        continue;
      }
      const std::string_view value = array_.GetView(i);
      sizes[i] += value.size() + 3;
      if (!has_zeros_) continue;
      for (const char c : value) sizes[i] += c == 0 ? 1 : 0;
    }
  }

  void Write(uint8_t** out) const override {
    for (int64_t i = 0; i < array_.length(); ++i) {
      uint8_t* to = out[i];
      if (array_.IsNull(i)) {
        *to = kNull;
        out[i] = to + 1;
        continue;
      }
      *to++ = kPresent;
      const std::string_view value = array_.GetView(i);
      if (!has_zeros_) {
        if (!value.empty()) std::memcpy(to, value.data(), value.size());
        to += value.size();
      } else {
        for (const char c : value) {
          *to++ = static_cast<uint8_t>(c);
          if (c == 0) *to++ = kEscape;
        }
      }
      *to++ = 0;
      *to++ = 0;
      out[i] = to;
    }
  }

 private:
  const ArrayType& array_;
  bool has_zeros_ = false;
};

std::unique_ptr<ColumnEncoder> MakeEncoder(const arrow::Array& array) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      return std::make_unique<IntegerEncoder<arrow::Int8Array>>(array);
    case arrow::Type::INT16:
      return std::make_unique<IntegerEncoder<arrow::Int16Array>>(array);
    case arrow::Type::INT32:
      return std::make_unique<IntegerEncoder<arrow::Int32Array>>(array);
    case arrow::Type::INT64:
      return std::make_unique<IntegerEncoder<arrow::Int64Array>>(array);
    case arrow::Type::UINT8:
      return std::make_unique<IntegerEncoder<arrow::UInt8Array>>(array);
    case arrow::Type::UINT16:
      return std::make_unique<IntegerEncoder<arrow::UInt16Array>>(array);
    case arrow::Type::UINT32:
      return std::make_unique<IntegerEncoder<arrow::UInt32Array>>(array);
    case arrow::Type::UINT64:
      return std::make_unique<IntegerEncoder<arrow::UInt64Array>>(array);
    case arrow::Type::BOOL:
      return std::make_unique<BooleanEncoder>(array);
    case arrow::Type::STRING:
      return std::make_unique<BytesEncoder<arrow::StringArray>>(array);
    case arrow::Type::BINARY:
      return std::make_unique<BytesEncoder<arrow::BinaryArray>>(array);
    case arrow::Type::LARGE_STRING:
      return std::make_unique<BytesEncoder<arrow::LargeStringArray>>(array);
    case arrow::Type::LARGE_BINARY:
      return std::make_unique<BytesEncoder<arrow::LargeBinaryArray>>(array);
    default:
      return nullptr;
  }
}

// One column of integers without nulls: all keys have nine bytes.
template <typename ArrayType>
void EncodeIntegers(const arrow::Array& array, EncodedKeys* keys) {
  const auto& values = static_cast<const ArrayType&>(array);
  const auto rows = static_cast<size_t>(array.length());
  keys->bytes.resize(9 * rows);
  keys->ends.resize(rows);
  uint8_t* out = keys->bytes.data();
  for (size_t i = 0; i < rows; ++i, out += 9) {
    IntegerEncoder<ArrayType>::WriteValue(values.Value(static_cast<int64_t>(i)), out);
    keys->ends[i] = static_cast<uint32_t>(9 * (i + 1));
  }
}

constexpr uint64_t kMaxBytes = std::numeric_limits<uint32_t>::max();

Status TooManyBytes() {
  return InvalidInput(
      "the primary keys of one batch take more than 4 GiB: write smaller batches");
}

struct Secrets {
  uint64_t a = table::RandomU64();
  uint64_t b = table::RandomU64();
  uint64_t c = table::RandomU64() | 1;
};

const Secrets& ProcessSecrets() {
  static const Secrets secrets;
  return secrets;
}

uint64_t Fold(uint64_t x, uint64_t y) {
  const auto product = static_cast<unsigned __int128>(x) * y;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Load8(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

// Both factors of each product are hidden behind a secret, so that no input can force one
// of them to zero and so make what came before vanish.
uint64_t HashWith(const Secrets& secrets, std::string_view key) {
  const char* p = key.data();
  size_t left = key.size();
  uint64_t state = secrets.c + key.size();
  for (; left > 16; left -= 16, p += 16) {
    state = Fold(Load8(p) ^ secrets.a, Load8(p + 8) ^ secrets.b ^ state);
  }
  uint64_t low = 0, high = 0;
  if (left >= 8) {
    low = Load8(p);
    high = Load8(p + left - 8);
  } else if (left > 0) {
    std::memcpy(&low, p, left);
  }
  return Fold(Fold(low ^ secrets.a, high ^ secrets.b ^ state) ^ secrets.b,
              secrets.c ^ state);
}

// That the record of a key takes in the arena of a KeyMap.
uint64_t WordsOf(std::string_view key) { return 2 + (key.size() + 3) / 4; }

bool SameBytes(const char* a, const char* b, size_t size) {
  if (size >= 8 && size <= 16) {
    return ((Load8(a) ^ Load8(b)) | (Load8(a + size - 8) ^ Load8(b + size - 8))) == 0;
  }
  return std::memcmp(a, b, size) == 0;
}

}  // namespace

bool IsKeyType(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
    case arrow::Type::BOOL:
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return true;
    default:
      return false;
  }
}

Result<EncodedKeys> EncodeKeys(std::span<const ArrayPtr> columns) {
  EncodedKeys keys;
  if (columns.empty()) return keys;
  const int64_t rows = columns[0]->length();
  if (static_cast<uint64_t>(rows) > kMaxBytes / 9) return TooManyBytes();
  if (columns.size() == 1 && columns[0]->null_count() == 0) {
    if (columns[0]->type_id() == arrow::Type::INT64) {
      EncodeIntegers<arrow::Int64Array>(*columns[0], &keys);
      return keys;
    }
    if (columns[0]->type_id() == arrow::Type::INT32) {
      EncodeIntegers<arrow::Int32Array>(*columns[0], &keys);
      return keys;
    }
  }
  std::vector<std::unique_ptr<ColumnEncoder>> encoders;
  std::vector<uint64_t> sizes(static_cast<size_t>(rows), 0);
  for (const ArrayPtr& column : columns) {
    if (column->length() != rows) {
      return InternalError("key columns of ", rows, " and ", column->length(), " rows");
    }
    encoders.push_back(MakeEncoder(*column));
    if (encoders.back() == nullptr) {
      return NotSupported("a primary key column of type ", column->type()->ToString());
    }
    encoders.back()->AddSizes(sizes.data());
  }
  uint64_t total = 0;
  keys.ends.resize(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    total += sizes[i];
    if (total > kMaxBytes) return TooManyBytes();
    keys.ends[i] = static_cast<uint32_t>(total);
  }
  keys.bytes.resize(total);
  std::vector<uint8_t*> out(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    out[i] = keys.bytes.data() + (i == 0 ? 0 : keys.ends[i - 1]);
  }
  for (const auto& encoder : encoders) encoder->Write(out.data());
  return keys;
}

Result<EncodedKeys> EncodeKeys(const arrow::RecordBatch& batch,
                               std::span<const int> columns) {
  std::vector<ArrayPtr> arrays;
  arrays.reserve(columns.size());
  for (const int column : columns) arrays.push_back(batch.column(column));
  return EncodeKeys(arrays);
}

uint64_t HashKey(std::string_view key) { return HashWith(ProcessSecrets(), key); }

// A slot holds the upper half of the hash and the place of a record in the arena plus
// one; zero is a free slot. A record is the newest row, the size of the key, its bytes.
//
// What readers may touch is published by a store with release: a record by that of its
// slot, a table by that of `table`. Only the newest row of a record changes later.
struct KeyMap::Impl {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Slots = std::unique_ptr<std::atomic<uint64_t>[], Free>;
  // Large tables lie in huge pages: the first touch of each small one would cost more
  // than what is done with it. All is written here, by one thread: where several read a
  // page first and write it then, each page is given to them twice.
  static Slots Zeros(uint64_t size) {
    static_assert(std::is_trivially_destructible_v<std::atomic<uint64_t>>);
    constexpr size_t kHuge = size_t{2} << 20;
    const size_t bytes = size * sizeof(std::atomic<uint64_t>);
    const bool huge = bytes >= kHuge;
    void* memory = std::aligned_alloc(huge ? kHuge : 64, bytes);
    if (memory == nullptr) throw std::bad_alloc();  // as new does
    if (huge) static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
    std::memset(memory, 0, bytes);
    return Slots(static_cast<std::atomic<uint64_t>*>(memory));
  }
  struct Table {
    explicit Table(int b) : bits(b), slots(Zeros(size())) {}
    uint64_t size() const { return uint64_t{1} << bits; }
    uint64_t SlotOf(uint32_t tag) const { return uint64_t{tag} >> (32 - bits); }
    const int bits;
    const Slots slots;
  };
  static constexpr int kMinBits = 6;
  static constexpr int kMaxBits = 32;

  Impl() { UseTable(std::make_unique<Table>(kMinBits)); }

  void UseTable(std::unique_ptr<Table> fresh) {
    table.store(fresh.get(), std::memory_order_release);
    tables.push_back(std::move(fresh));
  }

  // Room for `more` keys. Old tables stay for those who are reading them.
  void EnsureRoom(uint64_t more) {
    const Table& old = *table.load(std::memory_order_relaxed);
    int bits = old.bits;
    while (bits < kMaxBits && (num_keys + more) * 8 > (uint64_t{5} << bits)) ++bits;
    if (bits == old.bits) return;
    auto fresh = std::make_unique<Table>(bits);
    for (uint64_t i = 0; i < old.size(); ++i) {
      const uint64_t slot = old.slots[i].load(std::memory_order_relaxed);
      if (slot == 0) continue;
      uint64_t s = fresh->SlotOf(static_cast<uint32_t>(slot >> 32));
      while (fresh->slots[s].load(std::memory_order_relaxed) != 0) {
        s = (s + 1) & (fresh->size() - 1);
      }
      fresh->slots[s].store(slot, std::memory_order_relaxed);
    }
    if (num_keys == 0) tables.clear();
    UseTable(std::move(fresh));
  }

  std::atomic_ref<uint32_t> NewestRow(KeyRef ref) const {
    return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(arena[ref]));
  }
  const char* KeyBytes(KeyRef ref) const {
    return reinterpret_cast<const char*>(&arena[uint64_t{ref} + 2]);
  }
  bool HasKey(KeyRef ref, std::string_view key) const {
    return arena[uint64_t{ref} + 1] == key.size() &&
           SameBytes(KeyBytes(ref), key.data(), key.size());
  }

  // The slot of the key, or the free one where it belongs.
  uint64_t Probe(const Table& in, std::string_view key, uint32_t tag,
                 std::memory_order order, uint64_t* value) const {
    uint64_t s = in.SlotOf(tag);
    while (true) {
      *value = in.slots[s].load(order);
      if (*value == 0) return s;
      if (static_cast<uint32_t>(*value >> 32) == tag &&
          HasKey(static_cast<uint32_t>(*value) - 1, key)) {
        return s;
      }
      s = (s + 1) & (in.size() - 1);
    }
  }

  // At `*end`, the end of what is taken of the arena.
  KeyRef AddRecord(std::string_view key, uint32_t row, uint64_t* end) {
    const uint64_t words = WordsOf(key);
    // A record lies within one chunk of the arena.
    while (arena.Contiguous(*end) < words) *end += arena.Contiguous(*end);
    const uint64_t ref = *end;
    *end += words;
    arena.GrowChunk(ref);
    uint32_t* record = &arena[ref];
    record[0] = row;
    record[1] = static_cast<uint32_t>(key.size());
    if (!key.empty()) std::memcpy(record + 2, key.data(), key.size());
    return static_cast<KeyRef>(ref);
  }

  // There is room. `link`, if any, is filled in before the row can be found.
  uint32_t PutHashed(std::string_view key, uint64_t hash, uint32_t row, Link* link) {
    Table& in = *table.load(std::memory_order_relaxed);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    uint64_t value;
    const uint64_t s = Probe(in, key, tag, std::memory_order_relaxed, &value);
    if (value != 0) {
      const KeyRef ref = static_cast<uint32_t>(value) - 1;
      const auto newest = NewestRow(ref);
      const uint32_t previous = newest.load(std::memory_order_relaxed);
      if (link != nullptr) *link = {previous, ref};
      newest.store(row, std::memory_order_release);
      return previous;
    }
    const KeyRef ref = AddRecord(key, row, &arena_words);
    if (link != nullptr) *link = {kNoRow, ref};
    in.slots[s].store(uint64_t{tag} << 32 | (uint64_t{ref} + 1),
                      std::memory_order_release);
    ++num_keys;
    return kNoRow;
  }

  class Builder;

  static constexpr uint64_t kMaxChunks = 33 - 14;

  std::atomic<Table*> table;
  std::vector<std::unique_ptr<Table>> tables;
  AppendArray<uint32_t, 14> arena;
  uint64_t arena_words = 0;
  uint64_t num_keys = 0;
};

// Fills an empty map. The table is cut into parts by the upper bits of the hash, and each
// part filled by a thread of its own, with its share of the arena. What does not find a
// free slot within the part of its hash comes last.
class KeyMap::Impl::Builder {
 public:
  Builder(Impl* map, std::span<const EncodedKeys> batches, std::span<const KeyTags> tags,
          Links* links)
      : map_(*map), batches_(batches), tags_(tags), links_(*links) {
    for (const EncodedKeys& keys : batches) {
      first_rows_.push_back(rows_);
      rows_ += static_cast<uint64_t>(keys.size());
    }
  }

  Result<int64_t> Run(Runtime* runtime) {
    map_.EnsureRoom(rows_);
    const int threads = runtime == nullptr ? 1 : runtime->num_threads();
    while (part_bits_ < kMaxPartBits && (2 << part_bits_) <= threads &&
           (rows_ >> part_bits_) >= kRowsWorthAPart) {
      ++part_bits_;
    }
    uint64_t longest = 0;
    for (const KeyTags& batch : tags_) longest = std::max(longest, batch.longest);
    if (longest > kMostWords) return OneByOne();

    const uint64_t num_parts = uint64_t{1} << part_bits_;
    std::vector<Part> parts(num_parts);
    for (uint64_t p = 0; p < num_parts; ++p) {
      uint64_t words = 0;
      for (const KeyTags& batch : tags_) {
        const uint64_t share = batch.words.size() >> part_bits_;
        for (uint64_t w = p * share; w < (p + 1) * share; ++w) words += batch.words[w];
      }
      parts[p].end = map_.arena_words;
      // Nothing is lost but at the ends of chunks.
      map_.arena_words += words + kMaxChunks * kMostWords;
    }
    map_.arena.Grow(map_.arena_words);
    GLAIVE_RETURN_NOT_OK(
        runtime->ParallelFor(static_cast<int64_t>(num_parts), [&](int64_t p) -> Status {
          Fill(static_cast<uint64_t>(p), &parts[static_cast<size_t>(p)]);
          return Status::OK();
        }));

    int64_t known = 0;
    for (Part& part : parts) {
      map_.num_keys += part.num_keys;
      known += part.known;
      for (const Late& late : part.late) {
        const EncodedKeys& keys = batches_[late.batch];
        const auto row = static_cast<uint32_t>(first_rows_[late.batch] + late.i);
        const uint64_t hash = uint64_t{late.tag} << 32;
        known += map_.PutHashed(keys[late.i], hash, row, &links_[row]) != kNoRow;
      }
    }
    return known;
  }

 private:
  static constexpr int kMaxPartBits = 4;
  static constexpr uint64_t kRowsWorthAPart = 8192;
  // Keys that take more are put one by one.
  static constexpr uint64_t kMostWords = 66;

  struct Late {
    size_t batch;
    int64_t i;
    uint32_t tag;
  };
  struct Part {
    uint64_t end = 0;  // of its records in the arena
    uint64_t num_keys = 0;
    int64_t known = 0;
    std::vector<Late> late;
  };

  uint64_t PartOf(uint32_t tag) const { return uint64_t{tag} >> (32 - part_bits_); }

  int64_t OneByOne() {
    int64_t known = 0;
    for (size_t b = 0; b < batches_.size(); ++b) {
      for (int64_t i = 0; i < batches_[b].size(); ++i) {
        const auto row = static_cast<uint32_t>(first_rows_[b] + static_cast<uint64_t>(i));
        const std::string_view key = batches_[b][i];
        const uint64_t hash = uint64_t{tags_[b].tags[static_cast<size_t>(i)]} << 32;
        known += map_.PutHashed(key, hash, row, &links_[row]) != kNoRow;
      }
    }
    return known;
  }

  void Fill(uint64_t p, Part* part) {
    Table& in = *map_.table.load(std::memory_order_relaxed);
    const uint64_t size = in.size() >> part_bits_;
    const uint64_t stop = (p + 1) * size;
    // The rows of this part of a block, whose slots are fetched before they are needed.
    constexpr size_t kBlock = 64;
    std::array<uint32_t, kBlock> mine;
    for (size_t b = 0; b < batches_.size(); ++b) {
      const EncodedKeys& keys = batches_[b];
      const std::vector<uint32_t>& tags = tags_[b].tags;
      for (size_t at = 0; at < tags.size();) {
        size_t count = 0;
        for (; at < tags.size() && count < kBlock; ++at) {
          mine[count] = static_cast<uint32_t>(at);
          if (PartOf(tags[at]) != p) continue;
          __builtin_prefetch(&in.slots[in.SlotOf(tags[at])], 1);
          ++count;
        }
        for (size_t m = 0; m < count; ++m) {
          const uint32_t i = mine[m];
          const auto row = static_cast<uint32_t>(first_rows_[b] + i);
          const std::string_view key = keys[i];
          if (!Put(&in, stop, key, tags[i], row, part)) {
            part->late.push_back({b, i, tags[i]});
          }
        }
      }
    }
  }

  // False when no slot before `stop` is free.
  bool Put(Table* in, uint64_t stop, std::string_view key, uint32_t tag, uint32_t row,
           Part* part) {
    for (uint64_t s = in->SlotOf(tag); s < stop; ++s) {
      const uint64_t value = in->slots[s].load(std::memory_order_relaxed);
      if (value == 0) {
        const KeyRef ref = map_.AddRecord(key, row, &part->end);
        links_[row] = {kNoRow, ref};
        in->slots[s].store(uint64_t{tag} << 32 | (uint64_t{ref} + 1),
                           std::memory_order_relaxed);
        ++part->num_keys;
        return true;
      }
      const KeyRef ref = static_cast<uint32_t>(value) - 1;
      if (static_cast<uint32_t>(value >> 32) == tag && map_.HasKey(ref, key)) {
        links_[row] = {std::exchange(map_.arena[ref], row), ref};
        ++part->known;
        return true;
      }
    }
    return false;
  }

  Impl& map_;
  const std::span<const EncodedKeys> batches_;
  const std::span<const KeyTags> tags_;
  Links& links_;
  std::vector<uint64_t> first_rows_;
  uint64_t rows_ = 0;
  int part_bits_ = 0;
};

KeyMap::KeyMap() : impl_(std::make_unique<Impl>()) {}
KeyMap::~KeyMap() = default;
KeyMap::KeyMap(KeyMap&&) noexcept = default;
KeyMap& KeyMap::operator=(KeyMap&&) noexcept = default;

void KeyMap::Reserve(int64_t keys) { impl_->EnsureRoom(static_cast<uint64_t>(keys)); }

int64_t KeyMap::Put(std::string_view key, uint32_t row) {
  impl_->EnsureRoom(1);
  const uint32_t previous = impl_->PutHashed(key, HashKey(key), row, nullptr);
  return previous == kNoRow ? -1 : int64_t{previous};
}

int64_t KeyMap::PutAll(const EncodedKeys& keys, int64_t begin, int64_t count,
                       uint32_t first_row, Link* links) {
  // Hashes of a block are computed, and its slots fetched, before the first is needed.
  constexpr int64_t kBlock = 64;
  uint64_t hashes[kBlock];
  const Secrets& secrets = ProcessSecrets();
  int64_t known = 0;
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t block = std::min(kBlock, count - done);
    impl_->EnsureRoom(static_cast<uint64_t>(block));
    const Impl::Table& in = *impl_->table.load(std::memory_order_relaxed);
    for (int64_t i = 0; i < block; ++i) {
      hashes[i] = HashWith(secrets, keys[begin + done + i]);
      __builtin_prefetch(&in.slots[in.SlotOf(static_cast<uint32_t>(hashes[i] >> 32))], 1);
    }
    for (int64_t i = 0; i < block; ++i) {
      const uint32_t previous = impl_->PutHashed(
          keys[begin + done + i], hashes[i], first_row + static_cast<uint32_t>(done + i),
          links == nullptr ? nullptr : links + done + i);
      known += previous != kNoRow ? 1 : 0;
    }
  }
  return known;
}

Result<int64_t> KeyMap::Build(std::span<const EncodedKeys> batches,
                              std::span<const KeyTags> tags, Links* links,
                              Runtime* runtime) {
  return Impl::Builder(impl_.get(), batches, tags, links).Run(runtime);
}

KeyTags TagKeys(const EncodedKeys& keys) {
  KeyTags out;
  const auto size = static_cast<size_t>(keys.size());
  out.tags.resize(size);
  const Secrets& secrets = ProcessSecrets();
  for (size_t i = 0; i < size; ++i) {
    const std::string_view key = keys[static_cast<int64_t>(i)];
    const auto tag = static_cast<uint32_t>(HashWith(secrets, key) >> 32);
    const uint64_t words = WordsOf(key);
    out.tags[i] = tag;
    out.words[tag >> 28] += words;
    out.longest = std::max(out.longest, words);
  }
  return out;
}

int64_t KeyMap::Find(std::string_view key) const {
  const Impl::Table& in = *impl_->table.load(std::memory_order_acquire);
  const auto tag = static_cast<uint32_t>(HashKey(key) >> 32);
  uint64_t value;
  impl_->Probe(in, key, tag, std::memory_order_acquire, &value);
  if (value == 0) return -1;
  return impl_->NewestRow(static_cast<uint32_t>(value) - 1)
      .load(std::memory_order_acquire);
}

std::string_view KeyMap::key(KeyRef ref) const {
  return {impl_->KeyBytes(ref), impl_->arena[uint64_t{ref} + 1]};
}

int64_t KeyMap::num_keys() const { return static_cast<int64_t>(impl_->num_keys); }

int64_t KeyMap::size_bytes() const {
  // The rest of the arena's last chunk was never touched.
  auto bytes = static_cast<int64_t>(4 * impl_->arena_words);
  for (const auto& in : impl_->tables) bytes += static_cast<int64_t>(8 * in->size());
  return bytes;
}

}  // namespace glaive::memwal
