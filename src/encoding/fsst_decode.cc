#include "encoding/fsst_decode.h"

#include <cstring>

namespace glaive::encoding {
namespace {

constexpr uint8_t kEscape = 255;

// True when one of the eight bytes is 255.
bool HasEscape(uint64_t codes) {
  uint64_t inverted = ~codes;
  return ((inverted - 0x0101010101010101ULL) & codes & 0x8080808080808080ULL) != 0;
}

}  // namespace

Result<FsstTable> FsstTable::Parse(std::string_view serialised) {
  if (serialised.size() < 8) {
    return Corruption("FSST symbol table has ", serialised.size(), " bytes");
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(serialised.data());
  FsstTable table;
  table.num_symbols_ = bytes[0];
  table.compressed_ = bytes[3] != 0;
  if (std::memcmp(bytes + 4, "TSSF", 4) != 0) {
    return Corruption("FSST symbol table without its mark");
  }
  if (!table.compressed_) return table;
  auto n = static_cast<size_t>(table.num_symbols_);
  if (n > 255 || serialised.size() < 8 + 9 * n) {
    return Corruption("FSST symbol table of ", serialised.size(), " bytes for ", n,
                      " symbols");
  }
  for (size_t i = 0; i < n; ++i) {
    table.symbols_[i] = LoadUnaligned<uint64_t>(bytes + 8 + 8 * i);
    table.lengths_[i] = bytes[8 + 8 * n + i];
    if (table.lengths_[i] < 1 || table.lengths_[i] > kMaxSymbolBytes) {
      return Corruption("FSST symbol ", i, " has length ", int{table.lengths_[i]});
    }
  }
  return table;
}

int64_t FsstTable::Expand(Bytes codes, uint8_t* out) const {
  const uint8_t* in = codes.data();
  const uint8_t* end = in + codes.size();
  uint8_t* to = out;
  uint8_t bad = 0;
  auto put = [&](uint8_t code) {
    std::memcpy(to, &symbols_[code], 8);
    to += lengths_[code];
    bad |= static_cast<uint8_t>(lengths_[code] == 0);
  };
  while (end - in >= 8) {
    auto block = LoadUnaligned<uint64_t>(in);
    if (!HasEscape(block)) {
      for (int i = 0; i < 8; ++i) put(static_cast<uint8_t>(block >> (8 * i)));
      in += 8;
      continue;
    }
    while (*in != kEscape) put(*in++);
    if (end - in < 2) return -1;  // the escape may be the last byte
    *to++ = in[1];
    in += 2;
  }
  while (in < end) {
    if (*in != kEscape) {
      put(*in++);
      continue;
    }
    if (end - in < 2) return -1;
    *to++ = in[1];
    in += 2;
  }
  return bad ? -1 : to - out;
}

}  // namespace glaive::encoding
