// Words that are not indexed, by language.
#pragma once

#include <span>
#include <string_view>

namespace glaive::text {

// In ascending order of bytes; empty for a language that is not known.
std::span<const std::string_view> StopWords(std::string_view language);

}  // namespace glaive::text
