// `glaive cat`: rows of a Lance file as an Arrow IPC stream; for tests and scripts. A
// stream, since pages may bring dictionaries of their own, of which an IPC file allows
// only one.
#include <algorithm>
#include <charconv>
#include <vector>

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/file_reader.h"
#include "tools/commands.h"

namespace glaive::tools {
namespace {

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> out;
  size_t start = 0;
  while (start <= text.size()) {
    size_t comma = std::min(text.find(',', start), text.size());
    if (comma > start) out.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return out;
}

Result<int64_t> ParseNumber(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidInput("'", text, "' is no number");
  }
  return value;
}

}  // namespace

Status RunCat(std::span<const std::string> arguments) {
  if (arguments.size() < 2 || arguments.size() % 2 != 0) {
    return InvalidInput("give a Lance file and the Arrow file to write");
  }
  int64_t batch_rows = int64_t{1} << 62;
  std::vector<std::string> columns;
  std::vector<int64_t> take;
  bool taking = false;
  for (size_t i = 2; i < arguments.size(); i += 2) {
    if (arguments[i] == "--batch") {
      GLAIVE_ASSIGN_OR_RETURN(batch_rows, ParseNumber(arguments[i + 1]));
      if (batch_rows < 1) return InvalidInput("--batch must be at least 1");
    } else if (arguments[i] == "--columns") {
      columns = SplitCommas(arguments[i + 1]);
    } else if (arguments[i] == "--take") {
      taking = true;
      for (const std::string& row : SplitCommas(arguments[i + 1])) {
        GLAIVE_ASSIGN_OR_RETURN(int64_t number, ParseNumber(row));
        take.push_back(number);
      }
    } else {
      return InvalidInput("unknown option '", arguments[i], "'");
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto reader, OpenLanceFile(arguments[0]));
  file::Projection projection;
  if (columns.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(projection, reader->ProjectAll());
  } else {
    GLAIVE_ASSIGN_OR_RETURN(projection, reader->Project(columns));
  }
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  if (taking) {
    GLAIVE_ASSIGN_OR_RETURN(auto batch, reader->Take(projection, take));
    batches.push_back(std::move(batch));
  }
  for (int64_t row = 0; !taking && (row == 0 || row < reader->num_rows());) {
    int64_t count = std::min(batch_rows, reader->num_rows() - row);
    GLAIVE_ASSIGN_OR_RETURN(auto batch, reader->ReadRange(projection, row, count));
    GLAIVE_RETURN_NOT_OK(batch->ValidateFull());
    batches.push_back(std::move(batch));
    row += std::max<int64_t>(count, 1);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto sink, arrow::io::FileOutputStream::Open(arguments[1]));
  arrow::ipc::IpcWriteOptions options;
  options.unify_dictionaries = true;
  GLAIVE_ASSIGN_OR_RETURN(
      auto writer, arrow::ipc::MakeStreamWriter(sink, batches[0]->schema(), options));
  for (const auto& batch : batches)
    GLAIVE_RETURN_NOT_OK(writer->WriteRecordBatch(*batch));
  GLAIVE_RETURN_NOT_OK(writer->Close());
  return sink->Close();
}

}  // namespace glaive::tools
