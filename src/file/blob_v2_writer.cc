#include "file/blob_v2_writer.h"

#include <charconv>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>

#include "file/assemble.h"
#include "io/object_store.h"

namespace glaive::file {
namespace {

using ArrayDataPtr = std::shared_ptr<arrow::ArrayData>;

constexpr char kInlineLimitKey[] = "lance-encoding:blob-inline-size-threshold";
constexpr char kDedicatedLimitKey[] = "lance-encoding:blob-dedicated-size-threshold";
constexpr char kPackLimitKey[] = "lance-encoding:blob-pack-file-size-threshold";

using Kind = BlobKind;

Result<uint64_t> LimitOf(const Field& field, const char* key, uint64_t by_default) {
  const auto found = field.metadata.find(key);
  if (found == field.metadata.end()) return by_default;
  const std::string& text = found->second;
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidInput("column '", field.name, "': ", key, " must be a number, not '",
                        text, "'");
  }
  return value;
}

int MemberOf(const Field& field, std::string_view name) {
  for (size_t i = 0; i < field.children.size(); ++i) {
    if (field.children[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool IsValid(const arrow::ArrayData& data, int64_t row) {
  return data.buffers[0] == nullptr ||
         arrow::bit_util::GetBit(data.buffers[0]->data(), data.offset + row);
}

// Rows of `data` that are not null and that no null parent hides.
std::vector<bool> VisibleIn(const arrow::ArrayData& data,
                            const std::vector<bool>& parent) {
  std::vector<bool> visible(static_cast<size_t>(data.length));
  for (int64_t i = 0; i < data.length; ++i) {
    visible[static_cast<size_t>(i)] = parent[static_cast<size_t>(i)] && IsValid(data, i);
  }
  return visible;
}

// The same for the items of lists, which begin at the first list's.
template <typename Offset>
std::vector<bool> VisibleItems(const arrow::ArrayData& lists,
                               const std::vector<bool>& visible) {
  const Offset* offsets = lists.GetValues<Offset>(1);
  std::vector<bool> items(static_cast<size_t>(offsets[lists.length] - offsets[0]));
  for (int64_t i = 0; i < lists.length; ++i) {
    for (Offset at = offsets[i]; at < offsets[i + 1]; ++at) {
      items[static_cast<size_t>(at - offsets[0])] = visible[static_cast<size_t>(i)];
    }
  }
  return items;
}

struct Items {
  ArrayDataPtr values;
  std::shared_ptr<arrow::Buffer> offsets;  // from 0
  std::vector<bool> visible;
};

template <typename Offset>
Result<Items> ItemsOf(const arrow::ArrayData& lists, const std::vector<bool>& visible) {
  Items items;
  const Offset* offsets = lists.GetValues<Offset>(1);
  GLAIVE_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Buffer> moved,
      arrow::AllocateBuffer((lists.length + 1) * static_cast<int64_t>(sizeof(Offset))));
  auto* out = reinterpret_cast<Offset*>(moved->mutable_data());
  for (int64_t i = 0; i <= lists.length; ++i) out[i] = offsets[i] - offsets[0];
  items.offsets = std::move(moved);
  items.values = lists.child_data[0]->Slice(offsets[0], out[lists.length]);
  items.visible = VisibleItems<Offset>(lists, visible);
  return items;
}

Result<Items> ItemsOf(const Field& field, const arrow::ArrayData& lists,
                      const std::vector<bool>& visible) {
  if (lists.length == 0) {
    Items none;
    GLAIVE_ASSIGN_OR_RETURN(none.offsets, arrow::AllocateBuffer(8));
    std::fill_n(none.offsets->mutable_data(), 8, uint8_t{0});
    none.values = lists.child_data[0]->Slice(0, 0);
    return none;
  }
  if (field.type->id() == arrow::Type::LIST) return ItemsOf<int32_t>(lists, visible);
  return ItemsOf<int64_t>(lists, visible);
}

// A bitmap from bit 0; null when all rows are valid.
Result<std::shared_ptr<arrow::Buffer>> BitmapOf(const std::vector<bool>& valid,
                                                int64_t* null_count) {
  *null_count = 0;
  for (const bool bit : valid) *null_count += bit ? 0 : 1;
  if (*null_count == 0) return std::shared_ptr<arrow::Buffer>();
  GLAIVE_ASSIGN_OR_RETURN(auto bits,
                          arrow::AllocateEmptyBitmap(static_cast<int64_t>(valid.size())));
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i]) arrow::bit_util::SetBit(bits->mutable_data(), static_cast<int64_t>(i));
  }
  return bits;
}

Status CheckValues(const Field& field, const arrow::ArrayData& data,
                   const std::vector<bool>& parent, bool outside) {
  const std::vector<bool> visible = VisibleIn(data, parent);
  if (field.is_blob_v2()) {
    const auto child = [&](const char* name) {
      return data.child_data[static_cast<size_t>(MemberOf(field, name))]->Slice(
          data.offset, data.length);
    };
    const auto bytes = child("data");
    const auto uri = child("uri");
    for (int64_t i = 0; i < data.length; ++i) {
      if (!visible[static_cast<size_t>(i)]) continue;
      if (IsValid(*bytes, i) == IsValid(*uri, i)) {
        return InvalidInput("blob column '", field.name, "', row ", i,
                            " of the batch: exactly one of data and uri must be set");
      }
      if (IsValid(*uri, i) && !outside) {
        return NotSupported("blob column '", field.name, "', row ", i,
                            " of the batch: blobs outside of the table (uri)");
      }
    }
    return Status::OK();
  }
  if (!HoldsBlobsV2(field)) return Status::OK();
  if (field.type->id() == arrow::Type::STRUCT) {
    for (size_t i = 0; i < field.children.size(); ++i) {
      GLAIVE_RETURN_NOT_OK(CheckValues(
          field.children[i], *data.child_data[i]->Slice(data.offset, data.length),
          visible, outside));
    }
    return Status::OK();
  }
  GLAIVE_ASSIGN_OR_RETURN(const Items items, ItemsOf(field, data, visible));
  return CheckValues(field.children[0], *items.values, items.visible, outside);
}

std::vector<bool> AllRows(const arrow::ArrayData& data) {
  return std::vector<bool>(static_cast<size_t>(data.length), true);
}

}  // namespace

