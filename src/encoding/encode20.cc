#include "encoding/encode20.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/bitmap_ops.h>

#include "encoding/compress.h"
#include "encoding/fsst_encode.h"
#include "encoding/out_bytes.h"
#include "encoding/values.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings;

constexpr int64_t kMinDictionaryRows = 100;
constexpr size_t kMaxDictionaryItems = 100;  // not reached

// Adds a buffer to the page and describes it as raw values of `bits`.
void AddFlat(int64_t bits, PageBuffer buffer, EncodedArray20* out,
             pb::ArrayEncoding* encoding) {
  auto* flat = encoding->mutable_flat();
  flat->set_bits_per_value(static_cast<uint64_t>(bits));
  flat->mutable_buffer()->set_buffer_index(static_cast<uint32_t>(out->buffers.size()));
  out->buffers.push_back(std::move(buffer));
}

void AddFlatNoNulls(int64_t bits, PageBuffer buffer, EncodedArray20* out,
                    pb::ArrayEncoding* encoding) {
  AddFlat(bits, std::move(buffer), out,
          encoding->mutable_nullable()->mutable_no_nulls()->mutable_values());
}

// Fixed-width values and fixed-size lists: validity outside, values inside.
Status EncodeBasic(const std::vector<Segment>& segments, EncodedArray20* out,
                   pb::ArrayEncoding* encoding) {
  int64_t count = 0;
  int64_t nulls = 0;
  for (const Segment& s : segments) {
    count += s.length;
    nulls += CountNulls(s);
  }
  auto* nullable = encoding->mutable_nullable();
  if (nulls == count) {
    nullable->mutable_all_nulls();
    return Status::OK();
  }
  pb::ArrayEncoding* values;
  if (nulls > 0) {
    auto* some = nullable->mutable_some_nulls();
    AddFlat(1, {GatherBits(segments, 0, count)}, out, some->mutable_validity());
    values = some->mutable_values();
  } else {
    values = nullable->mutable_no_nulls()->mutable_values();
  }
  const arrow::DataType& type = *segments[0].data->type;
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    const int64_t dimension =
        static_cast<const arrow::FixedSizeListType&>(type).list_size();
    std::vector<Segment> below;
    for (const Segment& s : segments) {
      const arrow::ArrayData* child = s.data->child_data[0].get();
      below.push_back({child, child->offset + s.start * dimension, s.length * dimension});
    }
    values->mutable_fixed_size_list()->set_dimension(static_cast<uint32_t>(dimension));
    return EncodeBasic(below, out, values->mutable_fixed_size_list()->mutable_items());
  }
  const int64_t bits = FixedBits(type);
  GLAIVE_ASSIGN_OR_RETURN(FixedValues fixed, GatherFixed(segments, bits));
  AddFlat(bits, fixed.pieces, out, values);
  return Status::OK();
}

// End offsets with nulls marked by an addend, then the bytes.
Status EncodeBinary(const VariableValues& values, const std::vector<uint16_t>& nulls,
                    const EncodeOptions& options, EncodedArray20* out,
                    pb::ArrayEncoding* encoding) {
  auto* binary = encoding->mutable_binary();
  const uint64_t adjustment =
      values.count == 0 ? 0 : static_cast<uint64_t>(values.num_bytes()) + 1;
  OutBytes ends(static_cast<size_t>(values.count) * 8);
  for (int64_t i = 0; i < values.count; ++i) {
    const bool null = !nulls.empty() && nulls[static_cast<size_t>(i)] != 0;
    ends.Put(static_cast<uint64_t>(values.offsets[static_cast<size_t>(i) + 1] -
                                   values.offsets[0]) +
             (null ? adjustment : 0));
  }
  AddFlatNoNulls(64, {ends.Finish()}, out, binary->mutable_indices());
  binary->set_null_adjustment(adjustment);
  const std::span<const uint8_t> bytes(
      values.bytes == nullptr ? nullptr : values.bytes + values.offsets[0],
      static_cast<size_t>(values.num_bytes()));
  OutBytes stored(bytes.size());
  if (options.general()) {
    GLAIVE_ASSIGN_OR_RETURN(auto compressor, Compressor::Make(options.compression,
                                                              options.compression_level));
    GLAIVE_RETURN_NOT_OK(compressor.Append(bytes, &stored));
  } else {
    stored.Append(bytes);
  }
  AddFlat(8, {stored.Finish()}, out, binary->mutable_bytes());
  auto* compression = binary->mutable_bytes()->mutable_flat();
  if (options.compression == Scheme::kLz4) {
    compression->mutable_compression()->set_scheme("lz4");
  } else if (options.compression == Scheme::kZstd) {
    compression->mutable_compression()->set_scheme("zstd");
    if (options.compression_level) {
      compression->mutable_compression()->set_level(*options.compression_level);
    }
  } else if (options.compression == Scheme::kNone) {
    compression->mutable_compression()->set_scheme("none");
  }
  return Status::OK();
}

