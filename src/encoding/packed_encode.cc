// Packs struct members row by row.
#include "encoding/packed_encode.h"

#include <algorithm>
#include <cstring>

#include <arrow/array/data.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "encoding/fsst_encode.h"
#include "encoding/miniblock_encode.h"
#include "encoding/out_bytes.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;

// One member: either `width` bytes per row, or a length and that many bytes.
struct Member {
  std::shared_ptr<arrow::Buffer> fixed;
  int64_t width = 0;
  VariableValues variable;
  bool is_variable() const { return fixed == nullptr; }
};

std::vector<Segment> MemberSegments(std::span<const Segment> segments, size_t member) {
  std::vector<Segment> out;
  for (const Segment& s : segments) {
    const arrow::ArrayData* child = s.data->child_data[member].get();
    out.push_back({child, child->offset + s.start, s.length});
  }
  return out;
}

Result<Member> GatherMember(std::span<const Segment> segments,
                            const EncodeOptions& options,
                            pb::VariablePackedStruct::FieldEncoding* encoding) {
  Member out;
  const arrow::DataType& type = *segments[0].data->type;
  pb::CompressiveEncoding* value = encoding->mutable_value();
  if (const int64_t bits = FixedBits(type); bits > 0) {
    if (bits % 8 != 0) return NotSupported("booleans in a packed struct");
    GLAIVE_ASSIGN_OR_RETURN(FixedValues values, GatherFixed(segments, bits));
    out.fixed = values.Contiguous();
    out.width = bits / 8;
    value->mutable_flat()->set_bits_per_value(static_cast<uint64_t>(bits));
    encoding->set_bits_per_value(static_cast<uint64_t>(bits));
    return out;
  }
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    GLAIVE_ASSIGN_OR_RETURN(FixedListValues values, GatherFixedList(segments));
    if (values.has_validity())
      return NotSupported("null vector elements in a packed struct");
    if (values.items.bits % 8 != 0)
      return NotSupported("vectors of booleans in a packed struct");
    out.fixed = values.items.Contiguous();
    out.width = values.items_per_row() * values.items.byte_width();
    for (int64_t dimension : values.dimensions) {
      value->mutable_fixed_size_list()->set_items_per_value(
          static_cast<uint64_t>(dimension));
      value = value->mutable_fixed_size_list()->mutable_values();
    }
    value->mutable_flat()->set_bits_per_value(static_cast<uint64_t>(values.items.bits));
    encoding->set_bits_per_value(static_cast<uint64_t>(8 * out.width));
    return out;
  }
  if (!arrow::is_base_binary_like(type.id())) {
    return NotSupported("type ", type.ToString(), " in a packed struct");
  }
  GLAIVE_ASSIGN_OR_RETURN(out.variable, GatherVariable(segments));
  const uint64_t length_bits = static_cast<uint64_t>(8 * out.variable.offset_bytes());
  if (WantsFsst(out.variable, options)) {
    GLAIVE_ASSIGN_OR_RETURN(FsstValues packed, FsstEncode(out.variable));
    value->mutable_fsst()->set_symbol_table(std::move(packed.symbol_table));
    value = value->mutable_fsst()->mutable_values();
    out.variable = std::move(packed.values);
  }
  value->mutable_variable()->mutable_offsets()->mutable_flat()->set_bits_per_value(
      length_bits);
  encoding->set_bits_per_length(length_bits);
  return out;
}

// Nulls of `member` (or of what it contains) among `count` slots from `start`.
int64_t NullsWithin(const arrow::ArrayData& member, int64_t start, int64_t count) {
  int64_t nulls = CountNulls({&member, start, count});
  if (member.type->id() == arrow::Type::FIXED_SIZE_LIST) {
    const int64_t size =
        static_cast<const arrow::FixedSizeListType&>(*member.type).list_size();
    const arrow::ArrayData& items = *member.child_data[0];
    nulls += NullsWithin(items, items.offset + start * size, count * size);
  }
  return nulls;
}

}  // namespace

Status CheckPackable(std::span<const Segment> segments) {
  for (const Segment& s : segments) {
    for (int m = 0; m < s.data->type->num_fields(); ++m) {
      const arrow::ArrayData& member = *s.data->child_data[static_cast<size_t>(m)];
      const int64_t start = member.offset + s.start;
      if (NullsWithin(member, start, s.length) == 0) continue;
      for (int64_t i = 0; i < s.length; ++i) {
        if (!IsNull(s, i) && NullsWithin(member, start + i, 1) > 0) {
          return InvalidInput("member '", s.data->type->field(m)->name(),
                              "' holds nulls, which packed structs cannot store");
        }
      }
    }
  }
  return Status::OK();
}

Result<PackedRows> PackRows(std::span<const Segment> segments,
                            std::span<const EncodeOptions> member_options,
                            const EncodeOptions& options) {
  PackedRows out;
  std::vector<Member> members;
  auto* fields = out.encoding.mutable_variable_packed_struct();
  bool plain = true;
  int64_t count = 0;
  for (const Segment& s : segments) count += s.length;
  for (size_t m = 0; m < member_options.size(); ++m) {
    const auto below = MemberSegments(segments, m);
    plain &= FixedBits(*below[0].data->type) > 0;
    GLAIVE_ASSIGN_OR_RETURN(Member member,
                            GatherMember(below, member_options[m], fields->add_fields()));
    members.push_back(std::move(member));
  }
  out.variable = !plain;
  if (out.variable && !options.v2_2) {
    return NotSupported("packed structs with strings or vectors; use file version 2.2");
  }
  int64_t fixed_width = 0;
  for (const Member& m : members) {
    fixed_width += m.is_variable() ? m.variable.offset_bytes() : m.width;
    out.member_bits.push_back(8 * m.width);
  }
  OutBytes bytes(static_cast<size_t>(count * fixed_width));
  out.variable_rows.offsets.push_back(0);
  for (int64_t row = 0; row < count; ++row) {
    for (const Member& m : members) {
      if (!m.is_variable()) {
        bytes.Append(m.fixed->data() + row * m.width, static_cast<size_t>(m.width));
        continue;
      }
      const std::string_view value = m.variable.value(row);
      const uint64_t length = value.size();
      bytes.Append(&length, static_cast<size_t>(m.variable.offset_bytes()));
      bytes.Append(value.data(), value.size());
    }
    if (out.variable)
      out.variable_rows.offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  auto owner = bytes.Finish();
  if (out.variable) {
    out.variable_rows.count = count;
    out.variable_rows.bytes = owner->data();
    out.variable_rows.owners.push_back(std::move(owner));
    for (int64_t row = 0; row < count; ++row) {
      // Lengths are 32 bits unless some row needs more.
      out.variable_rows.large |= out.variable_rows.length(row) > UINT32_MAX;
    }
  } else {
    out.fixed_rows.bits = 8 * fixed_width;
    out.fixed_rows.count = count;
    out.fixed_rows.pieces.push_back(std::move(owner));
    out.encoding.Clear();
  }
  return out;
}

}  // namespace glaive::encoding
