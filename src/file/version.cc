#include "file/version.h"

namespace glaive::file {

Result<FileVersion> ParseFileVersion(std::string_view text) {
  if (text == "2.0" || text == "0.3") return FileVersion::k2_0;
  if (text == "2.1") return FileVersion::k2_1;
  if (text == "2.2" || text == "stable") return FileVersion::k2_2;
  if (text == "2.3" || text == "next") {
    return NotSupported("file version ", text,
                        " is unstable and not supported; use 2.0, 2.1 or 2.2");
  }
  if (text == "0.1" || text == "legacy") {
    return NotSupported("file version ", text,
                        " (legacy) is not supported; use 2.0, 2.1 or 2.2");
  }
  return InvalidInput("unknown file version '", text, "'; use 2.0, 2.1 or 2.2");
}

std::string_view FileVersionName(FileVersion version) {
  switch (version) {
    case FileVersion::k2_0:
      return "2.0";
    case FileVersion::k2_1:
      return "2.1";
    case FileVersion::k2_2:
      return "2.2";
  }
  return "unknown";
}

Result<FileVersion> FileVersionFromFooter(uint16_t major, uint16_t minor) {
  if ((major == 0 && minor == 3) || (major == 2 && minor == 0)) return FileVersion::k2_0;
  if (major == 2 && minor == 1) return FileVersion::k2_1;
  if (major == 2 && minor == 2) return FileVersion::k2_2;
  if (major == 0 && minor <= 2) {
    return NotSupported("the file has the legacy format 0.1, which is not supported");
  }
  return NotSupported("the file has format version ", major, ".", minor,
                      "; this build reads 2.0, 2.1 and 2.2");
}

std::pair<uint16_t, uint16_t> FooterVersion(FileVersion version) {
  switch (version) {
    case FileVersion::k2_0:
      return {0, 3};
    case FileVersion::k2_1:
      return {2, 1};
    case FileVersion::k2_2:
      return {2, 2};
  }
  return {0, 0};
}

std::pair<uint32_t, uint32_t> DataFileVersion(FileVersion version) {
  if (version == FileVersion::k2_0) return {2, 0};
  auto [major, minor] = FooterVersion(version);
  return {major, minor};
}

}  // namespace glaive::file
