#include "index/text/characters.h"

#include <algorithm>

#include "expr/utf8_text.h"
#include "index/text/character_tables.h"

namespace glaive::text {
namespace {

// Its lower-case form has a mark of its own: "i" and a dot above.
constexpr char32_t kCapitalIWithDot = 0x130;
constexpr char32_t kDotAbove = 0x307;

// The last entry that begins at or before `code`; null when there is none.
template <typename Entry, typename Begin>
const Entry* LastBefore(const Entry* table, size_t size, uint32_t code, Begin begin) {
  const Entry* after =
      std::upper_bound(table, table + size, code,
                       [&](uint32_t c, const Entry& entry) { return c < begin(entry); });
  return after == table ? nullptr : after - 1;
}

}  // namespace

bool IsAlphanumeric(char32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  }
  const auto* range = LastBefore(kAlphanumeric, kNumAlphanumeric, c,
                                 [](const CharacterRange& r) { return r.first; });
  return range != nullptr && c <= range->last;
}

bool IsSeparator(char32_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

void AppendLower(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c));
    return;
  }
  if (c == kCapitalIWithDot) {
    out->push_back('i');
    expr::AppendChar(kDotAbove, out);
    return;
  }
  const auto* run =
      LastBefore(kLower, kNumLower, c, [](const LowerRun& r) { return r.first; });
  if (run != nullptr && c <= run->last && (c - run->first) % run->step == 0) {
    c = static_cast<char32_t>(static_cast<int64_t>(c) + run->offset);
  }
  expr::AppendChar(c, out);
}

std::string_view FoldToAscii(char32_t c) {
  const auto* entry =
      LastBefore(kFolded, kNumFolded, c, [](const Folded& f) { return f.code; });
  if (entry == nullptr || entry->code != c) return {};
  return entry->text;
}

}  // namespace glaive::text