std::string BlobDirectory(std::string path) {
  constexpr std::string_view kSuffix = ".lance";
  if (path.ends_with(kSuffix)) path.resize(path.size() - kSuffix.size());
  return path + "/";
}

std::string BlobFileName(uint32_t id) {
  std::string name(32, '0');
  for (size_t bit = 0; bit < name.size(); ++bit) {
    if ((id >> bit) & 1) name[bit] = '1';
  }
  return name + ".blob";
}

bool HoldsBlobsV2(const Field& field) {
  if (field.is_blob_v2()) return true;
  for (const Field& child : field.children) {
    if (HoldsBlobsV2(child)) return true;
  }
  return false;
}

Status CheckBlobsV2(const Field& field) {
  if (field.is_blob_v2()) {
    const std::pair<const char*, arrow::Type::type> members[] = {
        {"data", arrow::Type::LARGE_BINARY},
        {"uri", arrow::Type::STRING},
        {"position", arrow::Type::UINT64},
        {"size", arrow::Type::UINT64}};
    const size_t count = field.children.size();
    bool fits = count == 2 || count == 4;
    for (size_t i = 0; fits && i < count; ++i) {
      const int at = MemberOf(field, members[i].first);
      fits = at >= 0 &&
             field.children[static_cast<size_t>(at)].type->id() == members[i].second;
    }
    if (!fits) {
      return InvalidInput("blob column '", field.name,
                          "' must be a struct of data (large_binary), uri (utf8) and, "
                          "perhaps, position and size (uint64), not ",
                          field.type->ToString());
    }
    return Status::OK();
  }
  if (!HoldsBlobsV2(field)) return Status::OK();
  const arrow::Type::type id = field.type->id();
  if (id != arrow::Type::STRUCT && id != arrow::Type::LIST &&
      id != arrow::Type::LARGE_LIST) {
    return NotSupported("column '", field.name, "': blobs (lance.blob.v2) in a ",
                        field.type->name());
  }
  if (field.is_packed_struct()) {
    return NotSupported("column '", field.name,
                        "': blobs (lance.blob.v2) in a packed struct");
  }
  for (const Field& child : field.children) GLAIVE_RETURN_NOT_OK(CheckBlobsV2(child));
  return Status::OK();
}

