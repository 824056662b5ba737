// The subcommands of the command line tool.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace arrow {
class Buffer;
}

namespace glaive::file {
class FileReader;
}

namespace glaive::tools {

struct Command {
  std::string_view name;
  std::string_view arguments;  // for the usage text
  std::string_view summary;    // empty: not listed
  Status (*run)(std::span<const std::string> arguments);
};

Status RunDump(std::span<const std::string> arguments);
Status RunCat(std::span<const std::string> arguments);
Status RunEncode(std::span<const std::string> arguments);
Status RunVerify(std::span<const std::string> arguments);
Status RunLsm(std::span<const std::string> arguments);

// What `glaive dump` says of an entry of the log (*.arrow) and of the manifest of a shard
// (*.binpb).
Status DumpWalEntry(const std::string& path);
Status DumpShardManifest(const std::string& path);
// Of the manifest of a version (*.manifest).
Status DumpManifest(const std::string& path);

// The bytes of a file of the local file system.
Result<std::shared_ptr<arrow::Buffer>> ReadLocalFile(const std::string& path);

// Opens the Lance file at a path of the local file system.
Result<std::shared_ptr<file::FileReader>> OpenLanceFile(const std::string& path);

}  // namespace glaive::tools
