#include "file/file_metadata.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <arrow/buffer.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/stubs/logging.h>

#include "encoding/value_sink.h"
#include "format/encodings.pb.h"
#include "format/file.pb.h"
#include "format/file2.pb.h"

namespace glaive::file {
namespace {

using encoding::LoadUnaligned;

constexpr int64_t kFooterBytes = 40;
constexpr int64_t kTableEntryBytes = 16;
constexpr int64_t kTailGuessBytes = int64_t{64} << 10;
constexpr int64_t kBufferAlignment = 64;
constexpr char kMagic[] = "LANC";

// The parser reports malformed text on stderr by itself; errors are returned here
// instead.
void SilenceParser() {
  static const bool done = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  static_cast<void>(done);
}

struct Footer {
  uint64_t columns_start = 0;
  uint64_t column_table = 0;
  uint64_t buffer_table = 0;
  uint32_t num_buffers = 0;
  uint32_t num_columns = 0;
};

Footer ParseFooter(const uint8_t* at) {
  return {LoadUnaligned<uint64_t>(at), LoadUnaligned<uint64_t>(at + 8),
          LoadUnaligned<uint64_t>(at + 16), LoadUnaligned<uint32_t>(at + 24),
          LoadUnaligned<uint32_t>(at + 28)};
}

Status CheckFooter(const Footer& f, uint64_t size) {
  const uint64_t end = size - kFooterBytes;
  const uint64_t buffer_bytes = uint64_t{f.num_buffers} * kTableEntryBytes;
  const uint64_t column_bytes = uint64_t{f.num_columns} * kTableEntryBytes;
  if (f.buffer_table > end || end - f.buffer_table != buffer_bytes) {
    return Corruption("the footer places ", f.num_buffers, " global buffers at ",
                      f.buffer_table, " of ", size, " bytes");
  }
  if (f.column_table > f.buffer_table ||
      f.buffer_table - f.column_table != column_bytes ||
      f.columns_start > f.column_table) {
    return Corruption("the footer places ", f.num_columns, " columns at ",
                      f.columns_start, " and ", f.column_table, " of ", size, " bytes");
  }
  if (f.num_buffers == 0) return Corruption("the file has no schema");
  return Status::OK();
}

Result<io::ByteRange> TableEntry(const uint8_t* at, uint64_t low, uint64_t high,
                                 const char* what, size_t index) {
  auto position = LoadUnaligned<uint64_t>(at);
  auto length = LoadUnaligned<uint64_t>(at + 8);
  if (position < low || position > high || length > high - position) {
    return Corruption(what, " ", index, " lies at ", position, " with ", length,
                      " bytes, outside of ", low, " to ", high);
  }
  return io::ByteRange{static_cast<int64_t>(position), static_cast<int64_t>(length)};
}

Result<std::string> UnwrapEncoding(const lance::file::v2::Encoding& encoding,
                                   std::string_view wanted) {
  if (!encoding.has_direct()) {
    return Corruption("the encoding is missing or not stored in place");
  }
  google::protobuf::Any any;
  if (!any.ParseFromString(encoding.direct().encoding())) {
    return Corruption("the encoding cannot be parsed");
  }
  std::string_view url = any.type_url();
  std::string_view name =
      url.substr(url.rfind('/') == std::string_view::npos ? 0 : url.rfind('/') + 1);
  if (name != wanted) {
    return NotSupported("an encoding described by '", name, "' instead of '", wanted,
                        "'");
  }
  return std::move(*any.mutable_value());
}

Result<std::vector<io::ByteRange>> BufferRanges(
    const google::protobuf::RepeatedField<uint64_t>& offsets,
    const google::protobuf::RepeatedField<uint64_t>& sizes, int64_t file_size,
    bool aligned) {
  if (offsets.size() != sizes.size()) {
    return Corruption(offsets.size(), " buffer offsets and ", sizes.size(), " sizes");
  }
  std::vector<io::ByteRange> out;
  out.reserve(static_cast<size_t>(offsets.size()));
  auto limit = static_cast<uint64_t>(file_size);
  for (int i = 0; i < offsets.size(); ++i) {
    uint64_t offset = offsets.Get(i);
    uint64_t size = sizes.Get(i);
    if (offset > limit || size > limit - offset) {
      return Corruption("buffer ", i, " lies at ", offset, " with ", size,
                        " bytes, beyond the end of the file at ", file_size);
    }
    if (aligned && offset % kBufferAlignment != 0) {
      return Corruption("buffer ", i, " lies at ", offset, ", which is no multiple of ",
                        kBufferAlignment);
    }
    out.push_back({static_cast<int64_t>(offset), static_cast<int64_t>(size)});
  }
  return out;
}

Result<ColumnInfo> ParseColumn(const lance::file::v2::ColumnMetadata& message,
                               const FileMetadata& file) {
  const bool v2_0 = file.version == FileVersion::k2_0;
  ColumnInfo out;
  GLAIVE_ASSIGN_OR_RETURN(
      auto described,
      UnwrapEncoding(message.encoding(), "lance.encodings.ColumnEncoding"));
  lance::encodings::ColumnEncoding column_encoding;
  if (!column_encoding.ParseFromString(described)) {
    return Corruption("the column encoding cannot be parsed");
  }
  if (column_encoding.has_zone_index()) return NotSupported("columns with a zone index");
  out.is_blob = column_encoding.has_blob();
  GLAIVE_ASSIGN_OR_RETURN(out.buffers,
                          BufferRanges(message.buffer_offsets(), message.buffer_sizes(),
                                       file.size_bytes, !v2_0));
  out.pages.reserve(static_cast<size_t>(message.pages_size()));
  for (int p = 0; p < message.pages_size(); ++p) {
    const auto& stored = message.pages(p);
    std::string where = "page " + std::to_string(p);
    PageInfo page;
    if (stored.length() > (uint64_t{1} << 62)) {
      return Corruption(where, " claims ", stored.length(), " rows");
    }
    page.num_rows = static_cast<int64_t>(stored.length());
    page.priority = static_cast<int64_t>(stored.priority());
    auto buffers = BufferRanges(stored.buffer_offsets(), stored.buffer_sizes(),
                                file.size_bytes, !v2_0);
    if (!buffers.ok()) return WithContext(buffers.status(), where);
    page.buffers = std::move(*buffers);
    auto encoding =
        UnwrapEncoding(stored.encoding(), v2_0 ? "lance.encodings.ArrayEncoding"
                                               : "lance.encodings21.PageLayout");
    if (!encoding.ok()) return WithContext(encoding.status(), where);
    page.encoding = std::move(*encoding);
    out.pages.push_back(std::move(page));
  }
  return out;
}

Result<FileMetadata> ReadMetadata(io::RandomAccessObject& object) {
  SilenceParser();
  FileMetadata out;
  out.path = object.path();
  out.size_bytes = object.size_bytes();
  const int64_t size = out.size_bytes;
  if (size < 8) return Corruption("not a Lance file: only ", size, " bytes long");
  int64_t guess = std::min(size, kTailGuessBytes);
  out.tail_offset = size - guess;
  GLAIVE_ASSIGN_OR_RETURN(out.tail, object.Read({out.tail_offset, guess}));
  const uint8_t* end = out.tail->data() + guess;
  if (std::memcmp(end - 4, kMagic, 4) != 0) {
    return Corruption("not a Lance file: it does not end with the mark ", kMagic);
  }
  out.footer_major = LoadUnaligned<uint16_t>(end - 8);
  out.footer_minor = LoadUnaligned<uint16_t>(end - 6);
  GLAIVE_ASSIGN_OR_RETURN(out.version,
                          FileVersionFromFooter(out.footer_major, out.footer_minor));
  if (size < kFooterBytes) return Corruption("only ", size, " bytes long");
  const Footer footer = ParseFooter(end - kFooterBytes);
  GLAIVE_RETURN_NOT_OK(CheckFooter(footer, static_cast<uint64_t>(size)));

  // Two steps at most: the tables first, then everything from the schema on.
  auto have_from = [&](uint64_t position) -> Status {
    if (position >= static_cast<uint64_t>(out.tail_offset)) return Status::OK();
    auto offset = static_cast<int64_t>(position);
    GLAIVE_ASSIGN_OR_RETURN(out.tail, object.Read({offset, size - offset}));
    out.tail_offset = offset;
    return Status::OK();
  };
  auto at = [&](uint64_t position) {
    return out.tail->data() + (static_cast<int64_t>(position) - out.tail_offset);
  };
  GLAIVE_RETURN_NOT_OK(have_from(footer.column_table));
  for (size_t i = 0; i < footer.num_buffers; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(auto range,
                            TableEntry(at(footer.buffer_table + i * kTableEntryBytes), 0,
                                       footer.buffer_table, "global buffer", i));
    if (out.version != FileVersion::k2_0 && range.offset % kBufferAlignment != 0) {
      return Corruption("global buffer ", i, " lies at ", range.offset,
                        ", which is no multiple of ", kBufferAlignment);
    }
    out.global_buffers.push_back(range);
  }
  for (size_t i = 0; i < footer.num_columns; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(
        auto range,
        TableEntry(at(footer.column_table + i * kTableEntryBytes), footer.columns_start,
                   footer.column_table, "metadata of column", i));
    out.column_metadata.push_back(range);
  }
  const io::ByteRange descriptor = out.global_buffers[0];
  if (static_cast<uint64_t>(descriptor.offset) > footer.columns_start) {
    return Corruption("the schema at ", descriptor.offset, " lies behind the columns at ",
                      footer.columns_start);
  }
  GLAIVE_RETURN_NOT_OK(have_from(static_cast<uint64_t>(descriptor.offset)));
  lance::file::FileDescriptor message;
  if (!message.ParseFromArray(
          at(static_cast<uint64_t>(descriptor.offset)),
          static_cast<int>(std::min<int64_t>(descriptor.length, INT32_MAX)))) {
    return Corruption("the schema cannot be parsed");
  }
  if (message.length() > (uint64_t{1} << 62)) {
    return Corruption("the file claims ", message.length(), " rows");
  }
  out.num_rows = static_cast<int64_t>(message.length());
  GLAIVE_ASSIGN_OR_RETURN(out.schema, Schema::FromProto(message.schema()));
  return out;
}

}  // namespace

Result<ColumnInfo> FileMetadata::ReadColumn(int column) const {
  if (column < 0 || column >= num_columns()) {
    return InvalidInput("file '", path, "' has ", num_columns(),
                        " columns, none is number ", column);
  }
  const io::ByteRange range = column_metadata[static_cast<size_t>(column)];
  lance::file::v2::ColumnMetadata message;
  auto parsed = [&]() -> Result<ColumnInfo> {
    if (range.length > INT32_MAX ||
        !message.ParseFromArray(tail->data() + (range.offset - tail_offset),
                                static_cast<int>(range.length))) {
      return Corruption("the column's metadata cannot be parsed");
    }
    return ParseColumn(message, *this);
  }();
  if (!parsed.ok()) {
    return WithContext(parsed.status(),
                       "file '" + path + "', column " + std::to_string(column));
  }
  return parsed;
}

Result<FileMetadata> ReadFileMetadata(io::RandomAccessObject& object) {
  auto out = ReadMetadata(object);
  if (!out.ok()) return WithContext(out.status(), "file '" + object.path() + "'");
  return out;
}

}  // namespace glaive::file
