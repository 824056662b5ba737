// Learns a symbol table in a few rounds over a small sample, then replaces symbols by
// codes.
//
// A round compresses the sample with the current table and counts how often each symbol,
// and each pair of neighbouring symbols, occurs. The next table keeps the candidates
// (single symbols and joined pairs) that cover most bytes.
#include "encoding/fsst_encode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "encoding/out_bytes.h"

namespace glaive::encoding {
namespace {

constexpr int kEscape = 255;
constexpr int kMaxSymbols = 255;
constexpr size_t kTableBytes = 2312;
constexpr size_t kSampleBytes = 32 * 1024;
constexpr size_t kSamplePiece = 512;
// Share of the sample, of 128, that each round looks at.
constexpr int kRounds[] = {8, 38, 68, 98, 128};

struct Symbol {
  uint64_t bytes = 0;  // first byte in the low bits
  int length = 0;

  friend bool operator==(const Symbol&, const Symbol&) = default;
};

uint64_t LowMask(int length) {
  return length >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * length) - 1;
}

uint64_t LoadUpTo8(const uint8_t* at, const uint8_t* end) {
  uint64_t word = 0;
  if (end - at >= 8) {
    std::memcpy(&word, at, 8);
  } else {
    std::memcpy(&word, at, static_cast<size_t>(end - at));
  }
  return word;
}

// Finds the longest symbol at a position: symbols of 3 and more bytes through a small
// hash table (one symbol per slot), shorter ones through direct tables.
class SymbolTable {
 public:
  SymbolTable() { Clear(); }

  void Clear() {
    symbols_.clear();
    one_.fill(kNone);
    two_.assign(65536, kNone);
    slots_.fill(kNone);
  }

  // False when the slot of a long symbol is taken, or the table is full.
  bool Add(Symbol symbol) {
    if (symbols_.size() >= static_cast<size_t>(kMaxSymbols)) return false;
    const int16_t code = static_cast<int16_t>(symbols_.size());
    if (symbol.length == 1) {
      if (one_[symbol.bytes & 0xFF] != kNone) return false;
      one_[symbol.bytes & 0xFF] = code;
    } else if (symbol.length == 2) {
      if (two_[symbol.bytes & 0xFFFF] != kNone) return false;
      two_[symbol.bytes & 0xFFFF] = code;
    } else {
      int16_t& slot = slots_[Slot(symbol.bytes)];
      if (slot != kNone) return false;
      slot = code;
    }
    symbols_.push_back(symbol);
    return true;
  }

  // Code of the longest symbol that `word` (with `available` valid bytes) begins with, or
  // -1.
  int Find(uint64_t word, int available) const {
    if (available >= 3) {
      const int16_t code = slots_[Slot(word)];
      if (code != kNone) {
        const Symbol& s = symbols_[static_cast<size_t>(code)];
        if (s.length <= available && (word & LowMask(s.length)) == s.bytes) return code;
      }
    }
    if (available >= 2) {
      const int16_t code = two_[word & 0xFFFF];
      if (code != kNone) return code;
    }
    return one_[word & 0xFF];
  }

  const Symbol& symbol(int code) const { return symbols_[static_cast<size_t>(code)]; }
  size_t size() const { return symbols_.size(); }

  std::string Serialize() const {
    std::string out(kTableBytes, '\0');
    const size_t n = symbols_.size();
    out[0] = static_cast<char>(n);
    out[3] = 1;
    std::memcpy(&out[4], "TSSF", 4);
    for (size_t i = 0; i < n; ++i) {
      std::memcpy(&out[8 + 8 * i], &symbols_[i].bytes, 8);
      out[8 + 8 * n + i] = static_cast<char>(symbols_[i].length);
    }
    return out;
  }

 private:
  static constexpr int16_t kNone = -1;
  static constexpr int kSlotBits = 11;

  static size_t Slot(uint64_t word) {
    return static_cast<size_t>((word & 0xFFFFFF) * 0x9E3779B97F4A7C15ull >>
                               (64 - kSlotBits));
  }

