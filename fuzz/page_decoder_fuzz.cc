// Any bytes as one page of a file, below the footer and metadata that guard pages in a
// file: the description of the page, its buffers, and a type to read it as.
//
// Input, little-endian: version (even: 2.0, odd: 2.1 and later), type, rows (2 bytes),
// number of buffers, length of the description (2 bytes), length of each buffer (2
// bytes), then the description and the buffers. Lengths beyond the end are cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/array.h>
#include <arrow/compare.h>
#include <arrow/type.h>

#include "bytes_object.h"
#include "encoding/levels_read.h"
#include "encoding/value_sink.h"
#include "file/decode20.h"
#include "file/page_reader.h"
#include "format/encodings.pb.h"
#include "format/encodings21.pb.h"

namespace {

using glaive::encoding::LayerKind;
using glaive::encoding::LevelBatch;
using glaive::encoding::PathLayer;
using glaive::encoding::StructureSink;
using glaive::encoding::ValiditySink;
using glaive::encoding::ValueRange;
using glaive::encoding::ValueShape;
using glaive::encoding::ValueSink;
using glaive::fuzz::BytesObject;
using glaive::io::ByteRange;

constexpr size_t kMaxPageBuffers = 6;
constexpr int64_t kMaxDecodedBytes = int64_t{64} << 20;

std::vector<ValueShape> MakeShapes() {
  using arrow::field;
  const std::vector<std::shared_ptr<arrow::DataType>> types = {
      arrow::int32(),
      arrow::utf8(),
      arrow::int64(),
      arrow::boolean(),
      arrow::float32(),
      arrow::large_binary(),
      arrow::int8(),
      arrow::int16(),
      arrow::float64(),
      arrow::fixed_size_list(arrow::float32(), 3),
      arrow::fixed_size_list(arrow::boolean(), 3),
      arrow::fixed_size_list(arrow::fixed_size_list(arrow::int16(), 2), 2),
      arrow::fixed_size_binary(16),
      arrow::decimal128(20, 4),
      arrow::dictionary(arrow::int8(), arrow::utf8()),
      arrow::dictionary(arrow::int32(), arrow::int64()),
      arrow::struct_({field("a", arrow::int32()), field("b", arrow::int64())}),
      arrow::struct_({field("a", arrow::int32()), field("b", arrow::utf8())}),
      arrow::null(),
  };
  std::vector<ValueShape> shapes;
  for (const auto& type : types) {
    shapes.push_back(ValueShape::Of(type).ValueOrDie());
  }
  return shapes;
}

struct Input {
  bool old_version = false;
  const ValueShape* shape = nullptr;
  int64_t num_rows = 0;
  std::string description;
  std::vector<uint8_t> bytes;  // of all buffers, a copy of exact size
  std::vector<ByteRange> buffers;
};

std::optional<Input> Parse(std::span<const uint8_t> data) {
  static const std::vector<ValueShape> shapes = MakeShapes();
  size_t at = 0;
  const auto number = [&](size_t width) {
    int64_t value = 0;
    for (size_t i = 0; i < width; ++i, ++at) {
      value |= int64_t{at < data.size() ? data[at] : uint8_t{0}} << (8 * i);
    }
    return value;
  };
  Input out;
  out.old_version = number(1) % 2 == 0;
  out.shape = &shapes[static_cast<size_t>(number(1)) % shapes.size()];
  out.num_rows = number(2);
  const auto num_buffers = static_cast<size_t>(number(1)) % (kMaxPageBuffers + 1);
  const auto description = static_cast<size_t>(number(2));
  std::vector<int64_t> lengths;
  for (size_t b = 0; b < num_buffers; ++b) lengths.push_back(number(2));
  if (at > data.size()) return std::nullopt;
  data = data.subspan(at);
  const auto head = data.first(std::min(description, data.size()));
  out.description.assign(head.begin(), head.end());
  data = data.subspan(head.size());
  out.bytes.assign(data.begin(), data.end());
  int64_t offset = 0;
  for (int64_t length : lengths) {
    length = std::min(length, static_cast<int64_t>(out.bytes.size()) - offset);
    out.buffers.push_back({offset, length});
    offset += length;
  }
  return out;
}

// The layers that the page itself names: what a schema that fits it would say.
std::vector<PathLayer> PathOf(const lance::encodings21::PageLayout& layout) {
  std::vector<int> kinds;
  if (layout.has_mini_block_layout()) {
    kinds = glaive::file::LayerNumbers(layout.mini_block_layout());
  } else if (layout.has_full_zip_layout()) {
    kinds = glaive::file::LayerNumbers(layout.full_zip_layout());
  } else if (layout.has_constant_layout()) {
    kinds = glaive::file::LayerNumbers(layout.constant_layout());
  } else if (layout.has_blob_layout()) {
    kinds = glaive::file::LayerNumbers(layout.blob_layout());
  }
  std::vector<PathLayer> path;
  for (int kind : kinds) {
    path.push_back({kind >= 1 && kind <= 6 && IsList(static_cast<LayerKind>(kind)), 1});
  }
  if (path.empty()) path.push_back({});
  return path;
}

// The values at `rows`; null where that fails.
std::shared_ptr<arrow::Array> Finish(ValueSink* values, ValiditySink* validity) {
  const int64_t length = values->length();
  auto bits = validity == nullptr ? nullptr : validity->Finish();
  auto data = values->Finish(bits, validity == nullptr ? 0 : validity->null_count());
  if (!data.ok()) return nullptr;
  auto array = arrow::MakeArray(*data);
  // What is returned must be a valid array, apart from the text in it.
  if (array->length() != length || !array->Validate().ok()) std::abort();
  return array;
}

std::shared_ptr<arrow::Array> ReadOld(const Input& input, BytesObject& object,
                                      std::span<const ValueRange> rows) {
  lance::encodings::ArrayEncoding encoding;
  if (!encoding.ParseFromString(input.description)) return nullptr;
  glaive::file::PageInfo info;
  info.num_rows = input.num_rows;
  info.buffers = input.buffers;
  const glaive::file::Page20 page(object, info);
  std::vector<uint64_t> numbers;
  static_cast<void>(page.DecodeNumbers(encoding, rows, &numbers).ok());
  ValueSink values(*input.shape);
  ValiditySink validity;
  if (!page.Decode(encoding, input.num_rows, rows, &values, &validity).ok()) {
    return nullptr;
  }
  if (values.length() != validity.length()) return nullptr;
  return Finish(&values, &validity);
}

std::shared_ptr<arrow::Array> ReadNew(const Input& input, BytesObject& object,
                                      std::span<const ValueRange> rows) {
  lance::encodings21::PageLayout layout;
  if (!layout.ParseFromString(input.description)) return nullptr;
  const auto path = PathOf(layout);
  glaive::file::PageContext context;
  context.object = &object;
  context.buffers = input.buffers;
  context.num_rows = input.num_rows;
  context.shape = input.shape;
  context.path = path;
  context.max_decoded_bytes = kMaxDecodedBytes;
  auto reader = glaive::file::MakePageReader(context, input.description);
  if (!reader.ok()) return nullptr;
  LevelBatch levels;
  ValueSink values(*input.shape);
  StructureSink structure(path);
  if (!(*reader)->Read(rows, &levels, &values).ok()) return nullptr;
  if (!structure.Append((*reader)->rules(), levels).ok()) return nullptr;
  const auto& outermost = structure.layers().back();
  int64_t wanted = 0;
  for (const auto& range : rows) wanted += range.count;
  if (outermost.length() != wanted) return nullptr;
  return Finish(&values, nullptr);
}

std::shared_ptr<arrow::Array> Read(const Input& input, BytesObject& object,
                                   std::span<const ValueRange> rows) {
  return input.old_version ? ReadOld(input, object, rows) : ReadNew(input, object, rows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = Parse({data, size});
  if (!input || input->num_rows == 0) return 0;
  // Every range was checked to lie within a buffer of the page: nothing else may be read.
  BytesObject object("page", input->bytes);
  const int64_t rows = input->num_rows;
  const std::vector<ValueRange> all = {{0, rows}};
  const auto whole = Read(*input, object, all);
  if (rows < 4) return 0;
  const std::vector<ValueRange> parts = {{1, rows / 2}, {rows - 1, 1}};
  const auto some = Read(*input, object, parts);
  // Where rows are values, both readings agree. (With lists the values of a row are not
  // known here, and null rows may have no value.)
  if (whole && some && whole->length() == rows && some->length() == rows / 2 + 1) {
    const auto options = arrow::EqualOptions::Defaults().nans_equal(true);
    if (!whole->RangeEquals(*some, 1, 1 + rows / 2, 0, options)) std::abort();
  }
  return 0;
}