// Number of every row's item, 0 for null; false when there are too many different ones.
bool NumberItems(const VariableValues& values, const std::vector<uint16_t>& nulls,
                 std::vector<uint8_t>* numbers, std::vector<std::string_view>* items) {
  std::unordered_map<std::string_view, uint8_t> known;
  numbers->resize(static_cast<size_t>(values.count));
  for (int64_t i = 0; i < values.count; ++i) {
    const size_t row = static_cast<size_t>(i);
    if (!nulls.empty() && nulls[row] != 0) continue;
    const auto [it, added] =
        known.emplace(values.value(i), static_cast<uint8_t>(items->size() + 1));
    if (added) {
      items->push_back(values.value(i));
      if (items->size() >= kMaxDictionaryItems) return false;
    }
    (*numbers)[row] = it->second;
  }
  if (items->empty()) items->push_back("");
  return true;
}

VariableValues Join(const std::vector<std::string_view>& items) {
  VariableValues out;
  OutBytes bytes;
  out.count = static_cast<int64_t>(items.size());
  out.offsets.push_back(0);
  for (std::string_view item : items) {
    bytes.Append(item.data(), item.size());
    out.offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  out.owners.push_back(bytes.Finish());
  out.bytes = out.owners.back()->data();
  return out;
}

Status EncodeText(const Levels& levels, const EncodeOptions& options,
                  EncodedArray20* out) {
  GLAIVE_ASSIGN_OR_RETURN(VariableValues values, GatherVariable(levels));
  const bool text = levels.values[0].data->type->id() == arrow::Type::STRING;
  std::vector<uint8_t> numbers;
  std::vector<std::string_view> items;
  if (text && values.count >= kMinDictionaryRows &&
      NumberItems(values, levels.def, &numbers, &items)) {
    auto* dictionary = out->encoding.mutable_dictionary();
    OutBytes indices(numbers.size());
    indices.Append(numbers.data(), numbers.size());
    AddFlatNoNulls(8, {indices.Finish()}, out, dictionary->mutable_indices());
    dictionary->set_num_dictionary_items(static_cast<uint32_t>(items.size()));
    return EncodeBinary(Join(items), {}, EncodeOptions{}, out,
                        dictionary->mutable_items());
  }
  if (options.compression == Scheme::kFsst && values.num_bytes() > 0) {
    GLAIVE_ASSIGN_OR_RETURN(FsstValues packed, FsstEncode(values));
    auto* fsst = out->encoding.mutable_fsst();
    fsst->set_symbol_table(std::move(packed.symbol_table));
    return EncodeBinary(packed.values, levels.def, EncodeOptions{}, out,
                        fsst->mutable_binary());
  }
  return EncodeBinary(values, levels.def, options, out, &out->encoding);
}

// Indices as they are; null rows point at a null item behind the others.
Status EncodeDictionaryTyped(const Levels& levels, EncodedArray20* out) {
  const arrow::ArrayData& first = *levels.values[0].data;
  const auto& type = static_cast<const arrow::DictionaryType&>(*first.type);
  const int64_t bits = FixedBits(*type.index_type());
  GLAIVE_ASSIGN_OR_RETURN(FixedValues indices, GatherFixed(levels.values, bits));
  const size_t width = static_cast<size_t>(bits / 8);
  const auto raw = indices.Contiguous();
  std::shared_ptr<arrow::ArrayData> items = first.dictionary;
  OutBytes bytes(static_cast<size_t>(raw->size()));
  bytes.Append(raw->data(), static_cast<size_t>(raw->size()));
  if (!levels.def.empty()) {
    const uint64_t null_index = static_cast<uint64_t>(items->length);
    const bool is_signed = arrow::is_signed_integer(type.index_type()->id());
    const int value_bits = static_cast<int>(bits) - is_signed;
    if (value_bits < 64 && null_index >> value_bits != 0) {
      return InvalidInput("the dictionary has ", items->length,
                          " items and nulls, too many for ",
                          type.index_type()->ToString(),
                          " indices in file version 2.0; use file version 2.1 or later");
    }
    for (size_t i = 0; i < levels.def.size(); ++i) {
      if (levels.def[i] != 0) std::memcpy(bytes.data() + i * width, &null_index, width);
    }
    GLAIVE_ASSIGN_OR_RETURN(auto null, arrow::MakeArrayOfNull(items->type, 1));
    GLAIVE_ASSIGN_OR_RETURN(
        auto joined, arrow::Concatenate({arrow::MakeArray(items), std::move(null)}));
    items = joined->data();
  }
  auto* dictionary = out->encoding.mutable_dictionary();
  AddFlatNoNulls(bits, {bytes.Finish()}, out, dictionary->mutable_indices());
  dictionary->set_num_dictionary_items(static_cast<uint32_t>(items->length));
  const PathNode leaf[] = {PathNode::kLeaf};
  const Levels item_levels = BuildLevels(std::span(&items, 1), leaf);
  if (arrow::is_base_binary_like(items->type->id())) {
    GLAIVE_ASSIGN_OR_RETURN(VariableValues values, GatherVariable(item_levels));
    return EncodeBinary(values, item_levels.def, EncodeOptions{}, out,
                        dictionary->mutable_items());
  }
  return EncodeBasic(item_levels.values, out, dictionary->mutable_items());
}

}  // namespace

