// Columns of versions 2.1 and 2.2: one per leaf, levels for everything above it.
#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "encoding/encode_options.h"
#include "encoding/packed_encode.h"
#include "encoding/page_encode.h"
#include "file/blob_pages.h"
#include "file/column_buffer.h"
#include "file/column_path.h"
#include "file/column_writer.h"
#include "format/encodings.pb.h"

namespace glaive::file {
namespace {

using encoding::PathNode;

constexpr char kStructuralKey[] = "lance-encoding:structural-encoding";

Status NeedsNewer(const std::string& name, std::string_view what) {
  return NotSupported("column '", name, "': ", what,
                      " cannot be stored in this file version; use version 2.2");
}

Status CheckPacked(const std::string& name, const Field& leaf, bool v2_2) {
  if (leaf.children.empty()) {
    return NotSupported("column '", name, "': a packed struct needs members");
  }
  for (const Field& member : leaf.children) {
    const arrow::Type::type id = member.type->id();
    const int64_t bits = encoding::FixedBits(*member.type);
    const bool variable =
        id == arrow::Type::FIXED_SIZE_LIST || arrow::is_base_binary_like(id);
    if (variable && !v2_2) {
      return NeedsNewer(name, "packed structs with strings or vectors");
    }
    if (!variable && (bits == 0 || bits % 8 != 0)) {
      return NotSupported("column '", name, "': member '", member.name, "' of type ",
                          member.type->ToString(), " cannot be part of a packed struct");
    }
  }
  return Status::OK();
}

// What the version, or the format itself, cannot store.
Status CheckStorable(const ColumnPath& path, bool v2_2) {
  const std::string name = path.name();
  bool in_list = false;
  for (size_t i = 0; i + 1 < path.fields().size(); ++i) {
    const Field& field = *path.fields()[i];
    if (field.type->id() == arrow::Type::MAP && !v2_2) return NeedsNewer(name, "maps");
    if (path.nodes()[i] == PathNode::kFixedStruct) {
      if (!v2_2) return NeedsNewer(name, "fixed-size lists of structs");
      if (in_list) {
        return NotSupported("column '", name,
                            "': lists of fixed-size lists of structs cannot be stored");
      }
    }
    in_list |= path.nodes()[i] == PathNode::kList;
  }
  const Field& leaf = path.leaf();
  if (leaf.is_packed_struct()) return CheckPacked(name, leaf, v2_2);
  if (leaf.is_blob()) {
    if (leaf.type->id() != arrow::Type::LARGE_BINARY) {
      return NotSupported("column '", name, "': blob columns must be large_binary, not ",
                          leaf.type->ToString());
    }
    if (in_list) {
      return NotSupported("column '", name, "': blobs inside lists cannot be stored");
    }
  }
  if (leaf.type->id() == arrow::Type::STRUCT && path.fields().size() > 1) {
    return NotSupported("column '", name,
                        "': structs without members inside of other columns cannot be "
                        "stored");
  }
  return Status::OK();
}

// Readers join the pages of structs that hold or lie in lists; some of them go wrong when
// the pages of one column disagree on which layers can be null or empty. Such columns
// have levels anyway, so that allowing for everything costs next to nothing.
std::vector<uint8_t> UniformLayers(const ColumnPath& path) {
  const auto& nodes = path.nodes();
  const bool mixed = std::count(nodes.begin(), nodes.end(), PathNode::kList) > 0 &&
                     std::count(nodes.begin(), nodes.end(), PathNode::kStruct) > 0;
  std::vector<uint8_t> out;
  for (size_t i = 0; mixed && i < nodes.size(); ++i) {
    uint8_t flags = path.fields()[i]->nullable ? encoding::kAlwaysNullable : 0;
    if (nodes[i] == PathNode::kList) flags |= encoding::kAlwaysEmptyable;
    out.push_back(flags);
  }
  return out;
}

class StructuralColumnWriter : public ColumnWriter {
 public:
  StructuralColumnWriter(ColumnPath path, const FileWriterOptions& options,
                         PageSink* sink)
      : path_(std::move(path)), sink_(sink), page_bytes_(PageBytes(options)) {
    const bool v2_2 = options.version >= FileVersion::k2_2;
    const Field& leaf = path_.leaf();
    column_.path = path_.nodes();
    column_.options = encoding::ParseEncodeOptions(leaf.metadata, v2_2);
    // The layout may be asked for anywhere above the leaf; other hints are the leaf's
    // own.
    for (const Field* field : path_.fields()) {
      auto it = field->metadata.find(kStructuralKey);
      if (it == field->metadata.end()) continue;
      column_.options.structural =
          encoding::ParseEncodeOptions(field->metadata, v2_2).structural;
    }
    column_.always = UniformLayers(path_);
    column_.packed = leaf.is_packed_struct();
    if (column_.packed) {
      for (const Field& member : leaf.children) {
        column_.member_options.push_back(
            encoding::ParseEncodeOptions(member.metadata, v2_2));
      }
    }
    for (size_t i = 0; i + 1 < path_.fields().size(); ++i) {
      if (path_.nodes()[i] != PathNode::kFixedStruct) continue;
      slots_per_row_ *=
          static_cast<const arrow::FixedSizeListType&>(*path_.fields()[i]->type)
              .list_size();
    }
    lance::encodings::ColumnEncoding plain;
    plain.mutable_values();
    metadata_.mutable_encoding()->mutable_direct()->set_encoding(
        PackAny("lance.encodings.ColumnEncoding", plain.SerializeAsString()));
  }

