// Names of the files of a table: manifests, data files, transactions, deletion files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace lance::table {
class DeletionFile;
}

namespace glaive::table {

inline constexpr char kVersionsDir[] = "_versions";
inline constexpr char kTransactionsDir[] = "_transactions";
inline constexpr char kDeletionsDir[] = "_deletions";
inline constexpr char kDataDir[] = "data";
inline constexpr char kTagsDir[] = "_refs/tags";
inline constexpr char kVersionHintPath[] = "_versions/latest_version_hint.json";

// How the manifests of one table are named; a table never mixes them.
enum class NamingScheme : uint8_t {
  kV1,  // {version}.manifest
  kV2,  // {2^64 - 1 - version}, 20 digits: the newest sorts first
};

struct ManifestName {
  uint64_t version = 0;
  NamingScheme scheme = NamingScheme::kV2;
  bool detached = false;
};

// "_versions/....manifest" of a version.
std::string ManifestPath(uint64_t version, NamingScheme scheme);
// Of a file name without directory. Nullopt for anything that is not a manifest (staging
// files, hints, names that do not parse).
std::optional<ManifestName> ParseManifestName(std::string_view name);

// 16 random bytes with the version and variant bits of a UUIDv4.
std::string NewUuidBytes();
// As hyphenated lower-case text.
std::string FormatUuid(std::string_view bytes);
std::string NewUuid();
uint64_t RandomU64();

// A fresh name below data/, such as "1011....0fa2.lance".
std::string NewDataFileName();
std::string DataFilePath(std::string_view name);
std::string TransactionFileName(uint64_t read_version, std::string_view uuid);
std::string TransactionPath(std::string_view file_name);
std::string DeletionFilePath(uint64_t fragment_id,
                             const lance::table::DeletionFile& file);

}  // namespace glaive::table
