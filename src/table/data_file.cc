#include "table/data_file.h"

#include <limits>
#include <optional>
#include <string>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/bases.h"

namespace glaive::table {
namespace {

std::string CacheKey(const FilePlace& place) {
  return "data-file:" + place.store->root() + "/" + place.path;
}

}  // namespace

Result<file::FileVersion> DataFileVersionOf(const lance::table::DataFile& file) {
  constexpr uint32_t kMax = std::numeric_limits<uint16_t>::max();
  const uint32_t major = file.file_major_version();
  const uint32_t minor = file.file_minor_version();
  auto version = major > kMax || minor > kMax
                     ? Result<file::FileVersion>(
                           NotSupported("data storage version ", major, ".", minor))
                     : file::FileVersionFromFooter(static_cast<uint16_t>(major),
                                                   static_cast<uint16_t>(minor));
  if (!version.ok()) return WithContext(version.status(), "data file " + file.path());
  return version;
}

Result<std::shared_ptr<const file::FileReader>> OpenDataFile(
    const TableEnv& env, const lance::table::DataFile& file) {
  GLAIVE_ASSIGN_OR_RETURN(const FilePlace place, PlaceOf(env, file));
  const std::string& path = place.path;
  const std::string key = CacheKey(place);
  if (env.runtime != nullptr) {
    if (auto cached = env.runtime->cache().Get<file::FileReader>(key)) return cached;
  }

  GLAIVE_ASSIGN_OR_RETURN(const file::FileVersion version, DataFileVersionOf(file));
  std::optional<int64_t> size;
  if (file.file_size_bytes() != 0) {
    if (file.file_size_bytes() >
        static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Corruption("data file ", path, " cannot have ", file.file_size_bytes(),
                        " bytes");
    }
    size = static_cast<int64_t>(file.file_size_bytes());
  }
  auto open = [&]() -> Result<std::shared_ptr<file::FileReader>> {
    GLAIVE_ASSIGN_OR_RETURN(auto object, place.store->Open(path, size));
    if (size && object->size_bytes() != *size) {
      return Corruption("it has ", object->size_bytes(), " bytes, the manifest says ",
                        *size);
    }
    GLAIVE_ASSIGN_OR_RETURN(auto opened, file::FileReader::Open(std::move(object)));
    if (opened->version() != version) {
      return Corruption("it is of version ", file::FileVersionName(opened->version()),
                        ", the manifest says ", file::FileVersionName(version));
    }
    opened->SetFilesBeside(place.store, path);
    return opened;
  };
  auto reader = open();
  if (KindOf(reader.status()) == ErrorKind::kInvalidInput) {
    // A path that no writer would choose, such as one with "..".
    return Corruption("data file '", path, "' of table ", env.store->root(), ": ",
                      reader.status().message());
  }
  if (!reader.ok()) {
    return WithContext(reader.status(),
                       "data file " + path + " of table " + env.store->root());
  }
  if (env.runtime != nullptr) {
    env.runtime->cache().Put(key, *reader, (*reader)->memory_bytes());
  }
  return *reader;
}

int64_t DataFileBytes(const lance::table::DataFragment& fragment) {
  uint64_t bytes = 0;
  for (const auto& file : fragment.files()) bytes += file.file_size_bytes();
  return static_cast<int64_t>(bytes);
}

void ForgetDataFile(const TableEnv& env, const lance::table::DataFile& file) {
  if (env.runtime == nullptr) return;
  auto place = PlaceOf(env, file);
  if (place.ok()) env.runtime->cache().Erase(CacheKey(*place));
}

}  // namespace glaive::table