  Status Accept(const arrow::ArrayData& data) const override {
    const Field& leaf = path_.leaf();
    if (leaf.type->id() == arrow::Type::STRUCT && leaf.children.empty() &&
        data.GetNullCount() > 0) {
      return NotSupported("column '", path_.name(),
                          "': nulls in a struct without members cannot be stored");
    }
    if (leaf.is_packed_struct()) {
      const auto pruned = path_.Prune(data.Copy());
      const auto rows =
          encoding::BuildLevels(std::span(&pruned, 1), path_.nodes()).values;
      const Status status = encoding::CheckPackable(rows);
      if (!status.ok()) return WithContext(status, "column '" + path_.name() + "'");
    }
    return Status::OK();
  }

  Status Add(const std::shared_ptr<arrow::ArrayData>& data,
             int64_t batch_bytes) override {
    if (data->length == 0) return Status::OK();
    auto pruned = path_.Prune(data);
    const int64_t bytes = SliceBytes(*pruned);
    if (auto dictionary = DictionaryOf(*pruned);
        dictionary != nullptr && !buffer_.empty()) {
      // A page has one dictionary.
      const auto buffered = DictionaryOf(buffer_.back());
      if (buffered != dictionary &&
          !arrow::MakeArray(buffered)->Equals(arrow::MakeArray(dictionary))) {
        GLAIVE_RETURN_NOT_OK(Flush());
      }
    }
    const bool full = buffer_.num_bytes() + bytes > page_bytes_;
    GLAIVE_RETURN_NOT_OK(buffer_.Add(std::move(pruned), bytes, batch_bytes, full));
    return full ? Flush() : Status::OK();
  }

  Status Flush() override {
    if (buffer_.empty()) return Status::OK();
    Status status = FlushArrays(buffer_.Take());
    return status.ok() ? status : WithContext(status, "column '" + path_.name() + "'");
  }

  // The bytes of blobs go to the file before their pages do.
  bool encodes_apart() const override { return !holds_blobs(); }

  Result<std::vector<encoding::EncodedPage>> Encode(
      const std::shared_ptr<arrow::ArrayData>& data) const override {
    if (data->length == 0) return std::vector<encoding::EncodedPage>();
    auto pages = encoding::EncodePages(column_, {path_.Prune(data)});
    if (pages.ok()) return pages;
    return WithContext(pages.status(), "column '" + path_.name() + "'");
  }

  Status AddPages(const std::vector<encoding::EncodedPage>& pages) override {
    GLAIVE_RETURN_NOT_OK(Flush());
    for (const encoding::EncodedPage& page : pages) GLAIVE_RETURN_NOT_OK(WritePage(page));
    return Status::OK();
  }

  const lance::file::v2::ColumnMetadata& metadata() const override { return metadata_; }

 private:
  bool holds_blobs() const { return path_.leaf().is_blob() && !column_.packed; }

  static std::shared_ptr<arrow::ArrayData> DictionaryOf(const arrow::ArrayData& data) {
    const arrow::ArrayData* at = &data;
    while (at->dictionary == nullptr && at->child_data.size() == 1) {
      at = at->child_data[0].get();
    }
    return at->dictionary;
  }

  Status FlushArrays(const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays) {
    std::vector<encoding::EncodedPage> pages;
    if (holds_blobs()) {
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

  const ColumnPath path_;
  PageSink* const sink_;
  const int64_t page_bytes_;
  encoding::PageColumn column_;
  int64_t slots_per_row_ = 1;  // Page.length counts slots of fixed-size lists of structs
  ColumnBuffer buffer_;
  lance::file::v2::ColumnMetadata metadata_;
  int64_t next_row_ = 0;
};

}  // namespace

Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeStructuralColumnWriters(
    const Field& field, const FileWriterOptions& options, PageSink* sink) {
  std::vector<std::unique_ptr<ColumnWriter>> out;
  for (ColumnPath& path : ColumnPath::Collect(field, /*every_field=*/false)) {
    GLAIVE_RETURN_NOT_OK(CheckStorable(path, options.version >= FileVersion::k2_2));
    out.push_back(
        std::make_unique<StructuralColumnWriter>(std::move(path), options, sink));
  }
  return out;
}

}  // namespace glaive::file
