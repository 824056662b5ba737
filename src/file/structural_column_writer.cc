// Columns of versions 2.1 and 2.2: one per leaf, levels for everything above it.
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "encoding/encode_options.h"
#include "encoding/page_encode.h"
#include "file/blob_pages.h"
#include "file/column_buffer.h"
#include "file/column_writer.h"
#include "format/encodings.pb.h"

namespace glaive::file {
namespace {

using encoding::PathNode;

constexpr int64_t kDefaultPageBytes = int64_t{8} << 20;

// The way from a top-level field to the field that owns the column.
struct Path {
  std::vector<const Field*> fields;  // outer-most first
  std::vector<int> child;  // child[i]: position of fields[i + 1] below fields[i]
};

void CollectPaths(const Field& field, Path* here, std::vector<Path>* out) {
  here->fields.push_back(&field);
  if (field.owns_column()) {
    out->push_back(*here);
  } else {
    for (size_t i = 0; i < field.children.size(); ++i) {
      here->child.push_back(static_cast<int>(i));
      CollectPaths(field.children[i], here, out);
      here->child.pop_back();
    }
  }
  here->fields.pop_back();
}

// Type of fields[depth] with only the members on the path.
std::shared_ptr<arrow::DataType> PrunedType(const Path& path, size_t depth) {
  const Field& field = *path.fields[depth];
  if (depth + 1 == path.fields.size()) return field.type;
  auto below = path.fields[depth + 1]->ToArrow()->WithType(PrunedType(path, depth + 1));
  switch (field.type->id()) {
    case arrow::Type::STRUCT:
      return arrow::struct_({std::move(below)});
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(std::move(below));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          std::move(below),
          static_cast<const arrow::FixedSizeListType&>(*field.type).list_size());
    default:
      return arrow::list(std::move(below));
  }
}

std::string PathName(const Path& path) {
  std::vector<std::string> names;
  for (const Field* field : path.fields) names.push_back(field->name);
  return FormatFieldPath(names);
}

class StructuralColumnWriter : public ColumnWriter {
 public:
  static Result<std::unique_ptr<ColumnWriter>> Make(const Path& path,
                                                    const FileWriterOptions& options,
                                                    PageSink* sink) {
    auto out = std::unique_ptr<StructuralColumnWriter>(new StructuralColumnWriter);
    out->sink_ = sink;
    out->name_ = PathName(path);
    out->child_ = path.child;
    out->page_bytes_ = options.page_bytes > 0 ? options.page_bytes : kDefaultPageBytes;
    const bool v2_2 = options.version >= FileVersion::k2_2;
    for (size_t i = 0; i < path.fields.size(); ++i) {
      out->types_.push_back(PrunedType(path, i));
    }
    GLAIVE_RETURN_NOT_OK(out->SetPath(path, v2_2));
    const Field& leaf = *path.fields.back();
    out->column_.options = encoding::ParseEncodeOptions(leaf.metadata, v2_2);
    out->blob_ = leaf.is_blob();
    out->column_.packed = leaf.is_packed_struct();
    if (out->column_.packed) {
      for (const Field& member : leaf.children) {
        out->column_.member_options.push_back(
            encoding::ParseEncodeOptions(member.metadata, v2_2));
      }
    }
    lance::encodings::ColumnEncoding plain;
    plain.mutable_values();
    out->metadata_.mutable_encoding()->mutable_direct()->set_encoding(
        PackAny("lance.encodings.ColumnEncoding", plain.SerializeAsString()));
    return std::unique_ptr<ColumnWriter>(std::move(out));
  }

  Status Add(const std::shared_ptr<arrow::ArrayData>& data,
             int64_t batch_bytes) override {
    if (data->length == 0) return Status::OK();
    auto pruned = Prune(data, 0);
    const int64_t bytes = SliceBytes(*pruned);
    if (auto dictionary = DictionaryOf(*pruned); dictionary != nullptr) {
      if (!buffer_.empty()) {
        // A page has one dictionary.
        auto buffered = DictionaryOf(buffer_.back());
        if (buffered != dictionary &&
            !arrow::MakeArray(buffered)->Equals(arrow::MakeArray(dictionary))) {
          GLAIVE_RETURN_NOT_OK(Flush());
        }
      }
    }
    const bool full = buffer_.num_bytes() + bytes > page_bytes_;
    GLAIVE_RETURN_NOT_OK(buffer_.Add(std::move(pruned), bytes, batch_bytes, full));
    return full ? Flush() : Status::OK();
  }

  Status Flush() override {
    if (buffer_.empty()) return Status::OK();
    const auto arrays = buffer_.Take();
    Status status = FlushArrays(arrays);
    return status.ok() ? status : WithContext(status, "column '" + name_ + "'");
  }

  const lance::file::v2::ColumnMetadata& metadata() const override { return metadata_; }

 private:
  StructuralColumnWriter() = default;