Result<EncodedArray20> EncodeArray20(
    std::span<const std::shared_ptr<arrow::ArrayData>> arrays,
    const EncodeOptions& options) {
  EncodedArray20 out;
  const PathNode leaf[] = {PathNode::kLeaf};
  const Levels levels = BuildLevels(arrays, leaf);
  if (levels.values.empty() || levels.values[0].data->type->id() == arrow::Type::NA) {
    out.encoding.mutable_nullable()->mutable_all_nulls();
    return out;
  }
  const arrow::DataType& type = *levels.values[0].data->type;
  if (type.id() == arrow::Type::DICTIONARY) {
    GLAIVE_RETURN_NOT_OK(EncodeDictionaryTyped(levels, &out));
  } else if (arrow::is_base_binary_like(type.id())) {
    const bool any_valid =
        levels.def.empty() ||
        std::find(levels.def.begin(), levels.def.end(), 0) != levels.def.end();
    if (any_valid) {
      GLAIVE_RETURN_NOT_OK(EncodeText(levels, options, &out));
    } else {
      out.encoding.mutable_nullable()->mutable_all_nulls();
    }
  } else {
    GLAIVE_RETURN_NOT_OK(EncodeBasic(levels.values, &out, &out.encoding));
  }
  return out;
}

Result<EncodedArray20> EncodePacked20(
    std::span<const std::shared_ptr<arrow::ArrayData>> arrays) {
  EncodedArray20 out;
  auto* packed = out.encoding.mutable_packed_struct();
  struct Member {
    std::shared_ptr<arrow::Buffer> bytes;
    int64_t width;
  };
  std::vector<Member> members;
  int64_t count = 0;
  for (const auto& array : arrays) count += array->length;
  const int num_members = arrays[0]->type->num_fields();
  for (int m = 0; m < num_members; ++m) {
    std::vector<Segment> below;
    for (const auto& array : arrays) {
      const arrow::ArrayData* child = array->child_data[static_cast<size_t>(m)].get();
      below.push_back({child, child->offset + array->offset, array->length});
    }
    pb::ArrayEncoding* encoding = packed->add_inner();
    int64_t items = 1;
    FixedValues values;
    if (below[0].data->type->id() == arrow::Type::FIXED_SIZE_LIST) {
      GLAIVE_ASSIGN_OR_RETURN(FixedListValues lists, GatherFixedList(below));
      for (int64_t dimension : lists.dimensions) {
        auto* list = encoding->mutable_nullable()
                         ->mutable_no_nulls()
                         ->mutable_values()
                         ->mutable_fixed_size_list();
        list->set_dimension(static_cast<uint32_t>(dimension));
        encoding = list->mutable_items();
      }
      items = lists.items_per_row();
      values = std::move(lists.items);
    } else {
      GLAIVE_ASSIGN_OR_RETURN(values,
                              GatherFixed(below, FixedBits(*below[0].data->type)));
    }
    auto* flat = encoding->mutable_nullable()
                     ->mutable_no_nulls()
                     ->mutable_values()
                     ->mutable_flat();
    flat->set_bits_per_value(static_cast<uint64_t>(values.bits));
    flat->mutable_buffer();
    members.push_back({values.Contiguous(), items * values.byte_width()});
  }
  int64_t row_bytes = 0;
  for (const Member& m : members) row_bytes += m.width;
  OutBytes rows(static_cast<size_t>(count * row_bytes));
  for (int64_t i = 0; i < count; ++i) {
    for (const Member& m : members) {
      rows.Append(m.bytes->data() + i * m.width, static_cast<size_t>(m.width));
    }
  }
  packed->mutable_buffer();
  out.buffers.push_back({rows.Finish()});
  return out;
}

