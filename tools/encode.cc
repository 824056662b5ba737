// `glaive encode`: an Arrow IPC file as one Lance file; for tests and scripts.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <vector>

#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include "file/file_writer.h"
#include "io/object_store.h"
#include "tools/commands.h"

namespace glaive::tools {
namespace {

struct EncodeOptions {
  file::FileWriterOptions writer;
  int64_t batch_rows = 0;  // 0: the batches of the input
};

Result<int64_t> ParsePositive(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) {
    return InvalidInput("'", text, "' is no positive number");
  }
  return value;
}

Result<EncodeOptions> ParseOptions(std::span<const std::string> arguments) {
  EncodeOptions out;
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string& value = arguments[i + 1];
    if (arguments[i] == "--version") {
      GLAIVE_ASSIGN_OR_RETURN(out.writer.version, file::ParseFileVersion(value));
    } else if (arguments[i] == "--page-bytes") {
      GLAIVE_ASSIGN_OR_RETURN(out.writer.page_bytes, ParsePositive(value));
    } else if (arguments[i] == "--max-page-bytes") {
      GLAIVE_ASSIGN_OR_RETURN(out.writer.max_page_bytes, ParsePositive(value));
    } else if (arguments[i] == "--batch-rows") {
      GLAIVE_ASSIGN_OR_RETURN(out.batch_rows, ParsePositive(value));
    } else {
      return InvalidInput("unknown option '", arguments[i], "'");
    }
  }
  return out;
}

}  // namespace

Status RunEncode(std::span<const std::string> arguments) {
  if (arguments.size() < 2 || arguments.size() % 2 != 0) {
    return InvalidInput(
        "usage: glaive encode IN.arrow OUT.lance [--version V] [--page-bytes N] "
        "[--max-page-bytes N] [--batch-rows N]");
  }
  GLAIVE_ASSIGN_OR_RETURN(const EncodeOptions options,
                          ParseOptions(arguments.subspan(2)));
  GLAIVE_ASSIGN_OR_RETURN(auto source, arrow::io::MemoryMappedFile::Open(
                                           arguments[0], arrow::io::FileMode::READ));
  GLAIVE_ASSIGN_OR_RETURN(auto reader, arrow::ipc::RecordBatchFileReader::Open(source));
  GLAIVE_ASSIGN_OR_RETURN(auto schema, file::Schema::FromArrow(*reader->schema()));
  const std::filesystem::path path = std::filesystem::absolute(arguments[1]);
  GLAIVE_ASSIGN_OR_RETURN(auto store, io::OpenLocalStore(path.parent_path().string(),
                                                         /*create=*/false));
  GLAIVE_ASSIGN_OR_RETURN(auto writer,
                          file::FileWriter::Make(*store, path.filename().string(),
                                                 std::move(schema), options.writer));
  for (int i = 0; i < reader->num_record_batches(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(auto batch, reader->ReadRecordBatch(i));
    const int64_t step = options.batch_rows > 0 ? options.batch_rows
                                                : std::max<int64_t>(batch->num_rows(), 1);
    for (int64_t at = 0; at < batch->num_rows(); at += step) {
      GLAIVE_RETURN_NOT_OK(writer->Write(*batch->Slice(at, step)));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto summary, writer->Finish());
  std::cout << summary.num_rows << " rows, " << summary.size_bytes << " bytes\n";
  return Status::OK();
}

}  // namespace glaive::tools
