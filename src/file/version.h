// Versions of the Lance file format that this build reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace glaive::file {

enum class FileVersion : uint8_t { k2_0, k2_1, k2_2 };

inline constexpr FileVersion kDefaultFileVersion = FileVersion::k2_2;

// "2.0", "2.1", "2.2"; also the aliases "stable" (2.2) and "0.3" (2.0).
// "2.3", "next", "0.1" and "legacy" are NotSupported by name, anything else InvalidInput.
Result<FileVersion> ParseFileVersion(std::string_view text);
std::string_view FileVersionName(FileVersion version);

// The (major, minor) pair of a file's footer. 2.0 is written as (0, 3); (2, 0) is
// accepted as well.
Result<FileVersion> FileVersionFromFooter(uint16_t major, uint16_t minor);
std::pair<uint16_t, uint16_t> FooterVersion(FileVersion version);
// The pair of a manifest's DataFile entry, where 2.0 is (2, 0).
std::pair<uint32_t, uint32_t> DataFileVersion(FileVersion version);

}  // namespace glaive::file
