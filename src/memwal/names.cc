#include "memwal/names.h"

#include <array>
#include <cstring>

#include "io/path.h"
#include "memwal/sha1.h"
#include "table/names.h"

namespace glaive::memwal {
namespace {

constexpr size_t kNameBits = 64;
constexpr size_t kUuidBytes = 16;
// The ASCII text LSMWRITE_SHARD01.
constexpr std::string_view kShardNamespace = "LSMWRITE_SHARD01";
constexpr std::string_view kUrnPrefix = "urn:uuid:";
constexpr std::string_view kManifestName = "manifest";
constexpr std::string_view kWalName = "wal";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The 32 digits of the usual spellings, or less than 32 characters for anything else.
std::string Digits(std::string_view text) {
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') {
    text = text.substr(1, 36);
  } else if (text.size() == 45 && text.substr(0, kUrnPrefix.size()) == kUrnPrefix) {
    text.remove_prefix(kUrnPrefix.size());
  } else if (text.size() == 32) {
    return std::string(text);
  }
  std::string digits;
  if (text.size() != 36) return digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen != (text[i] == '-')) return {};
    if (!hyphen) digits += text[i];
  }
  return digits;
}

}  // namespace

std::string BitReversed(uint64_t n) {
  std::string name(kNameBits, '0');
  for (size_t i = 0; n != 0; ++i, n >>= 1) name[i] = (n & 1) != 0 ? '1' : '0';
  return name;
}

std::optional<uint64_t> ParseBitReversed(std::string_view file_name) {
  const std::string_view digits = file_name.substr(0, file_name.find('.'));
  if (digits.size() != kNameBits) return std::nullopt;
  uint64_t n = 0;
  for (size_t i = 0; i < kNameBits; ++i) {
    if (digits[i] != '0' && digits[i] != '1') return std::nullopt;
    n |= static_cast<uint64_t>(digits[i] - '0') << i;
  }
  return n;
}

Result<ShardId> ShardId::FromBytes(std::string_view bytes) {
  if (bytes.size() != kUuidBytes) {
    return InvalidInput("A shard id has ", kUuidBytes, " bytes, not ", bytes.size());
  }
  ShardId id;
  std::memcpy(id.bytes_, bytes.data(), kUuidBytes);
  return id;
}

Result<ShardId> ShardId::Parse(std::string_view text) {
  const std::string digits = Digits(text);
  ShardId id;
  bool valid = digits.size() == 2 * kUuidBytes;
  for (size_t i = 0; valid && i < kUuidBytes; ++i) {
    const int high = HexDigit(digits[2 * i]), low = HexDigit(digits[2 * i + 1]);
    valid = high >= 0 && low >= 0;
    id.bytes_[i] = static_cast<char>(high << 4 | low);
  }
  if (!valid) {
    return InvalidInput("Invalid shard_id UUID: '", text.substr(0, 64),
                        "' is not 32 hexadecimal digits in one of the usual spellings");
  }
  return id;
}

ShardId ShardId::Derive(std::string_view name) {
  const std::array<uint8_t, 20> digest = Sha1(kShardNamespace, name);
  ShardId id;
  std::memcpy(id.bytes_, digest.data(), kUuidBytes);
  id.bytes_[6] = static_cast<char>((digest[6] & 0x0f) | 0x50);  // version 5
  id.bytes_[8] = static_cast<char>((digest[8] & 0x3f) | 0x80);  // variant of RFC 4122
  return id;
}

std::string ShardId::ToString() const { return table::FormatUuid(bytes()); }

std::string ShardDir(const ShardId& shard) {
  return std::string(kMemWalDir) + "/" + shard.ToString();
}

std::string ShardManifestDir(const ShardId& shard) {
  return ShardDir(shard) + "/" + std::string(kManifestName);
}

std::string ShardManifestPath(const ShardId& shard, uint64_t version) {
  return ShardManifestDir(shard) + "/" + BitReversed(version) + ".binpb";
}

std::string ShardManifestHintPath(const ShardId& shard) {
  return ShardManifestDir(shard) + "/version_hint.json";
}

std::string WalDir(const ShardId& shard) {
  return ShardDir(shard) + "/" + std::string(kWalName);
}

std::string WalEntryPath(const ShardId& shard, uint64_t position) {
  return WalDir(shard) + "/" + BitReversed(position) + ".arrow";
}

std::string NewGenerationName(uint64_t generation) {
  return table::NewUuid().substr(0, 8) + "_gen_" + std::to_string(generation);
}

Result<std::string> GenerationDir(const ShardId& shard, std::string_view name) {
  std::string_view path = name;
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const std::string_view first = path.substr(0, path.find('/'));
  // Whoever collects deletes such a directory.
  if (!io::ValidateObjectPath(path).ok() || first == kManifestName || first == kWalName) {
    return Corruption("Shard ", shard.ToString(), " names a generation '",
                      name.substr(0, 256),
                      "', which is not a directory that may hold one: restore the "
                      "shard manifest");
  }
  return ShardDir(shard) + "/" + std::string(path);
}

}  // namespace glaive::memwal