  std::vector<Symbol> symbols_;
  std::array<int16_t, 256> one_;
  std::vector<int16_t> two_;
  std::array<int16_t, 1 << kSlotBits> slots_;
};

// Pieces spread evenly over the values, about kSampleBytes together.
std::vector<std::string_view> Sample(const VariableValues& values) {
  std::vector<std::string_view> out;
  const int64_t total = values.num_bytes();
  const int64_t wanted = static_cast<int64_t>(kSampleBytes / kSamplePiece);
  if (total <= static_cast<int64_t>(kSampleBytes)) {
    for (int64_t i = 0; i < values.count; ++i) {
      if (values.length(i) > 0) out.push_back(values.value(i));
    }
    return out;
  }
  // Walk to evenly spaced byte positions and take what follows, value by value.
  int64_t row = 0;
  for (int64_t k = 0; k < wanted; ++k) {
    const int64_t target = values.offsets.front() + total / wanted * k;
    row = std::upper_bound(values.offsets.begin() + row, values.offsets.end(), target) -
          values.offsets.begin() - 1;
    size_t taken = 0;
    for (int64_t i = row; i < values.count && taken < kSamplePiece; ++i) {
      std::string_view v = values.value(i);
      if (i == row && v.size() > kSamplePiece) {
        v.remove_prefix(
            std::min(static_cast<size_t>(target - values.offsets[static_cast<size_t>(i)]),
                     v.size() - kSamplePiece));
      }
      v = v.substr(0, kSamplePiece - taken);
      if (!v.empty()) out.push_back(v);
      taken += v.size();
    }
  }
  return out;
}

// Codes 0 to 255 are raw bytes (escapes), 256 and above are symbols.
constexpr size_t kCodes = 512;

// Counts of one round.
struct Counts {
  std::vector<uint32_t> single = std::vector<uint32_t>(kCodes, 0);
  std::vector<uint32_t> pairs = std::vector<uint32_t>(kCodes * kCodes, 0);
};

Symbol SymbolOf(const SymbolTable& table, size_t code) {
  if (code < 256) return {static_cast<uint64_t>(code), 1};
  return table.symbol(static_cast<int>(code) - 256);
}

// Returns the size of what it compressed. A spread-out part of the sample in early
// rounds, all of it in the last.
int64_t CountRound(const SymbolTable& table, std::span<const std::string_view> sample,
                   int share, Counts* counts) {
  uint32_t turn = 0;
  int64_t size = 0;
  for (std::string_view piece : sample) {
    if (static_cast<int>(turn++ * 37 % 128) >= share) continue;
    const uint8_t* at = reinterpret_cast<const uint8_t*>(piece.data());
    const uint8_t* end = at + piece.size();
    uint32_t* pairs = nullptr;  // those that begin with the previous code
    while (at < end) {
      const uint64_t word = LoadUpTo8(at, end);
      const int found =
          table.Find(word, static_cast<int>(std::min<ptrdiff_t>(8, end - at)));
      const size_t code = found >= 0 ? static_cast<size_t>(found) + 256 : size_t{*at};
      const int length = found >= 0 ? table.symbol(found).length : 1;
      size += found >= 0 ? 1 : 2;
      ++counts->single[code];
      // A long symbol's first byte stays a candidate, so that a table can shrink again.
      if (length > 1) ++counts->single[*at];
      if (pairs != nullptr) {
        ++pairs[code];
        if (length > 1) ++pairs[*at];
      }
      pairs = counts->pairs.data() + code * kCodes;
      at += length;
    }
  }
  return size;
}

int64_t CompressedSize(const SymbolTable& table,
                       std::span<const std::string_view> sample) {
  int64_t size = 0;
  for (std::string_view piece : sample) {
    const uint8_t* at = reinterpret_cast<const uint8_t*>(piece.data());
    const uint8_t* end = at + piece.size();
    while (at < end) {
      const int found = table.Find(LoadUpTo8(at, end),
                                   static_cast<int>(std::min<ptrdiff_t>(8, end - at)));
      size += found >= 0 ? 1 : 2;
      at += found >= 0 ? table.symbol(found).length : 1;
    }
  }
  return size;
}

// `join`: pairs become candidates too.
void NextTable(SymbolTable* table, const Counts& counts, int share, bool join) {
  struct Candidate {
    Symbol symbol;
    uint64_t gain;
  };
  struct Key {
    size_t operator()(const Symbol& s) const {
      return static_cast<size_t>((s.bytes ^ static_cast<uint64_t>(s.length) << 60) *
                                 0x9E3779B97F4A7C15ull);
    }
  };
  std::unordered_map<Symbol, uint64_t, Key> gains;
  const auto add = [&](Symbol symbol, uint64_t count) {
    // Rare ones are noise of the sample.
    if (count < static_cast<uint64_t>(5 * share / 128)) return;
    gains[symbol] += count * static_cast<uint64_t>(symbol.length);
  };
  for (size_t code = 0; code < kCodes; ++code) {
    const uint32_t count = counts.single[code];
    if (count == 0) continue;
    const Symbol symbol = SymbolOf(*table, code);
    // A byte without a symbol costs two bytes: single bytes weigh more than their length.
    add(symbol, symbol.length == 1 ? uint64_t{count} * 8 : count);
  }
  for (size_t first = 0; join && first < kCodes; ++first) {
    if (counts.single[first] == 0) continue;
    const Symbol a = SymbolOf(*table, first);
    if (a.length == 8) continue;
    const uint32_t* pairs = counts.pairs.data() + first * kCodes;
    for (size_t second = 0; second < kCodes; ++second) {
      if (pairs[second] == 0) continue;
      const Symbol b = SymbolOf(*table, second);
      Symbol joined{a.bytes | b.bytes << 8 * a.length, std::min(8, a.length + b.length)};
      joined.bytes &= LowMask(joined.length);
      add(joined, pairs[second]);
    }
  }
  std::vector<Candidate> order;
  order.reserve(gains.size());
  for (const auto& [symbol, gain] : gains) order.push_back({symbol, gain});
  std::sort(order.begin(), order.end(), [](const Candidate& a, const Candidate& b) {
    if (a.gain != b.gain) return a.gain > b.gain;
    if (a.symbol.length != b.symbol.length) return a.symbol.length > b.symbol.length;
    return a.symbol.bytes < b.symbol.bytes;
  });
  table->Clear();
  for (const Candidate& c : order) {
    if (table->size() >= static_cast<size_t>(kMaxSymbols)) break;
    table->Add(c.symbol);
  }
}

}  // namespace

