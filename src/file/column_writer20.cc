// Columns of version 2.0.
#include "file/column_writer.h"

namespace glaive::file {

Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeColumnWriters20(
    const Field& field, const FileWriterOptions&, PageSink*) {
  return NotSupported("column '", field.name, "': writing file version 2.0");
}

}  // namespace glaive::file
