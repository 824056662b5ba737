#include "file/blob_load.h"

#include <map>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>

#include "file/assemble.h"
#include "file/blob_v2_writer.h"

namespace glaive::file {
namespace {

// The bytes of blobs of one file, in the order in which they were asked for.
struct Fetch {
  std::shared_ptr<io::RandomAccessObject> file;  // null: the data file
  std::vector<io::ByteRange> ranges;
  std::vector<std::shared_ptr<arrow::Buffer>> bytes;
  size_t next = 0;
};

Status AddRange(const io::RandomAccessObject& object, const Field& field,
                uint64_t position, uint64_t size, std::vector<io::ByteRange>* ranges) {
  const auto limit = static_cast<uint64_t>(object.size_bytes());
  if (position > limit || size > limit - position) {
    return Corruption("file '", object.path(), "', column '", field.name,
                      "': a blob lies at ", position, " with ", size,
                      " bytes, beyond the end of the file");
  }
  ranges->push_back({static_cast<int64_t>(position), static_cast<int64_t>(size)});
  return Status::OK();
}

Result<std::shared_ptr<arrow::ArrayData>> LoadDescriptors(
    io::RandomAccessObject& object, const Field& field,
    const std::shared_ptr<arrow::ArrayData>& data) {
  const arrow::StructArray descriptors(data);
  const auto position_array = descriptors.field(0);
  const auto size_array = descriptors.field(1);
  const auto& positions = static_cast<const arrow::UInt64Array&>(*position_array);
  const auto& sizes = static_cast<const arrow::UInt64Array&>(*size_array);
  // Position 1 without bytes is how version 2.0 marks a missing value.
  auto missing = [&](int64_t i) {
    return descriptors.IsNull(i) || (sizes.Value(i) == 0 && positions.Value(i) != 0);
  };
  std::vector<io::ByteRange> wanted;
  for (int64_t i = 0; i < descriptors.length(); ++i) {
    if (missing(i) || sizes.Value(i) == 0) continue;
    GLAIVE_RETURN_NOT_OK(
        AddRange(object, field, positions.Value(i), sizes.Value(i), &wanted));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto blobs, object.ReadMany(wanted));
  arrow::LargeBinaryBuilder builder;
  size_t next = 0;
  for (int64_t i = 0; i < descriptors.length(); ++i) {
    if (missing(i)) {
      GLAIVE_RETURN_NOT_OK(builder.AppendNull());
    } else if (sizes.Value(i) == 0) {
      GLAIVE_RETURN_NOT_OK(builder.AppendEmptyValue());
    } else {
      const auto& bytes = *blobs[next++];
      GLAIVE_RETURN_NOT_OK(builder.Append(bytes.data(), bytes.size()));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto array, builder.Finish());
  return array->data();
}

// Descriptors of the second kind.
class Descriptors {
 public:
  explicit Descriptors(const arrow::ArrayData& data)
      : rows_(data.Copy()),
        kinds_(Member<arrow::UInt8Array>("kind")),
        positions_(Member<arrow::UInt64Array>("position")),
        sizes_(Member<arrow::UInt64Array>("size")),
        ids_(Member<arrow::UInt32Array>("blob_id")),
        uris_(Member<arrow::StringArray>("blob_uri")) {}

  bool complete() const { return kinds_ && positions_ && sizes_ && ids_; }
  // Whether the bytes lie outside of the table.
  bool outside(int64_t i) const {
    return kind(i) >= static_cast<uint8_t>(BlobKind::kExternal);
  }
  const arrow::StringArray* uris() const { return uris_.get(); }
  int64_t length() const { return rows_.length(); }
  bool IsNull(int64_t i) const { return rows_.IsNull(i); }
  uint8_t kind(int64_t i) const { return kinds_->Value(i); }
  uint64_t position(int64_t i) const { return positions_->Value(i); }
  uint64_t size(int64_t i) const { return sizes_->Value(i); }
  uint32_t id(int64_t i) const { return ids_->Value(i); }

 private:
  template <typename Array>
  std::shared_ptr<Array> Member(const char* name) const {
    return std::dynamic_pointer_cast<Array>(rows_.GetFieldByName(name));
  }

  const arrow::StructArray rows_;
  const std::shared_ptr<arrow::UInt8Array> kinds_;
  const std::shared_ptr<arrow::UInt64Array> positions_, sizes_;
  const std::shared_ptr<arrow::UInt32Array> ids_;
  const std::shared_ptr<arrow::StringArray> uris_;
};

// Blobs outside of the table stay where they are: what is loaded of them is their uri,
// and which part of it they are. NotSupported for those that are told in another way.
Status CheckOutside(const Field& field, const Descriptors& blobs, int64_t i) {
  const bool has_part = field.children.size() == 4;
  if (blobs.kind(i) != static_cast<uint8_t>(BlobKind::kExternal) ||
      blobs.uris() == nullptr || blobs.uris()->IsNull(i) || blobs.id(i) != 0 ||
      (!has_part && (blobs.position(i) != 0 || blobs.size(i) != 0))) {
    return NotSupported("column '", field.name,
                        "': writing rows anew whose blobs lie below other base paths");
  }
  return Status::OK();
}

// The members other than the bytes: null but for blobs outside of the table.
Result<std::shared_ptr<arrow::ArrayData>> OutsideMember(const Field& member,
                                                        const Descriptors& blobs) {
  if (member.name == "uri") {
    arrow::StringBuilder builder;
    for (int64_t i = 0; i < blobs.length(); ++i) {
      if (!blobs.IsNull(i) && blobs.outside(i)) {
        GLAIVE_RETURN_NOT_OK(builder.Append(blobs.uris()->GetView(i)));
      } else {
        GLAIVE_RETURN_NOT_OK(builder.AppendNull());
      }
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto array, builder.Finish());
    return array->data();
  }
  arrow::UInt64Builder builder;
  for (int64_t i = 0; i < blobs.length(); ++i) {
    if (!blobs.IsNull(i) && blobs.outside(i)) {
      GLAIVE_RETURN_NOT_OK(
          builder.Append(member.name == "position" ? blobs.position(i) : blobs.size(i)));
    } else {
      GLAIVE_RETURN_NOT_OK(builder.AppendNull());
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto array, builder.Finish());
  return array->data();
}

// struct<data, uri[, position, size]>, as it was given to the writer.
Result<std::shared_ptr<arrow::ArrayData>> LoadSecondKind(io::RandomAccessObject& object,
                                                         const FilesBeside& beside,
                                                         const Field& field,
                                                         const arrow::ArrayData& data) {
  const Descriptors blobs(data);
  if (!blobs.complete()) {
    return Corruption("file '", object.path(), "', column '", field.name,
                      "': the descriptors of blobs are not complete");
  }
  const auto stored_beside = [&](int64_t i) {
    return blobs.kind(i) != static_cast<uint8_t>(BlobKind::kInline);
  };
  std::map<uint32_t, Fetch> fetches;  // by number of the file; 0: the data file
  for (int64_t i = 0; i < blobs.length(); ++i) {
    if (blobs.IsNull(i)) continue;
    // Before the size is looked at: 0 stands for the whole of what the uri names.
    if (blobs.outside(i)) {
      GLAIVE_RETURN_NOT_OK(CheckOutside(field, blobs, i));
      continue;
    }
    if (blobs.size(i) == 0) continue;
    Fetch& fetch = fetches[stored_beside(i) ? blobs.id(i) : 0];
    if (stored_beside(i) && fetch.file == nullptr) {
      if (beside.store == nullptr || blobs.id(i) == 0) {
        return Corruption("file '", object.path(), "', column '", field.name,
                          "': a blob lies in file ", blobs.id(i), ", which is not known");
      }
      GLAIVE_ASSIGN_OR_RETURN(fetch.file, beside.store->Open(BlobDirectory(beside.path) +
                                                             BlobFileName(blobs.id(i))));
    }
    GLAIVE_RETURN_NOT_OK(AddRange(stored_beside(i) ? *fetch.file : object, field,
                                  blobs.position(i), blobs.size(i), &fetch.ranges));
  }
  for (auto& [id, fetch] : fetches) {
    io::RandomAccessObject& file = id == 0 ? object : *fetch.file;
    GLAIVE_ASSIGN_OR_RETURN(fetch.bytes, file.ReadMany(fetch.ranges));
  }
  arrow::LargeBinaryBuilder builder;
  for (int64_t i = 0; i < blobs.length(); ++i) {
    if (blobs.IsNull(i) || blobs.outside(i)) {
      GLAIVE_RETURN_NOT_OK(builder.AppendNull());
    } else if (blobs.size(i) == 0) {
      GLAIVE_RETURN_NOT_OK(builder.AppendEmptyValue());
    } else {
      Fetch& fetch = fetches[stored_beside(i) ? blobs.id(i) : 0];
      const auto& bytes = *fetch.bytes[fetch.next++];
      GLAIVE_RETURN_NOT_OK(builder.Append(bytes.data(), bytes.size()));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, builder.Finish());
  std::vector<std::shared_ptr<arrow::ArrayData>> members;
  for (const Field& member : field.children) {
    if (member.name == "data") {
      members.push_back(bytes->data());
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(auto outside, OutsideMember(member, blobs));
    members.push_back(std::move(outside));
  }
  // A row without a blob is null here as it was there.
  GLAIVE_ASSIGN_OR_RETURN(auto validity, arrow::AllocateEmptyBitmap(blobs.length()));
  for (int64_t i = 0; i < blobs.length(); ++i) {
    if (!blobs.IsNull(i)) arrow::bit_util::SetBit(validity->mutable_data(), i);
  }
  return arrow::ArrayData::Make(field.type, blobs.length(), {std::move(validity)},
                                std::move(members));
}

// One child row for each row of a struct; the items of a list are added up.
template <typename Offset>
void AddItems(const arrow::ArrayData& data, const std::vector<uint64_t>& items,
              std::vector<uint64_t>* rows) {
  const Offset* offsets = data.GetValues<Offset>(1);
  for (size_t i = 0; i < rows->size(); ++i) {
    for (Offset at = offsets[i]; at < offsets[i + 1]; ++at) {
      (*rows)[i] += items[static_cast<size_t>(at)];
    }
  }
}

}  // namespace

Result<std::shared_ptr<arrow::ArrayData>> LoadBlobColumn(
    io::RandomAccessObject& object, const FilesBeside& beside, const Field& field,
    const std::shared_ptr<arrow::ArrayData>& data) {
  if (IsBlobV1(field)) return LoadDescriptors(object, field, data);
  if (field.is_blob_v2()) return LoadSecondKind(object, beside, field, *data);
  if (field.owns_column()) return data;
  if (ReadType(field) == field.type && !HoldsBlobsV2(field)) return data;
  auto out = data->Copy();
  out->type = field.type;
  for (size_t i = 0; i < field.children.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(
        out->child_data[i],
        LoadBlobColumn(object, beside, field.children[i], data->child_data[i]));
  }
  return out;
}

void AddBlobBytes(const Field& field, const arrow::ArrayData& data,
                  std::vector<uint64_t>* rows) {
  if (field.is_blob()) {
    const arrow::StructArray descriptors(data.Copy());
    const auto sizes =
        std::dynamic_pointer_cast<arrow::UInt64Array>(descriptors.GetFieldByName("size"));
    const auto kinds =
        std::dynamic_pointer_cast<arrow::UInt8Array>(descriptors.GetFieldByName("kind"));
    for (size_t i = 0; sizes != nullptr && i < rows->size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      // Those outside of the table are not loaded.
      const bool outside = kinds != nullptr &&
                           kinds->Value(row) >= static_cast<uint8_t>(BlobKind::kExternal);
      if (!descriptors.IsNull(row) && !outside) (*rows)[i] += sizes->Value(row);
    }
    return;
  }
  if (field.owns_column()) return;
  for (size_t c = 0; c < field.children.size(); ++c) {
    const arrow::ArrayData& child = *data.child_data[c];
    if (data.type->id() == arrow::Type::STRUCT) {
      AddBlobBytes(field.children[c], *child.Slice(data.offset, data.length), rows);
    } else if (data.type->id() == arrow::Type::LIST ||
               data.type->id() == arrow::Type::LARGE_LIST) {
      std::vector<uint64_t> items(static_cast<size_t>(child.length));
      AddBlobBytes(field.children[c], child, &items);
      if (data.type->id() == arrow::Type::LIST) {
        AddItems<int32_t>(data, items, rows);
      } else {
        AddItems<int64_t>(data, items, rows);
      }
    }
  }
}

}  // namespace glaive::file
