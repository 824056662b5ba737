// Stems of words, by language: Snowball 3.1, as upstream has it.
#pragma once

#include <string>
#include <string_view>

namespace glaive::text {

// One of "Arabic", "Danish", … "Turkish": also those that stop words are known for.
bool IsLanguage(std::string_view language);

// Changes a word; null for a language that is not known. Any number of threads.
using StemFunction = void (*)(std::u32string* word);
StemFunction FindStemmer(std::string_view language);

}  // namespace glaive::text
