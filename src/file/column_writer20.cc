// Columns of version 2.0: one per field, lists and structs included.
#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "encoding/encode20.h"
#include "encoding/encode_options.h"
#include "encoding/levels_build.h"
#include "encoding/packed_encode.h"
#include "encoding/values.h"
#include "file/column_buffer.h"
#include "file/column_path.h"
#include "file/column_writer.h"
#include "format/encodings.pb.h"

namespace glaive::file {
namespace {

using encoding::EncodedArray20;
using encoding::Segment;

Status NeedsNewer(const std::string& name, std::string_view what,
                  std::string_view version) {
  return NotSupported("column '", name, "': ", what,
                      " cannot be stored in file version 2.0; use version ", version);
}

Status CheckPacked(const std::string& name, const Field& leaf) {
  if (leaf.is_blob()) {
    return NeedsNewer(name, "blob descriptors (lance.blob.v2)", "2.2");
  }
  if (leaf.children.empty()) {
    return NotSupported("column '", name, "': a packed struct needs members");
  }
  for (const Field& member : leaf.children) {
    const arrow::DataType* type = member.type.get();
    while (type->id() == arrow::Type::FIXED_SIZE_LIST) {
      type = static_cast<const arrow::FixedSizeListType*>(type)->value_type().get();
    }
    if (arrow::is_base_binary_like(type->id())) {
      return NeedsNewer(name, "packed structs with strings", "2.2");
    }
    const int64_t bits = encoding::FixedBits(*type);
    if (bits == 0 || bits % 8 != 0) {
      return NotSupported("column '", name, "': member '", member.name, "' of type ",
                          member.type->ToString(), " cannot be part of a packed struct");
    }
  }
  return Status::OK();
}

Status CheckStorable(const ColumnPath& path) {
  const Field& field = path.leaf();
  const std::string name = path.name();
  switch (field.type->id()) {
    case arrow::Type::MAP:
      return NeedsNewer(name, "maps", "2.2");
    case arrow::Type::FIXED_SIZE_LIST:
      if (!field.children.empty()) {
        return NeedsNewer(name, "fixed-size lists of structs", "2.2");
      }
      return Status::OK();
    default:
      break;
  }
  if (field.is_packed_struct()) return CheckPacked(name, field);
  if (field.is_blob() && field.type->id() != arrow::Type::LARGE_BINARY) {
    return NotSupported("column '", name, "': blob columns must be large_binary, not ",
                        field.type->ToString());
  }
  return Status::OK();
}

// What the families of columns have in common: rows of the field itself, and pages.
class ColumnWriter20 : public ColumnWriter {
 public:
  ColumnWriter20(ColumnPath path, const FileWriterOptions& options, PageSink* sink)
      : path_(std::move(path)),
        sink_(sink),
        page_bytes_(PageBytes(options)),
        max_page_bytes_(std::max<int64_t>(options.max_page_bytes, 1)) {
    lance::encodings::ColumnEncoding encoding;
    if (path_.leaf().is_blob()) {
      encoding.mutable_blob()->mutable_inner()->mutable_values();
    } else {
      encoding.mutable_values();
    }
    metadata_.mutable_encoding()->mutable_direct()->set_encoding(
        PackAny("lance.encodings.ColumnEncoding", encoding.SerializeAsString()));
  }

  Status Accept(const arrow::ArrayData&) const override { return Status::OK(); }

  Status Flush() override {
    Status status = FlushPages();
    return status.ok() ? status : WithContext(status, "column '" + path_.name() + "'");
  }

  const lance::file::v2::ColumnMetadata& metadata() const override { return metadata_; }

 protected:
  virtual Status FlushPages() = 0;

  // Rows of this field that `data`, the top-level array, holds; `keep_alive` owns them.
  std::vector<Segment> RowsOf(const std::shared_ptr<arrow::ArrayData>& data,
                              std::shared_ptr<arrow::ArrayData>* keep_alive) const {
    *keep_alive = path_.Prune(data);
    return encoding::BuildLevels(std::span(keep_alive, 1), path_.nodes()).values;
  }

  Status WritePage(const EncodedArray20& page, int64_t rows) {
    auto* out = metadata_.add_pages();
    for (const auto& buffer : page.buffers) {
      GLAIVE_ASSIGN_OR_RETURN(BufferLocation at, sink_->Write(buffer));
      out->add_buffer_offsets(static_cast<uint64_t>(at.offset));
      out->add_buffer_sizes(static_cast<uint64_t>(at.size));
    }
    out->set_length(static_cast<uint64_t>(rows));
    out->mutable_encoding()->mutable_direct()->set_encoding(
        PackAny("lance.encodings.ArrayEncoding", page.encoding.SerializeAsString()));
    return Status::OK();
  }

