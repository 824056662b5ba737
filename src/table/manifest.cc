#include "table/manifest.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <google/protobuf/stubs/logging.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/wire.h"

namespace glaive::table {
namespace {

constexpr size_t kFooterBytes = 16;
constexpr size_t kMaxGuessedFragments = 1 << 20;
constexpr char kMagic[] = "LANC";
constexpr size_t kDiskBlockBytes = 512;  // the least that a disk writes or loses
constexpr uint16_t kMajorVersion = 0;
constexpr uint16_t kMinorVersion = 2;
constexpr uint32_t kFragmentsField = 2;
constexpr uint32_t kFragmentsTag = (kFragmentsField << 3) | WireReader::kBytes;

template <typename T>
T LoadLittleEndian(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

template <typename T>
void AppendLittleEndian(std::string* out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out->append(raw, sizeof(T));
}

// A section is a u32 length and that many bytes, all before the manifest message.
Result<std::string_view> ReadSection(std::string_view file, uint64_t offset,
                                     uint64_t limit, const char* what) {
  if (offset > limit || limit - offset < 4) {
    return Corruption("the ", what, " section lies outside the manifest file (offset ",
                      offset, ")");
  }
  uint32_t length =
      LoadLittleEndian<uint32_t>(reinterpret_cast<const uint8_t*>(file.data()) + offset);
  if (length > limit - offset - 4) {
    return Corruption("the ", what, " section of the manifest is truncated: ", length,
                      " bytes at offset ", offset);
  }
  return file.substr(offset + 4, length);
}

}  // namespace

ManifestFile::ManifestFile() = default;
ManifestFile::ManifestFile(ManifestFile&&) noexcept = default;
ManifestFile& ManifestFile::operator=(ManifestFile&&) noexcept = default;
ManifestFile::~ManifestFile() = default;

Result<ManifestFile> ParseManifest(SharedBytes bytes) {
  // Errors are returned; protobuf would also print them.
  static const bool silenced = (google::protobuf::SetLogHandler(nullptr), true);
  static_cast<void>(silenced);
  const size_t size = bytes.view.size();
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.view.data());
  if (size > std::numeric_limits<uint32_t>::max()) {
    return Corruption("the manifest has ", size, " bytes, more than the format can hold");
  }
  if (size < kFooterBytes + 4) {
    return Corruption("the manifest has only ", size, " bytes");
  }
  if (std::memcmp(data + size - 4, kMagic, 4) != 0) {
    return Corruption("the manifest does not end with the magic bytes LANC");
  }
  const auto position = LoadLittleEndian<uint64_t>(data + size - kFooterBytes);
  if (position > size - kFooterBytes - 4) {
    return Corruption("the manifest message lies outside its file (offset ", position,
                      ")");
  }
  const uint32_t length = LoadLittleEndian<uint32_t>(data + position);
  if (length != size - position - 4 - kFooterBytes) {
    return Corruption("the manifest message has ", length,
                      " bytes, its file has room for ",
                      size - position - 4 - kFooterBytes);
  }

  ManifestFile result;
  std::span<const uint8_t> message(data + position + 4, length);
  std::string header;
  WireReader reader(message);
  size_t kept_from = 0;  // start of the bytes not yet copied to `header`
  while (!reader.done()) {
    const size_t start = reader.position();
    uint32_t field, type;
    if (!reader.ReadTag(&field, &type)) return Corruption("the manifest does not decode");
    if (field != kFragmentsField) {
      if (!reader.Skip(type)) return Corruption("the manifest does not decode");
      continue;
    }
    std::span<const uint8_t> fragment;
    if (type != WireReader::kBytes || !reader.ReadBytes(&fragment)) {
      return Corruption("the manifest does not decode");
    }
    header.append(reinterpret_cast<const char*>(message.data()) + kept_from,
                  start - kept_from);
    kept_from = reader.position();
    const auto offset = static_cast<size_t>(fragment.data() - data);
    if (result.fragments.empty()) {
      // A guess that spares growing: most fragments of a table are alike.
      result.fragments.reserve(std::min<size_t>(
          (message.size() - start) / (fragment.size() + 2) + 1, kMaxGuessedFragments));
    }
    FragmentSummary& summary = result.fragments.emplace_back();
    if (!ScanFragment(bytes.view.substr(offset, fragment.size()), &summary)) {
      return Corruption("a fragment of the manifest does not decode");
    }
    summary.offset = static_cast<uint32_t>(offset);
  }
  header.append(reinterpret_cast<const char*>(message.data()) + kept_from,
                message.size() - kept_from);
  result.header = std::make_unique<lance::table::Manifest>();
  if (!result.header->ParseFromString(header)) {
    return Corruption("the manifest does not decode");
  }
  // Writers keep the list sorted, but readers need not insist on it.
  const auto by_id = [](const FragmentSummary& a, const FragmentSummary& b) {
    return a.id < b.id;
  };
  if (!std::is_sorted(result.fragments.begin(), result.fragments.end(), by_id)) {
    std::sort(result.fragments.begin(), result.fragments.end(), by_id);
  }

