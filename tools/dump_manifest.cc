// `glaive dump` of the manifest of a table's version.
#include <iostream>
#include <string>

#include <arrow/buffer.h>

#include "file/schema.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/manifest.h"
#include "tools/commands.h"

namespace glaive::tools {
namespace {

void PrintFile(const lance::table::DataFile& file) {
  std::cout << "  " << file.path() << ": version " << file.file_major_version() << "."
            << file.file_minor_version();
  if (file.file_size_bytes() > 0) std::cout << ", " << file.file_size_bytes() << " bytes";
  if (file.has_base_id()) std::cout << ", below base " << file.base_id();
  std::cout << ", fields";
  for (const int32_t field : file.fields()) std::cout << " " << field;
  std::cout << "\n";
}

void PrintFragment(const lance::table::DataFragment& fragment) {
  std::cout << "fragment " << fragment.id() << ": " << fragment.physical_rows()
            << " rows\n";
  for (const auto& file : fragment.files()) PrintFile(file);
  if (fragment.has_deletion_file()) {
    const auto& file = fragment.deletion_file();
    std::cout << "  " << file.num_deleted_rows() << " rows deleted by "
              << lance::table::DeletionFile::DeletionFileType_Name(file.file_type())
              << ", version " << file.read_version() << ", id " << file.id() << "\n";
  }
}

Status PrintSections(const table::ManifestFile& manifest) {
  if (manifest.index_section) {
    lance::table::IndexSection section;
    if (!section.ParseFromString(std::string(*manifest.index_section))) {
      return Corruption("the index section does not decode");
    }
    for (const auto& index : section.indices()) {
      std::cout << "index " << index.name() << ": " << index.index_details().type_url()
                << ", fields";
      for (const int32_t field : index.fields()) std::cout << " " << field;
      std::cout << "\n";
    }
  }
  if (manifest.transaction_section) {
    lance::table::Transaction transaction;
    if (!transaction.ParseFromString(std::string(*manifest.transaction_section))) {
      return Corruption("the transaction does not decode");
    }
    std::cout << "transaction " << transaction.uuid() << ", made on version "
              << transaction.read_version() << "\n";
  }
  return Status::OK();
}

}  // namespace

Status DumpManifest(const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, ReadLocalFile(path));
  table::SharedBytes shared{bytes, std::string_view(*bytes)};
  auto parsed = table::ParseManifest(std::move(shared));
  if (!parsed.ok()) return WithContext(parsed.status(), "manifest '" + path + "'");
  const table::ManifestFile& manifest = *parsed;
  const lance::table::Manifest& header = *manifest.header;
  std::cout << path << ": manifest, " << bytes->size() << " bytes\nversion "
            << header.version() << ", written by " << header.writer_version().library()
            << " " << header.writer_version().version() << ", seconds "
            << header.timestamp().seconds() << "\nfiles "
            << header.data_format().file_format() << " " << header.data_format().version()
            << ", reader flags " << header.reader_feature_flags() << ", writer flags "
            << header.writer_feature_flags() << ", highest fragment id "
            << header.max_fragment_id() << ", next row id " << header.next_row_id()
            << "\nschema:\n";
  for (const auto& field : header.fields()) {
    std::cout << "  " << field.name() << " (id " << field.id() << ", below "
              << field.parent_id() << "): " << field.logical_type()
              << (field.nullable() ? "" : " not null") << "\n";
  }
  for (const auto& [key, value] : header.config()) {
    std::cout << "setting " << key << "=" << value << "\n";
  }
  for (const auto& base : header.base_paths()) {
    std::cout << "base " << base.id() << ": " << base.path() << "\n";
  }
  const std::string_view all = manifest.bytes.view;
  for (const table::FragmentSummary& summary : manifest.fragments) {
    lance::table::DataFragment fragment;
    if (!fragment.ParseFromString(
            std::string(all.substr(summary.offset, summary.length)))) {
      return Corruption("manifest '", path, "': fragment ", summary.id,
                        " does not decode");
    }
    PrintFragment(fragment);
  }
  const Status sections = PrintSections(manifest);
  return sections.ok() ? sections : WithContext(sections, "manifest '" + path + "'");
}

}  // namespace glaive::tools
