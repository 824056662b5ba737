// Single characters as upstream's tokenizers see them.
#pragma once

#include <string>
#include <string_view>

namespace glaive::text {

// Letters, marks that make up words, and digits of all scripts.
bool IsAlphanumeric(char32_t c);

// Blank, tab, line feed, form feed and carriage return: what separates words for the
// whitespace tokenizer.
bool IsSeparator(char32_t c);

void AppendLower(char32_t c, std::string* out);

// The ASCII text that stands for a character; empty when there is none.
std::string_view FoldToAscii(char32_t c);

}  // namespace glaive::text