  result.bytes = std::move(bytes);
  const std::string_view file = result.bytes.view;
  if (result.header->has_index_section()) {
    GLAIVE_ASSIGN_OR_RETURN(
        result.index_section,
        ReadSection(file, result.header->index_section(), position, "index"));
  }
  // The number 23 is newer; a writer that sets both means 23.
  if (result.header->has_transaction_section_v14()) {
    GLAIVE_ASSIGN_OR_RETURN(result.transaction_section,
                            ReadSection(file, result.header->transaction_section_v14(),
                                        position, "transaction"));
  } else if (result.header->has_transaction_section()) {
    GLAIVE_ASSIGN_OR_RETURN(
        result.transaction_section,
        ReadSection(file, result.header->transaction_section(), position, "transaction"));
  }
  return result;
}

bool LooksTorn(std::string_view file) {
  if (file.size() < kFooterBytes + 4) return true;
  if (file.substr(file.size() - 4) != std::string_view(kMagic, 4)) {
    // The end is missing, or never reached the disk. A flipped bit in the magic bytes is
    // neither.
    int same = 0;
    for (size_t i = 0; i < 4; ++i) same += file[file.size() - 4 + i] == kMagic[i] ? 1 : 0;
    return same < 3;
  }
  for (size_t at = 0; at + kDiskBlockBytes <= file.size(); at += kDiskBlockBytes) {
    const std::string_view block = file.substr(at, kDiskBlockBytes);
    if (block.find_first_not_of('\0') == std::string_view::npos) return true;
  }
  return false;
}

Result<std::string> SerializeManifest(const ManifestParts& parts,
                                      std::span<FragmentSummary> summaries) {
  size_t fragments_size = 0;
  for (std::string_view fragment : parts.fragments) fragments_size += fragment.size() + 6;
  const size_t estimate = fragments_size + parts.index_section.size() +
                          parts.transaction.size() + parts.header->ByteSizeLong() + 1024;
  if (estimate > std::numeric_limits<uint32_t>::max()) {
    return InvalidInput("the manifest would have ", estimate,
                        " bytes, more than the format can hold: compact the table");
  }

  std::string out;
  out.reserve(estimate);
  lance::table::Manifest& header = *parts.header;
  header.clear_index_section();
  header.clear_transaction_section();
  header.clear_transaction_section_v14();
  auto append_section = [&out](std::string_view section) {
    AppendLittleEndian(&out, static_cast<uint32_t>(section.size()));
    out += section;
  };
  if (!parts.index_section.empty()) {
    header.set_index_section(out.size());
    append_section(parts.index_section);
  }
  if (!parts.transaction.empty()) {
    header.set_transaction_section(out.size());
    append_section(parts.transaction);
  }

  const uint64_t position = out.size();
  AppendLittleEndian(&out, uint32_t{0});
  if (!header.AppendToString(&out))
    return InternalError("the manifest does not serialize");
  for (size_t i = 0; i < parts.fragments.size(); ++i) {
    std::string_view fragment = parts.fragments[i];
    AppendVarint(&out, kFragmentsTag);
    AppendVarint(&out, fragment.size());
    summaries[i].offset = static_cast<uint32_t>(out.size());
    summaries[i].length = static_cast<uint32_t>(fragment.size());
    out += fragment;
  }
  const auto length = static_cast<uint32_t>(out.size() - position - 4);
  std::memcpy(out.data() + position, &length, sizeof(length));

  AppendLittleEndian(&out, position);
  AppendLittleEndian(&out, kMajorVersion);
  AppendLittleEndian(&out, kMinorVersion);
  out.append(kMagic, 4);
  return out;
}

}  // namespace glaive::table
