#include "index/text/stemmer.h"

namespace glaive::text {

// Defined in what tools/make_stemmers.py generates.
// clang-format off
#define GLAIVE_STEMMERS(X)                                                            \
  X(Arabic) X(Danish) X(Dutch) X(English) X(Finnish) X(French) X(German) X(Greek)     \
  X(Hungarian) X(Italian) X(Norwegian) X(Portuguese) X(Romanian) X(Russian)           \
  X(Spanish) X(Swedish) X(Tamil) X(Turkish)
// clang-format on

namespace snowball {
#define GLAIVE_DECLARE(Language) void Stem##Language(std::u32string* word);
GLAIVE_STEMMERS(GLAIVE_DECLARE)
#undef GLAIVE_DECLARE
}  // namespace snowball

StemFunction FindStemmer(std::string_view language) {
#define GLAIVE_FIND(Language) \
  if (language == #Language) return &snowball::Stem##Language;
  GLAIVE_STEMMERS(GLAIVE_FIND)
#undef GLAIVE_FIND
  return nullptr;
}

bool IsLanguage(std::string_view language) { return FindStemmer(language) != nullptr; }

}  // namespace glaive::text