  Status StructNulls(int64_t count) const {
    return InvalidInput(
        "The struct field `", path_.name(), "` contains ", count,
        " null value(s), but Lance file version 2.0 does not encode struct "
        "validity; use file version 2.1 or later");
  }

  // Rows per page so that no page is larger than the limit.
  int64_t RowsPerPage(int64_t rows, int64_t bytes) const {
    const int64_t pages =
        std::max<int64_t>(1, (bytes + max_page_bytes_ - 1) / max_page_bytes_);
    return std::max<int64_t>(1, (rows + pages - 1) / pages);
  }

  const ColumnPath path_;
  PageSink* const sink_;
  const int64_t page_bytes_;
  const int64_t max_page_bytes_;
  lance::file::v2::ColumnMetadata metadata_;
  bool touched_ = false;  // rows of the file were added, even if none of this field
};

class StructColumn20 : public ColumnWriter20 {
 public:
  using ColumnWriter20::ColumnWriter20;

  Status Accept(const arrow::ArrayData& data) const override {
    std::shared_ptr<arrow::ArrayData> owner;
    int64_t nulls = 0;
    for (const Segment& s : RowsOf(data.Copy(), &owner)) nulls += CountNulls(s);
    return nulls == 0 ? Status::OK() : StructNulls(nulls);
  }

  Status Add(const std::shared_ptr<arrow::ArrayData>& data, int64_t) override {
    std::shared_ptr<arrow::ArrayData> owner;
    for (const Segment& s : RowsOf(data, &owner)) rows_ += s.length;
    touched_ = true;
    return Status::OK();
  }

 protected:
  Status FlushPages() override {
    if (!touched_) return Status::OK();
    touched_ = false;
    return WritePage(encoding::EncodeStructs20(), std::exchange(rows_, 0));
  }

 private:
  int64_t rows_ = 0;
};

class ListColumn20 : public ColumnWriter20 {
 public:
  using ColumnWriter20::ColumnWriter20;

  Status Add(const std::shared_ptr<arrow::ArrayData>& data, int64_t) override {
    std::shared_ptr<arrow::ArrayData> owner;
    for (const Segment& s : RowsOf(data, &owner)) {
      if (s.data->type->id() == arrow::Type::LARGE_LIST) {
        AddLengths<int64_t>(s);
      } else {
        AddLengths<int32_t>(s);
      }
    }
    touched_ = true;
    return static_cast<int64_t>(lengths_.size()) * 8 > page_bytes_ ? Flush()
                                                                   : Status::OK();
  }

 protected:
  Status FlushPages() override {
    if (!touched_) return Status::OK();
    touched_ = false;
    const int64_t rows = static_cast<int64_t>(lengths_.size());
    const int64_t per_page = RowsPerPage(rows, 8 * rows);
    std::span<const int64_t> rest(lengths_);
    do {
      const auto page = rest.first(std::min(rest.size(), static_cast<size_t>(per_page)));
      GLAIVE_RETURN_NOT_OK(
          WritePage(encoding::EncodeLists20(page), static_cast<int64_t>(page.size())));
      rest = rest.subspan(page.size());
    } while (!rest.empty());
    lengths_.clear();
    return Status::OK();
  }

 private:
  template <typename Offset>
  void AddLengths(const Segment& s) {
    const Offset* offsets = s.data->GetValues<Offset>(1, s.start);
    const bool nulls = CountNulls(s) > 0;
    for (int64_t i = 0; i < s.length; ++i) {
      const bool null = nulls && IsNull(s, i);
      lengths_.push_back(null ? -1 : static_cast<int64_t>(offsets[i + 1] - offsets[i]));
    }
  }

  std::vector<int64_t> lengths_;  // -1: null
};

// Values, packed structs and blobs.
class LeafColumn20 : public ColumnWriter20 {
 public:
  LeafColumn20(ColumnPath path, const FileWriterOptions& options, PageSink* sink)
      : ColumnWriter20(std::move(path), options, sink),
        options_(encoding::ParseEncodeOptions(path_.leaf().metadata, /*v2_2=*/false)) {}

  Status Accept(const arrow::ArrayData& data) const override {
    if (!path_.leaf().is_packed_struct()) return Status::OK();
    std::shared_ptr<arrow::ArrayData> owner;
    int64_t nulls = 0;
    const std::vector<Segment> rows = RowsOf(data.Copy(), &owner);
    for (const Segment& s : rows) nulls += CountNulls(s);
    if (nulls > 0) return StructNulls(nulls);
    const Status status = encoding::CheckPackable(rows);
    return status.ok() ? status : WithContext(status, "column '" + path_.name() + "'");
  }