  Status SetPath(const Path& path, bool v2_2) {
    bool in_list = false;
    for (size_t i = 0; i + 1 < path.fields.size(); ++i) {
      const Field& field = *path.fields[i];
      switch (field.type->id()) {
        case arrow::Type::STRUCT:
          column_.path.push_back(PathNode::kStruct);
          break;
        case arrow::Type::FIXED_SIZE_LIST:
          if (!v2_2) return NeedsNewer("fixed-size lists of structs");
          if (in_list) {
            return NotSupported(
                "column '", name_,
                "': lists of fixed-size lists of structs cannot be stored");
          }
          column_.path.push_back(PathNode::kFixedStruct);
          slots_per_row_ *=
              static_cast<const arrow::FixedSizeListType&>(*field.type).list_size();
          break;
        case arrow::Type::MAP:
          if (!v2_2) return NeedsNewer("maps");
          [[fallthrough]];
        default:
          column_.path.push_back(PathNode::kList);
          in_list = true;
      }
    }
    column_.path.push_back(PathNode::kLeaf);
    const Field& leaf = *path.fields.back();
    if (leaf.type->id() == arrow::Type::STRUCT && leaf.children.empty() &&
        path.fields.size() > 1) {
      return NotSupported("column '", name_,
                          "': structs without members inside of other "
                          "columns cannot be stored");
    }
    if (leaf.is_packed_struct()) return CheckPacked(leaf, v2_2);
    if (leaf.is_blob()) {
      if (leaf.type->id() != arrow::Type::LARGE_BINARY) {
        return NotSupported("column '", name_,
                            "': blob columns must be large_binary, not ",
                            leaf.type->ToString());
      }
      if (in_list) {
        return NotSupported("column '", name_, "': blobs inside lists cannot be stored");
      }
    }
    return Status::OK();
  }

  Status NeedsNewer(std::string_view what) const {
    return NotSupported("column '", name_, "': ", what,
                        " cannot be stored in this file version; use version 2.2");
  }

  Status CheckPacked(const Field& leaf, bool v2_2) const {
    if (leaf.is_blob()) {
      return NotSupported("column '", name_,
                          "': blob descriptors (lance.blob.v2) cannot be "
                          "written yet");
    }
    if (leaf.children.empty()) {
      return NotSupported("column '", name_, "': a packed struct needs members");
    }
    for (const Field& member : leaf.children) {
      const arrow::Type::type id = member.type->id();
      const int64_t bits = encoding::FixedBits(*member.type);
      const bool variable =
          id == arrow::Type::FIXED_SIZE_LIST || arrow::is_base_binary_like(id);
      if (variable && !v2_2) return NeedsNewer("packed structs with strings or vectors");
      if (!variable && (bits == 0 || bits % 8 != 0)) {
        return NotSupported("column '", name_, "': member '", member.name, "' of type ",
                            member.type->ToString(),
                            " cannot be part of a packed struct");
      }
    }
    return Status::OK();
  }

  // The part of the array that this column stores; shares the buffers.
  std::shared_ptr<arrow::ArrayData> Prune(const std::shared_ptr<arrow::ArrayData>& data,
                                          size_t depth) const {
    if (depth == child_.size()) return data;
    std::shared_ptr<arrow::ArrayData> below = data->child_data[0];
    if (data->type->id() == arrow::Type::STRUCT) {
      below = data->child_data[static_cast<size_t>(child_[depth])];
    }
    return arrow::ArrayData::Make(types_[depth], data->length, data->buffers,
                                  {Prune(below, depth + 1)}, data->null_count.load(),
                                  data->offset);
  }

  static std::shared_ptr<arrow::ArrayData> DictionaryOf(const arrow::ArrayData& data) {
    const arrow::ArrayData* at = &data;
    while (at->dictionary == nullptr && at->child_data.size() == 1) {
      at = at->child_data[0].get();
    }
    return at->dictionary;
  }

  Status FlushArrays(const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays) {
    std::vector<encoding::EncodedPage> pages;
    if (blob_) {
      GLAIVE_ASSIGN_OR_RETURN(pages, WriteBlobPages(column_, arrays, sink_));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(pages, encoding::EncodePages(column_, arrays));
    }
    for (const encoding::EncodedPage& page : pages) GLAIVE_RETURN_NOT_OK(WritePage(page));
    return Status::OK();
  }

  Status WritePage(const encoding::EncodedPage& page) {
    auto* out = metadata_.add_pages();
    for (const auto& buffer : page.buffers) {
      GLAIVE_ASSIGN_OR_RETURN(BufferLocation at, sink_->Write(buffer));
      out->add_buffer_offsets(static_cast<uint64_t>(at.offset));
      out->add_buffer_sizes(static_cast<uint64_t>(at.size));
    }
    out->set_length(static_cast<uint64_t>(page.num_rows));
    out->set_priority(static_cast<uint64_t>(next_row_));
    out->mutable_encoding()->mutable_direct()->set_encoding(
        PackAny("lance.encodings21.PageLayout", page.layout.SerializeAsString()));
    next_row_ += page.num_rows / slots_per_row_;
    return Status::OK();
  }

  PageSink* sink_ = nullptr;
  std::string name_;
  std::vector<int> child_;
  std::vector<std::shared_ptr<arrow::DataType>> types_;
  encoding::PageColumn column_;
  bool blob_ = false;
  int64_t page_bytes_ = 0;
  int64_t slots_per_row_ = 1;  // Page.length counts slots of fixed-size lists of structs
  ColumnBuffer buffer_;
  lance::file::v2::ColumnMetadata metadata_;
  int64_t next_row_ = 0;
};

}  // namespace

Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeStructuralColumnWriters(
    const Field& field, const FileWriterOptions& options, PageSink* sink) {
  std::vector<Path> paths;
  Path here;
  CollectPaths(field, &here, &paths);
  std::vector<std::unique_ptr<ColumnWriter>> out;
  for (const Path& path : paths) {
    GLAIVE_ASSIGN_OR_RETURN(auto writer,
                            StructuralColumnWriter::Make(path, options, sink));
    out.push_back(std::move(writer));
  }
  return out;
}

}  // namespace glaive::file
