// Dotted, back-quoted paths of nested fields.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "file/schema.h"

namespace glaive::file {

Result<std::vector<std::string>> ParseFieldPath(std::string_view text) {
  std::vector<std::string> path;
  size_t i = 0;
  while (true) {
    std::string segment;
    if (i < text.size() && text[i] == '`') {
      ++i;
      bool closed = false;
      while (i < text.size()) {
        if (text[i] == '`') {
          if (i + 1 < text.size() &&
              text[i + 1] == '`') {  // a doubled quote stands for itself
            segment += '`';
            i += 2;
            continue;
          }
          ++i;
          closed = true;
          break;
        }
        segment += text[i++];
      }
      if (!closed)
        return InvalidInput("column path '", text, "' has an unclosed back-quote");
    } else {
      while (i < text.size() && text[i] != '.') segment += text[i++];
    }
    if (segment.empty())
      return InvalidInput("column path '", text, "' has an empty segment");
    path.push_back(std::move(segment));
    if (i == text.size()) return path;
    if (text[i] != '.') {
      return InvalidInput("column path '", text, "': expected '.' at position ", i);
    }
    ++i;
  }
}

std::string FormatFieldPath(std::span<const std::string> path) {
  std::string out;
  for (const std::string& segment : path) {
    if (!out.empty()) out += '.';
    bool plain =
        !segment.empty() && std::none_of(segment.begin(), segment.end(),
                                         [](char c) { return c == '.' || c == '`'; });
    if (plain) {
      out += segment;
      continue;
    }
    out += '`';
    for (char c : segment) {
      if (c == '`') out += '`';
      out += c;
    }
    out += '`';
  }
  return out;
}

}  // namespace glaive::file