  Status Add(const std::shared_ptr<arrow::ArrayData>& data,
             int64_t batch_bytes) override {
    touched_ = true;
    std::shared_ptr<arrow::ArrayData> owner;
    for (const Segment& s : RowsOf(data, &owner)) {
      auto rows = s.data->Slice(s.start - s.data->offset, s.length);
      const int64_t bytes = SliceBytes(*rows);
      if (rows->dictionary != nullptr && !buffer_.empty() &&
          buffer_.back().dictionary != rows->dictionary &&
          !arrow::MakeArray(buffer_.back().dictionary)
               ->Equals(arrow::MakeArray(rows->dictionary))) {
        GLAIVE_RETURN_NOT_OK(Flush());
        touched_ = true;
      }
      const bool full = buffer_.num_bytes() + bytes > page_bytes_;
      GLAIVE_RETURN_NOT_OK(buffer_.Add(std::move(rows), bytes, batch_bytes, full));
    }
    return buffer_.num_bytes() > page_bytes_ ? Flush() : Status::OK();
  }

 protected:
  Status FlushPages() override {
    if (!touched_) return Status::OK();
    touched_ = false;
    const int64_t rows = buffer_.num_rows();
    const int64_t per_page = RowsPerPage(rows, buffer_.num_bytes());
    const auto arrays = buffer_.Take();
    if (rows == 0) {  // items of lists that are all empty
      if (metadata_.pages_size() > 0) return Status::OK();
      return WriteRows({}, 0);
    }
    std::vector<std::shared_ptr<arrow::ArrayData>> page;
    int64_t page_rows = 0;
    for (const auto& array : arrays) {
      for (int64_t at = 0; at < array->length;) {
        const int64_t take = std::min(array->length - at, per_page - page_rows);
        page.push_back(array->Slice(at, take));
        page_rows += take;
        at += take;
        if (page_rows == per_page) {
          GLAIVE_RETURN_NOT_OK(WriteRows(page, page_rows));
          page.clear();
          page_rows = 0;
        }
      }
    }
    return page_rows > 0 ? WriteRows(page, page_rows) : Status::OK();
  }

 private:
  Status WriteRows(const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays,
                   int64_t rows) {
    EncodedArray20 page;
    if (path_.leaf().is_blob()) {
      GLAIVE_ASSIGN_OR_RETURN(page, EncodeBlobs(arrays));
    } else if (path_.leaf().is_packed_struct() && rows > 0) {
      GLAIVE_ASSIGN_OR_RETURN(page, encoding::EncodePacked20(arrays));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(page, encoding::EncodeArray20(arrays, options_));
    }
    return WritePage(page, rows);
  }

  // Payloads go to the file at once; the page holds (position, size), (1, 0) for null.
  Result<EncodedArray20> EncodeBlobs(
      const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays) {
    std::vector<uint64_t> out;
    for (const auto& array : arrays) {
      const arrow::LargeBinaryArray values(array);
      for (int64_t i = 0; i < values.length(); ++i) {
        if (values.IsNull(i)) {
          out.insert(out.end(), {1, 0});
          continue;
        }
        const std::string_view value = values.GetView(i);
        if (value.empty()) {
          out.insert(out.end(), {0, 0});
          continue;
        }
        GLAIVE_ASSIGN_OR_RETURN(
            const BufferLocation at,
            sink_->Write(
                std::span(reinterpret_cast<const uint8_t*>(value.data()), value.size())));
        out.insert(out.end(),
                   {static_cast<uint64_t>(at.offset), static_cast<uint64_t>(at.size)});
      }
    }
    return encoding::EncodeBlobs20(out);
  }

  const encoding::EncodeOptions options_;
  ColumnBuffer buffer_;
};

bool IsList(const Field& field) {
  return field.type->id() == arrow::Type::LIST ||
         field.type->id() == arrow::Type::LARGE_LIST;
}

}  // namespace

Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeColumnWriters20(
    const Field& field, const FileWriterOptions& options, PageSink* sink) {
  std::vector<std::unique_ptr<ColumnWriter>> out;
  for (ColumnPath& path : ColumnPath::Collect(field, /*every_field=*/true)) {
    GLAIVE_RETURN_NOT_OK(CheckStorable(path));
    const Field& own = path.leaf();
    if (own.type->id() == arrow::Type::STRUCT && !own.is_packed_struct()) {
      out.push_back(std::make_unique<StructColumn20>(std::move(path), options, sink));
    } else if (IsList(own)) {
      out.push_back(std::make_unique<ListColumn20>(std::move(path), options, sink));
    } else {
      out.push_back(std::make_unique<LeafColumn20>(std::move(path), options, sink));
    }
  }
  return out;
}

}  // namespace glaive::file
