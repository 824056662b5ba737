#include "table/deletion_file.h"

#include <string>
#include <vector>

#include <arrow/buffer.h>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/bases.h"
#include "table/deletion_vector.h"
#include "table/names.h"
#include "table/unsynced_files.h"

namespace glaive::table {
namespace {

constexpr int64_t kMaxArrowOffsets = 4999;

}  // namespace

Result<std::shared_ptr<const DeletionVector>> ReadDeletionFile(
    const TableEnv& env, const lance::table::DataFragment& fragment,
    int64_t physical_rows) {
  if (!fragment.has_deletion_file()) return std::shared_ptr<const DeletionVector>();
  const lance::table::DeletionFile& file = fragment.deletion_file();
  GLAIVE_ASSIGN_OR_RETURN(const FilePlace place, PlaceOf(env, fragment.id(), file));
  const std::string& path = place.path;
  auto bytes = place.store->Get(path);
  if (!bytes.ok()) return WithContext(bytes.status(), "deletion file " + path);
  std::span<const uint8_t> span((*bytes)->data(), static_cast<size_t>((*bytes)->size()));
  Result<std::shared_ptr<const DeletionVector>> vector =
      NotSupported("deletion files of type ", static_cast<int>(file.file_type()));
  if (file.file_type() == lance::table::DeletionFile::ARROW_ARRAY) {
    vector = DeletionVector::ParseArrow(span, physical_rows);
  } else if (file.file_type() == lance::table::DeletionFile::BITMAP) {
    vector = DeletionVector::ParseBitmap(span, physical_rows);
  }
  if (!vector.ok()) return WithContext(vector.status(), "deletion file " + path);
  if (file.num_deleted_rows() != 0 &&
      static_cast<int64_t>(file.num_deleted_rows()) != (*vector)->size()) {
    return Corruption("deletion file ", path, " holds ", (*vector)->size(),
                      " rows, the manifest says ", file.num_deleted_rows());
  }
  return vector;
}

Result<lance::table::DeletionFile> WriteDeletionFile(
    io::ObjectStore& store, uint64_t fragment_id, uint64_t read_version,
    const DeletionVector& vector, bool always_bitmap, UnsyncedFiles* unsynced) {
  lance::table::DeletionFile file;
  file.set_read_version(read_version);
  file.set_id(RandomU64());
  file.set_num_deleted_rows(static_cast<uint64_t>(vector.size()));
  std::vector<uint8_t> bytes;
  if (always_bitmap || vector.size() > kMaxArrowOffsets) {
    file.set_file_type(lance::table::DeletionFile::BITMAP);
    bytes = vector.ToBitmap();
  } else {
    file.set_file_type(lance::table::DeletionFile::ARROW_ARRAY);
    GLAIVE_ASSIGN_OR_RETURN(bytes, vector.ToArrow());
  }
  const std::string path = DeletionFilePath(fragment_id, file);
  if (unsynced != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(auto writer, store.Create(path));
    GLAIVE_RETURN_NOT_OK(writer->Append(bytes));
    unsynced->Add(path, std::move(writer));
    return file;
  }
  if (Status put = store.Put(path, bytes); !put.ok()) {
    // It may be there all the same, and nobody will name it.
    Status ignored = store.Delete(path);
    static_cast<void>(ignored.ok());
    return put;
  }
  return file;
}

}  // namespace glaive::table