Result<FsstValues> FsstEncode(const VariableValues& values) {
  const std::vector<std::string_view> sample = Sample(values);
  SymbolTable table;
  SymbolTable best;
  int64_t best_size = INT64_MAX;
  for (int share : kRounds) {
    Counts counts;
    CountRound(table, sample, share, &counts);
    NextTable(&table, counts, share, /*join=*/share != 128);
    const int64_t size = CompressedSize(table, sample);
    if (size < best_size) {
      best_size = size;
      best = table;
    }
  }
  table = std::move(best);

  FsstValues out;
  out.symbol_table = table.Serialize();
  out.values.large = values.large;
  out.values.binary = values.binary;
  out.values.count = values.count;
  out.values.offsets.resize(static_cast<size_t>(values.count) + 1);
  OutBytes bytes(static_cast<size_t>(values.num_bytes()) / 2 + 64);
  out.values.offsets[0] = 0;
  for (int64_t i = 0; i < values.count; ++i) {
    const std::string_view value = values.value(i);
    const uint8_t* at = reinterpret_cast<const uint8_t*>(value.data());
    const uint8_t* end = at + value.size();
    const size_t before = bytes.size();
    uint8_t* const begin = bytes.Extend(2 * value.size());  // the worst case: all escapes
    uint8_t* to = begin;
    while (at < end) {
      const uint64_t word = LoadUpTo8(at, end);
      const int code =
          table.Find(word, static_cast<int>(std::min<ptrdiff_t>(8, end - at)));
      if (code >= 0) {
        *to++ = static_cast<uint8_t>(code);
        at += table.symbol(code).length;
      } else {
        *to++ = kEscape;
        *to++ = *at++;
      }
    }
    bytes.Truncate(before + static_cast<size_t>(to - begin));
    out.values.offsets[static_cast<size_t>(i) + 1] = static_cast<int64_t>(bytes.size());
  }
  auto owner = bytes.Finish();
  out.values.bytes = owner->data();
  out.values.owners.push_back(std::move(owner));
  return out;
}

}  // namespace glaive::encoding
