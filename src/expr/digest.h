// Message digests: MD5, and the families of SHA-2 and BLAKE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace glaive::expr {

enum class Digest : uint8_t {
  kMd5,
  kSha224,
  kSha256,
  kSha384,
  kSha512,
  kBlake2b,
  kBlake2s,
  kBlake3
};

// By the name that SQL has for it, in lower case: "md5", "sha256", ...
std::optional<Digest> DigestOf(std::string_view name);
// Appends the bytes of the digest of `data` to `out`. Thread-safe.
void AppendDigest(Digest digest, std::string_view data, std::string* out);

}  // namespace glaive::expr
