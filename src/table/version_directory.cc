#include "table/version_directory.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include <arrow/buffer.h>

#include "io/object_store.h"

namespace glaive::table {
namespace {

constexpr std::string_view kHintPrefix = "{\"version\":";

Status MixedNames(io::ObjectStore& store) {
  return Corruption("Found multiple manifest naming schemes in ", store.root(), "/",
                    kVersionsDir, ": migrate the table to one of them first");
}

}  // namespace

std::optional<uint64_t> ParseVersionHint(std::string_view text) {
  std::string compact;
  if (text.size() > 256) return std::nullopt;
  for (char c : text) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') compact += c;
  }
  std::string_view rest(compact);
  if (rest.substr(0, kHintPrefix.size()) != kHintPrefix) return std::nullopt;
  rest.remove_prefix(kHintPrefix.size());
  uint64_t version = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), version);
  if (error != std::errc() || version == 0 || (version >> 63) != 0) return std::nullopt;
  if (std::string_view(end, rest.data() + rest.size() - end) != "}") return std::nullopt;
  return version;
}

namespace {

std::optional<uint64_t> ReadHint(io::ObjectStore& store) {
  constexpr int kMostReads = 8;
  std::optional<uint64_t> before;
  for (int i = 0; i < kMostReads; ++i) {
    auto bytes = store.Get(kVersionHintPath);
    if (!bytes.ok()) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>((*bytes)->data()),
                                static_cast<size_t>((*bytes)->size()));
    const auto hint = ParseVersionHint(text);
    // It may be overwritten in place. Two words are not always copied as one: what is
    // longer counts when it was read twice.
    constexpr size_t kTwoWords = 16;
    if (!hint || text.size() <= kTwoWords || hint == before) return hint;
    before = hint;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<VersionRef>> ListVersionRefs(io::ObjectStore& store) {
  GLAIVE_ASSIGN_OR_RETURN(auto names, store.ListNames(kVersionsDir));
  std::vector<VersionRef> versions;
  for (const std::string& name : names) {
    auto parsed = ParseManifestName(name);
    if (!parsed || parsed->detached) continue;
    if (!versions.empty() && parsed->scheme != versions.front().scheme) {
      return MixedNames(store);
    }
    versions.push_back({parsed->version, parsed->scheme});
  }
  std::sort(
      versions.begin(), versions.end(),
      [](const VersionRef& a, const VersionRef& b) { return a.version < b.version; });
  return versions;
}

Result<std::optional<VersionRef>> FindNewestByListing(io::ObjectStore& store) {
  GLAIVE_ASSIGN_OR_RETURN(auto versions, ListVersionRefs(store));
  if (versions.empty()) return std::nullopt;
  return versions.back();
}

namespace {

// The end of the gapless run that `from` belongs to.
Result<VersionRef> EndOfRun(io::ObjectStore& store, VersionRef from) {
  while (true) {
    GLAIVE_ASSIGN_OR_RETURN(const bool exists,
                            store.Exists(ManifestPath(from.version + 1, from.scheme)));
    if (!exists) return from;
    from.version++;
  }
}

}  // namespace

Result<VersionRef> ProbeUpward(io::ObjectStore& store, VersionRef from) {
  GLAIVE_ASSIGN_OR_RETURN(const VersionRef end, EndOfRun(store, from));
  // A clean-up may have left `end`, which has a tag, and removed what came after it.
  const auto hint = ReadHint(store);
  if (!hint || *hint <= end.version) return end;
  GLAIVE_ASSIGN_OR_RETURN(const auto newest, FindNewestByListing(store));
  return newest && newest->version > end.version ? *newest : end;
}

Result<std::optional<VersionRef>> FindVersion(io::ObjectStore& store, uint64_t version) {
  for (NamingScheme scheme : {NamingScheme::kV2, NamingScheme::kV1}) {
    GLAIVE_ASSIGN_OR_RETURN(const bool exists,
                            store.Exists(ManifestPath(version, scheme)));
    if (exists) return VersionRef{version, scheme};
  }
  return std::nullopt;
}

namespace {

// Whether the directory holds names of the other scheme, as far as that can be told
// without a listing: at the first version, at the newest, and after it, where a writer of
// the other scheme would have put its own.
Result<bool> HasOtherNames(io::ObjectStore& store, VersionRef newest) {
  const NamingScheme other =
      newest.scheme == NamingScheme::kV2 ? NamingScheme::kV1 : NamingScheme::kV2;
  for (const uint64_t version : {uint64_t{1}, newest.version + 1}) {
    GLAIVE_ASSIGN_OR_RETURN(const bool exists,
                            store.Exists(ManifestPath(version, other)));
    if (exists) return true;
  }
  return false;
}

}  // namespace

Result<std::optional<VersionRef>> FindNewest(io::ObjectStore& store) {
  if (auto hint = ReadHint(store)) {
    GLAIVE_ASSIGN_OR_RETURN(auto found, FindVersion(store, *hint));
    if (found) {
      GLAIVE_ASSIGN_OR_RETURN(const VersionRef newest, EndOfRun(store, *found));
      GLAIVE_ASSIGN_OR_RETURN(const bool mixed, HasOtherNames(store, newest));
      if (mixed) return MixedNames(store);
      return newest;
    }
  }
  return FindNewestByListing(store);
}

std::string FormatVersionHint(uint64_t version) {
  return std::string(kHintPrefix) + std::to_string(version) + "}";
}

void WriteVersionHint(io::ObjectStore& store, uint64_t version) {
  const std::string text = FormatVersionHint(version);
  Status ignored = store.Put(kVersionHintPath,
                             {reinterpret_cast<const uint8_t*>(text.data()), text.size()},
                             /*durable=*/false);
  static_cast<void>(ignored.ok());
}

}  // namespace glaive::table
