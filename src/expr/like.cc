#include "expr/like.h"

namespace glaive::expr {
namespace {

// Outside the range of code points.
constexpr char32_t kOne = 0x110000;
constexpr char32_t kMany = 0x110001;

// Bytes that are not UTF-8 become code points of their own, so that every text can be
// matched.
char32_t NextCodePoint(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(*at);
  size_t extra = 0;
  char32_t code = first;
  if (first >= 0xF0 && first < 0xF8) {
    extra = 3;
    code = first & 0x07;
  } else if (first >= 0xE0 && first < 0xF0) {
    extra = 2;
    code = first & 0x0F;
  } else if (first >= 0xC0 && first < 0xE0) {
    extra = 1;
    code = first & 0x1F;
  }
  if (*at + extra >= text.size()) extra = 0;
  for (size_t i = 1; i <= extra; ++i) {
    if ((byte(*at + i) & 0xC0) != 0x80) {
      extra = 0;
      break;
    }
    code = (code << 6) | (byte(*at + i) & 0x3F);
  }
  if (extra == 0 || code >= kOne) {
    code = first;
    extra = 0;
  }
  *at += extra + 1;
  return code;
}

}  // namespace

LikePattern::LikePattern(std::string_view pattern, char escape) {
  bool plain = true;  // no wildcard but '%' at the ends
  size_t i = 0;
  bool leading = false;
  bool trailing = false;
  while (i < pattern.size()) {
    char32_t code = 0;
    const bool escaped = pattern[i] == escape && i + 1 < pattern.size();
    if (escaped) ++i;
    const size_t begin = i;
    code = NextCodePoint(pattern, &i);
    if (!escaped && code == U'%') {
      if (general_.empty() || (general_.size() == 1 && general_[0] == kMany)) {
        leading = true;
      } else {
        trailing = true;
      }
      if (general_.empty() || general_.back() != kMany) general_.push_back(kMany);
      continue;
    }
    if (trailing) plain = false;  // '%' inside
    if (!escaped && code == U'_') {
      plain = false;
      general_.push_back(kOne);
      continue;
    }
    literal_.append(pattern.substr(begin, i - begin));
    general_.push_back(code);
  }
  if (!plain) {
    shape_ = Shape::kGeneral;
  } else if (leading && general_.size() == 1) {
    shape_ = Shape::kAny;
  } else if (leading && trailing) {
    shape_ = Shape::kContains;
  } else if (leading) {
    shape_ = Shape::kSuffix;
  } else if (trailing) {
    shape_ = Shape::kPrefix;
  }
}

bool LikePattern::Matches(std::string_view text) const {
  switch (shape_) {
    case Shape::kExact:
      return text == literal_;
    case Shape::kPrefix:
      return text.substr(0, literal_.size()) == literal_;
    case Shape::kSuffix:
      return text.size() >= literal_.size() &&
             text.substr(text.size() - literal_.size()) == literal_;
    case Shape::kContains:
      return text.find(literal_) != std::string_view::npos;
    case Shape::kAny:
      return true;
    case Shape::kGeneral:
      return MatchesGeneral(text);
  }
  return false;
}

// Greedy with one point of return: only the last '%' ever needs to take more.
bool LikePattern::MatchesGeneral(std::string_view text) const {
  size_t at = 0;
  size_t p = 0;
  size_t retry_pattern = std::u32string::npos;
  size_t retry_text = 0;
  while (at < text.size()) {
    if (p < general_.size() && general_[p] == kMany) {
      retry_pattern = ++p;
      retry_text = at;
      continue;
    }
    size_t next = at;
    const char32_t code = NextCodePoint(text, &next);
    if (p < general_.size() && (general_[p] == kOne || general_[p] == code)) {
      ++p;
      at = next;
      continue;
    }
    if (retry_pattern == std::u32string::npos) return false;
    NextCodePoint(text, &retry_text);
    at = retry_text;
    p = retry_pattern;
  }
  while (p < general_.size() && general_[p] == kMany) ++p;
  return p == general_.size();
}

}  // namespace glaive::expr
