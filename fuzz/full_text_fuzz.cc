// Token maps and settings of full-text indices, and texts through every tokenizer.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "index/text/fst_format.h"
#include "index/text/fst_reader.h"
#include "index/text/partition.h"
#include "index/text/tokenizer_params.h"

namespace {

using glaive::Status;
using namespace glaive::text;  // NOLINT

void ReadMap(std::string bytes) {
  // With the checksum that belongs to it, so that what lies behind is reached.
  if (bytes.size() >= 4) {
    const std::span<const uint8_t> all(reinterpret_cast<const uint8_t*>(bytes.data()),
                                       bytes.size());
    const uint32_t sum = FstChecksum(all.first(all.size() - 4));
    for (size_t i = 0; i < 4; ++i) {
      bytes[bytes.size() - 4 + i] = static_cast<char>(sum >> (8 * i));
    }
  }
  auto reader =
      FstReader::Open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!reader.ok()) return;
  // A map of few bytes may hold very many keys, none of them wrong.
  int left = 1000;
  Status status = reader->ForEach([&](std::string_view key, uint64_t value) {
    const auto found = reader->Find(key);
    if (!found.ok() || *found != value) std::abort();
    return --left > 0 ? Status::OK() : Status::Cancelled("enough");
  });
  static_cast<void>(status.ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  TokenizerParams params;
  switch (data[0] % 4) {
    case 0:
      ReadMap(std::string(rest));
      return 0;
    case 1: {
      const size_t end = rest.find('\0');
      auto parsed = ParseTokenizerParams(rest.substr(0, end));
      if (!parsed.ok()) return 0;
      if (ParseTokenizerParams(ToJson(*parsed)).ValueOrDie() != *parsed) std::abort();
      params = *parsed;
      break;
    }
    case 2:
      params.base_tokenizer = "ngram";
      [[fallthrough]];
    default:
      params.with_position = true;
      static constexpr const char* kLanguages[] = {
          "English", "Turkish", "Arabic", "Tamil", "Dutch", "Greek", "French"};
      params.language = kLanguages[data[0] / 4 % 7];
  }
  auto partition = Partition::Make(params);
  if (!partition.ok()) return 0;
  for (uint64_t row = 0; row < 3; ++row) {
    // Pieces of the ngram tokenizer are many.
    if (!partition->Add(row, rest.substr(rest.size() * row / 3, 200)).ok()) return 0;
  }
  for (const auto& token : partition->SortedTokens()) partition->Encode(token.index);
  return 0;
}