Status CheckBlobValues(const Field& field, const arrow::ArrayData& data, bool outside) {
  return CheckValues(field, data, AllRows(data), outside);
}

struct BlobV2Writer::Limits {
  uint64_t inlined = 64 << 10;
  uint64_t dedicated = 4 << 20;
  uint64_t pack = 1 << 30;
};

struct BlobV2Writer::Place {
  Kind kind = Kind::kInline;
  uint64_t position = 0;
  uint64_t size = 0;
  uint32_t id = 0;
};

BlobV2Writer::BlobV2Writer(io::ObjectStore& store, std::string path)
    : store_(store), directory_(BlobDirectory(std::move(path))) {}

BlobV2Writer::~BlobV2Writer() = default;

Result<ArrayDataPtr> BlobV2Writer::Write(const Field& field, const arrow::ArrayData& data,
                                         PageSink* sink) {
  return WriteField(field, data, AllRows(data), sink);
}

Result<ArrayDataPtr> BlobV2Writer::WriteField(const Field& field,
                                              const arrow::ArrayData& data,
                                              const std::vector<bool>& parent,
                                              PageSink* sink) {
  const std::vector<bool> visible = VisibleIn(data, parent);
  if (field.is_blob_v2()) return WriteBlobs(field, data, visible, sink);
  if (!HoldsBlobsV2(field)) return data.Copy();
  const Field stored = Schema({field}).WithBlobDescriptors().fields()[0];
  // A row that a parent hides is null here as well, which nobody sees.
  int64_t nulls = 0;
  GLAIVE_ASSIGN_OR_RETURN(auto validity, BitmapOf(visible, &nulls));
  std::vector<ArrayDataPtr> children;
  std::vector<std::shared_ptr<arrow::Buffer>> buffers = {std::move(validity)};
  if (field.type->id() == arrow::Type::STRUCT) {
    for (size_t i = 0; i < field.children.size(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto child, WriteField(field.children[i],
                                 *data.child_data[i]->Slice(data.offset, data.length),
                                 visible, sink));
      children.push_back(std::move(child));
    }
  } else {
    GLAIVE_ASSIGN_OR_RETURN(const Items items, ItemsOf(field, data, visible));
    buffers.push_back(items.offsets);
    GLAIVE_ASSIGN_OR_RETURN(
        auto child, WriteField(field.children[0], *items.values, items.visible, sink));
    children.push_back(std::move(child));
  }
  return arrow::ArrayData::Make(stored.type, data.length, std::move(buffers),
                                std::move(children), nulls);
}

