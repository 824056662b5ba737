// Reads any bytes as a Lance file: footer, schema, every column in full, in part and by
// row.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <arrow/record_batch.h>

#include "bytes_object.h"
#include "file/file_reader.h"

namespace {

using glaive::Result;

// What is returned must be a valid batch, apart from the text in it.
void Check(const Result<std::shared_ptr<arrow::RecordBatch>>& batch) {
  if (batch.ok() && !(*batch)->Validate().ok()) std::abort();
}

// Rows of a page cost nothing where all are equal: a bound for what one input may claim.
constexpr int64_t kMaxRows = 20000;

void ReadAll(const glaive::file::FileReader& reader) {
  auto projection = reader.ProjectAll();
  if (!projection.ok()) return;
  const int64_t rows = reader.num_rows();
  for (const auto& field : projection->schema.fields()) {
    glaive::file::Projection one;
    one.schema = glaive::file::Schema({field});
    one.columns = projection->columns;
    Check(reader.ReadRange(one, 0, std::min(rows, kMaxRows)));
    if (rows == 0) continue;
    Check(reader.ReadRange(one, rows / 3, std::min<int64_t>(rows - rows / 3, 100)));
    const std::vector<int64_t> take = {rows - 1, 0, rows / 2, rows / 2};
    auto taken = reader.Take(one, take);
    Check(taken);
    if (taken.ok()) Check(reader.LoadBlobs(one, *taken));
    static_cast<void>(reader.EstimateRowBytes(one));
  }
  for (int32_t column = 0; column < 8; ++column) {
    static_cast<void>(reader.PageBoundaries(column).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exact size, so that reads beyond it are found.
  std::vector<uint8_t> bytes(data, data + size);
  auto reader = glaive::file::FileReader::Open(
      std::make_shared<glaive::fuzz::BytesObject>("fuzzed.lance", bytes),
      {.max_decoded_page_bytes = int64_t{64} << 20});
  if (reader.ok()) ReadAll(**reader);
  return 0;
}
