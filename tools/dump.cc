// `glaive dump`: what a file of a table consists of, in text.
#include <filesystem>
#include <iostream>
#include <sstream>

#include <arrow/buffer.h>
#include <arrow/type.h>

#include "file/file_metadata.h"
#include "file/file_reader.h"
#include "format/encodings.pb.h"
#include "format/encodings21.pb.h"
#include "io/object_store.h"
#include "tools/commands.h"
#include "tools/describe.h"

namespace glaive::tools {

namespace {

Result<std::shared_ptr<io::RandomAccessObject>> OpenLocalFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return InvalidInput("path '", path, "': ", error.message());
  GLAIVE_ASSIGN_OR_RETURN(auto store,
                          io::OpenLocalStore(absolute.parent_path().string(), false));
  return store->Open(absolute.filename().string());
}

}  // namespace

Result<std::shared_ptr<file::FileReader>> OpenLanceFile(const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(auto object, OpenLocalFile(path));
  return file::FileReader::Open(std::move(object));
}

Result<std::shared_ptr<arrow::Buffer>> ReadLocalFile(const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto object, OpenLocalFile(path));
  return object->Read({0, object->size_bytes()});
}

namespace {

void PrintRanges(const std::vector<io::ByteRange>& ranges) {
  std::cout << "[";
  for (size_t i = 0; i < ranges.size(); ++i) {
    std::cout << (i ? " " : "") << ranges[i].offset << "+" << ranges[i].length;
  }
  std::cout << "]";
}

void PrintFields(const std::vector<file::Field>& fields, int depth, bool v2_0,
                 bool inside, int* column) {
  for (const file::Field& field : fields) {
    std::cout << std::string(static_cast<size_t>(2 * depth + 2), ' ') << field.name
              << " (id " << field.id << "): " << field.logical_type
              << (field.nullable ? "" : " not null");
    for (const auto& [key, value] : field.metadata)
      std::cout << " " << key << "=" << value;
    if (!inside && (v2_0 || field.owns_column()))
      std::cout << " [column " << (*column)++ << "]";
    std::cout << "\n";
    const bool whole = field.is_packed_struct() || field.is_blob();
    PrintFields(field.children, depth + 1, v2_0, inside || whole, column);
  }
}

}  // namespace

Status RunDump(std::span<const std::string> arguments) {
  if (arguments.size() != 1) return InvalidInput("give one file: glaive dump FILE");
  const std::string& path = arguments[0];
  if (path.ends_with(".arrow")) return DumpWalEntry(path);
  if (path.ends_with(".manifest")) return DumpManifest(path);
  if (path.ends_with(".binpb")) return DumpShardManifest(path);
  GLAIVE_ASSIGN_OR_RETURN(auto reader, OpenLanceFile(arguments[0]));
  const file::FileMetadata& metadata = reader->metadata();
  const bool v2_0 = metadata.version == file::FileVersion::k2_0;
  std::cout << arguments[0] << ": version " << file::FileVersionName(metadata.version)
            << " (footer " << metadata.footer_major << "." << metadata.footer_minor
            << "), " << metadata.num_rows << " rows, " << metadata.num_columns()
            << " columns, " << metadata.size_bytes << " bytes\n";
  std::cout << "global buffers: ";
  PrintRanges(metadata.global_buffers);
  std::cout << "\ncolumn metadata: ";
  PrintRanges(metadata.column_metadata);
  std::cout << "\nschema:\n";
  int column = 0;
  PrintFields(metadata.schema.fields(), 0, v2_0, false, &column);
  for (const auto& [key, value] : metadata.schema.metadata()) {
    std::cout << "  metadata " << key << "=" << value << "\n";
  }
  for (int c = 0; c < metadata.num_columns(); ++c) {
    GLAIVE_ASSIGN_OR_RETURN(auto info, metadata.ReadColumn(c));
    std::cout << "column " << c << ": " << info.pages.size() << " pages"
              << (info.is_blob ? ", blob" : "") << "\n";
    for (size_t p = 0; p < info.pages.size(); ++p) {
      const file::PageInfo& page = info.pages[p];
      std::cout << "  page " << p << ": " << page.num_rows << " rows from "
                << page.priority << ", buffers ";
      PrintRanges(page.buffers);
      std::cout << "\n    "
                << (v2_0 ? DescribeArrayEncoding(page.encoding)
                         : DescribePageLayout(page.encoding))
                << "\n";
    }
  }
  return Status::OK();
}

}  // namespace glaive::tools