EncodedArray20 EncodeLists20(std::span<const int64_t> lengths) {
  EncodedArray20 out;
  uint64_t items = 0;
  for (int64_t length : lengths)
    items += static_cast<uint64_t>(std::max<int64_t>(length, 0));
  const uint64_t adjustment = items + 1;
  OutBytes ends(lengths.size() * 8);
  uint64_t end = 0;
  for (int64_t length : lengths) {
    if (length > 0) end += static_cast<uint64_t>(length);
    ends.Put(end + (length < 0 ? adjustment : 0));
  }
  auto* list = out.encoding.mutable_list();
  AddFlatNoNulls(64, {ends.Finish()}, &out, list->mutable_offsets());
  list->set_null_offset_adjustment(adjustment);
  list->set_num_items(items);
  return out;
}

EncodedArray20 EncodeStructs20() {
  EncodedArray20 out;
  out.encoding.mutable_struct_();
  return out;
}

EncodedArray20 EncodeBlobs20(std::span<const uint64_t> positions_and_sizes) {
  EncodedArray20 out;
  OutBytes bytes(positions_and_sizes.size() * 8);
  bytes.Append(positions_and_sizes.data(), positions_and_sizes.size() * 8);
  auto* packed = out.encoding.mutable_packed_struct();
  for (int i = 0; i < 2; ++i) {
    auto* flat = packed->add_inner()
                     ->mutable_nullable()
                     ->mutable_no_nulls()
                     ->mutable_values()
                     ->mutable_flat();
    flat->set_bits_per_value(64);
    flat->mutable_buffer();
  }
  packed->mutable_buffer();
  out.buffers.push_back({bytes.Finish()});
  return out;
}

}  // namespace glaive::encoding
