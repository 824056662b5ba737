#include "table/names.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>

#include <sys/random.h>

#include "format/table.pb.h"

namespace glaive::table {
namespace {

constexpr char kManifestSuffix[] = ".manifest";
constexpr size_t kV2NameLength = 29;  // 20 digits, a dot, "manifest"
constexpr uint64_t kDetachedBit = uint64_t{1} << 63;
constexpr char kHex[] = "0123456789abcdef";

void FillRandom(uint8_t* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = getrandom(out + done, size - done, 0);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      break;
    }
  }
  if (done < size) {
    // A kernel without getrandom: clock, process and address are still unique enough for
    // names.
    uint64_t state = static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch().count());
    state ^= static_cast<uint64_t>(getpid()) << 40;
    state ^= reinterpret_cast<uintptr_t>(out);
    for (; done < size; ++done) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      out[done] = static_cast<uint8_t>(state >> 56);
    }
  }
}

std::optional<uint64_t> ParseU64(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string ManifestPath(uint64_t version, NamingScheme scheme) {
  std::string path = std::string(kVersionsDir) + "/";
  if (version & kDetachedBit)
    return path + "d" + std::to_string(version) + kManifestSuffix;
  if (scheme == NamingScheme::kV1)
    return path + std::to_string(version) + kManifestSuffix;
  std::string digits = std::to_string(std::numeric_limits<uint64_t>::max() - version);
  path.append(20 - digits.size(), '0');
  return path + digits + kManifestSuffix;
}

std::optional<ManifestName> ParseManifestName(std::string_view name) {
  constexpr std::string_view kSuffix = kManifestSuffix;
  if (name.size() <= kSuffix.size() ||
      name.substr(name.size() - kSuffix.size()) != kSuffix) {
    return std::nullopt;
  }
  ManifestName result;
  std::string_view digits = name.substr(0, name.size() - kSuffix.size());
  if (digits[0] == 'd') {
    auto value = ParseU64(digits.substr(1));
    if (!value) return std::nullopt;
    result.version = *value;
    result.detached = true;
    return result;
  }
  auto value = ParseU64(digits);
  if (!value) return std::nullopt;
  if (name.size() == kV2NameLength) {
    result.scheme = NamingScheme::kV2;
    result.version = std::numeric_limits<uint64_t>::max() - *value;
  } else {
    result.scheme = NamingScheme::kV1;
    result.version = *value;
  }
  return result;
}

std::string NewUuidBytes() {
  std::string bytes(16, '\0');
  FillRandom(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  return bytes;
}

std::string FormatUuid(std::string_view bytes) {
  std::string text;
  text.reserve(36);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    auto byte = static_cast<uint8_t>(bytes[i]);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::string NewUuid() { return FormatUuid(NewUuidBytes()); }

uint64_t RandomU64() {
  std::array<uint8_t, 8> bytes;
  FillRandom(bytes.data(), bytes.size());
  uint64_t value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

std::string NewDataFileName() {
  std::string uuid = NewUuidBytes();
  std::string name;
  name.reserve(56);
  // The first bytes in binary spread the names over the key ranges of an object store.
  for (int i = 0; i < 3; ++i) {
    for (int bit = 7; bit >= 0; --bit) name += ((uuid[i] >> bit) & 1) ? '1' : '0';
  }
  for (size_t i = 3; i < uuid.size(); ++i) {
    auto byte = static_cast<uint8_t>(uuid[i]);
    name += kHex[byte >> 4];
    name += kHex[byte & 15];
  }
  return name + ".lance";
}

std::string DataFilePath(std::string_view name) {
  std::string path = std::string(kDataDir) + "/";
  path += name;
  return path;
}

std::string TransactionFileName(uint64_t read_version, std::string_view uuid) {
  std::string name = std::to_string(read_version) + "-";
  name += uuid;
  return name + ".txn";
}

std::string TransactionPath(std::string_view file_name) {
  std::string path = std::string(kTransactionsDir) + "/";
  path += file_name;
  return path;
}

std::string DeletionFilePath(uint64_t fragment_id,
                             const lance::table::DeletionFile& file) {
  return std::string(kDeletionsDir) + "/" + std::to_string(fragment_id) + "-" +
         std::to_string(file.read_version()) + "-" + std::to_string(file.id()) +
         (file.file_type() == lance::table::DeletionFile::BITMAP ? ".bin" : ".arrow");
}

}  // namespace glaive::table
