// SHA-1, for names derived by UUID version 5 (RFC 4122). Nothing here is a secret.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace glaive::memwal {

// The digest of `prefix` followed by `rest`.
std::array<uint8_t, 20> Sha1(std::string_view prefix, std::string_view rest);

}  // namespace glaive::memwal
