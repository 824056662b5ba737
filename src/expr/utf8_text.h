// Code points of UTF-8 text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace glaive::expr {

inline bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

inline int64_t CountChars(std::string_view text) {
  int64_t count = 0;
  for (char c : text) count += IsContinuation(c) ? 0 : 1;
  return count;
}

// The byte where character `chars` begins; the end when there are fewer.
inline size_t ByteOfChar(std::string_view text, int64_t chars) {
  if (chars <= 0) return 0;
  size_t at = 0;
  while (at < text.size()) {
    ++at;
    while (at < text.size() && IsContinuation(text[at])) ++at;
    if (--chars == 0) return at;
  }
  return text.size();
}

// The bytes of the character at `at`.
inline size_t CharBytes(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && IsContinuation(text[end])) ++end;
  return end - at;
}

inline char32_t DecodeChar(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return first;
  if (first < 0xE0) return ((first & 0x1FU) << 6) | (byte(at + 1) & 0x3FU);
  if (first < 0xF0) {
    return ((first & 0x0FU) << 12) | ((byte(at + 1) & 0x3FU) << 6) |
           (byte(at + 2) & 0x3FU);
  }
  return ((first & 0x07U) << 18) | ((byte(at + 1) & 0x3FU) << 12) |
         ((byte(at + 2) & 0x3FU) << 6) | (byte(at + 3) & 0x3FU);
}

inline void AppendChar(char32_t code, std::string* out) {
  const auto put = [&](unsigned byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12));
    put(0x80U | ((code >> 6) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18));
    put(0x80U | ((code >> 12) & 0x3FU));
    put(0x80U | ((code >> 6) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

}  // namespace glaive::expr
