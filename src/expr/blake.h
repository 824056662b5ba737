// The BLAKE family of message digests: BLAKE2b with 64 bytes, BLAKE2s and BLAKE3 with 32.
#pragma once

#include <string>
#include <string_view>

namespace glaive::expr {

// Each appends the bytes of the digest of `data` to `out`. Thread-safe.
void AppendBlake2b(std::string_view data, std::string* out);
void AppendBlake2s(std::string_view data, std::string* out);
void AppendBlake3(std::string_view data, std::string* out);

}  // namespace glaive::expr
