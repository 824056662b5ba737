// Tables of characters by code point, in ascending order; characters.h looks into them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace glaive::text {

struct CharacterRange {
  uint32_t first;
  uint32_t last;
};
extern const CharacterRange kAlphanumeric[];
extern const size_t kNumAlphanumeric;

// Every `step`th character from `first` to `last` has its lower-case one `offset` away.
// ASCII and the one character whose lower-case form has two are not among them.
struct LowerRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t offset;
};
extern const LowerRun kLower[];
extern const size_t kNumLower;

struct Folded {
  uint32_t code;
  char text[6];
};
extern const Folded kFolded[];
extern const size_t kNumFolded;

}  // namespace glaive::text