Result<ArrayDataPtr> BlobV2Writer::WriteBlobs(const Field& field,
                                              const arrow::ArrayData& data,
                                              const std::vector<bool>& visible,
                                              PageSink* sink) {
  Limits limits;
  GLAIVE_ASSIGN_OR_RETURN(limits.inlined,
                          LimitOf(field, kInlineLimitKey, limits.inlined));
  GLAIVE_ASSIGN_OR_RETURN(limits.dedicated,
                          LimitOf(field, kDedicatedLimitKey, limits.dedicated));
  GLAIVE_ASSIGN_OR_RETURN(limits.pack, LimitOf(field, kPackLimitKey, limits.pack));
  const auto rows = static_cast<size_t>(data.length);
  const auto child = [&](const char* name) {
    const int at = MemberOf(field, name);
    if (at < 0) return ArrayDataPtr();
    return data.child_data[static_cast<size_t>(at)]->Slice(data.offset, data.length);
  };
  const arrow::LargeBinaryArray bytes(child("data"));
  const arrow::StringArray uris(child("uri"));
  // Which part of what the uri names; without them all of it.
  const ArrayDataPtr part_position = child("position");
  const ArrayDataPtr part_size = child("size");
  const auto part = [](const ArrayDataPtr& member, int64_t row) {
    return member != nullptr && IsValid(*member, row)
               ? member->GetValues<uint64_t>(1)[row]
               : uint64_t{0};
  };
  std::vector<int32_t> uri_ends(rows + 1);
  std::string uri_text;
  std::vector<uint8_t> kinds(rows);
  std::vector<uint64_t> positions(rows), sizes(rows);
  std::vector<uint32_t> ids(rows);
  for (size_t i = 0; i < rows; ++i) {
    uri_ends[i + 1] = uri_ends[i];
    if (!visible[i]) continue;
    const auto row = static_cast<int64_t>(i);
    if (uris.IsValid(row)) {
      kinds[i] = static_cast<uint8_t>(Kind::kExternal);
      positions[i] = part(part_position, row);
      sizes[i] = part(part_size, row);
      uri_text.append(uris.GetView(row));
      if (uri_text.size() > INT32_MAX) {
        return InvalidInput("column '", field.name,
                            "': the uris of one batch are too long");
      }
      uri_ends[i + 1] = static_cast<int32_t>(uri_text.size());
      continue;
    }
    const std::string_view value = bytes.GetView(static_cast<int64_t>(i));
    GLAIVE_ASSIGN_OR_RETURN(
        const Place place,
        Put({reinterpret_cast<const uint8_t*>(value.data()), value.size()}, limits,
            sink));
    kinds[i] = static_cast<uint8_t>(place.kind);
    positions[i] = place.position;
    sizes[i] = place.size;
    ids[i] = place.id;
  }
  const Field stored = Schema({field}).WithBlobDescriptors().fields()[0];
  const auto fixed = [&](auto values, int member) {
    return arrow::ArrayData::Make(stored.type->field(member)->type(), data.length,
                                  {nullptr, arrow::Buffer::FromVector(std::move(values))},
                                  0);
  };
  std::vector<ArrayDataPtr> members = {
      fixed(std::move(kinds), 0), fixed(std::move(positions), 1),
      fixed(std::move(sizes), 2), fixed(std::move(ids), 3)};
  // Empty where there is none.
  members.push_back(
      arrow::ArrayData::Make(arrow::utf8(), data.length,
                             {nullptr, arrow::Buffer::FromVector(std::move(uri_ends)),
                              arrow::Buffer::FromString(std::move(uri_text))},
                             0));
  int64_t nulls = 0;
  GLAIVE_ASSIGN_OR_RETURN(auto validity, BitmapOf(visible, &nulls));
  return arrow::ArrayData::Make(stored.type, data.length, {std::move(validity)},
                                std::move(members), nulls);
}

Result<BlobV2Writer::Place> BlobV2Writer::Put(std::span<const uint8_t> bytes,
                                              const Limits& limits, PageSink* sink) {
  Place place;
  place.size = bytes.size();
  if (bytes.size() > limits.dedicated) {
    place.kind = Kind::kDedicated;
    GLAIVE_ASSIGN_OR_RETURN(auto file, NewFile(&place.id));
    GLAIVE_RETURN_NOT_OK(file->Append(bytes));
    GLAIVE_RETURN_NOT_OK(file->Finish());
    return place;
  }
  if (bytes.size() <= limits.inlined) {
    place.position = static_cast<uint64_t>(sink->position());
    if (bytes.empty()) return place;
    GLAIVE_ASSIGN_OR_RETURN(const BufferLocation at, sink->Write(bytes));
    place.position = static_cast<uint64_t>(at.offset);
    return place;
  }
  place.kind = Kind::kPacked;
  if (pack_ != nullptr &&
      static_cast<uint64_t>(pack_->position()) + bytes.size() > limits.pack) {
    GLAIVE_RETURN_NOT_OK(pack_->Finish());
    pack_.reset();
  }
  if (pack_ == nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(pack_, NewFile(&pack_id_));
  }
  place.id = pack_id_;
  place.position = static_cast<uint64_t>(pack_->position());
  GLAIVE_RETURN_NOT_OK(pack_->Append(bytes));
  return place;
}

Result<std::unique_ptr<io::ObjectWriter>> BlobV2Writer::NewFile(uint32_t* id) {
  *id = ++last_id_;
  // Before it is made: it may be published and still fail.
  files_.push_back(directory_ + BlobFileName(*id));
  return store_.Create(files_.back());
}

Status BlobV2Writer::Finish() {
  if (pack_ == nullptr) return Status::OK();
  GLAIVE_RETURN_NOT_OK(pack_->Finish());
  pack_.reset();
  return Status::OK();
}

void BlobV2Writer::Abort() {
  if (pack_ != nullptr) pack_->Abort();
  pack_.reset();
  for (const std::string& path : files_) {
    Status ignored = store_.Delete(path);
    static_cast<void>(ignored.ok());
  }
  files_.clear();
}

}  // namespace glaive::file
