// SQL LIKE patterns over UTF-8 text.
#pragma once

#include <string>
#include <string_view>

namespace glaive::expr {

// '%' matches any text, '_' one character (code point), `escape` makes the next character
// literal.
class LikePattern {
 public:
  LikePattern(std::string_view pattern, char escape);
  bool Matches(std::string_view text) const;

 private:
  // Most patterns are one piece of text with '%' at one or both ends, or none.
  enum class Shape { kExact, kPrefix, kSuffix, kContains, kAny, kGeneral };
  bool MatchesGeneral(std::string_view text) const;

  Shape shape_ = Shape::kExact;
  std::string literal_;
  // Unescaped pattern: kOne and kMany stand for the wildcards.
  std::u32string general_;
};

}  // namespace glaive::expr
