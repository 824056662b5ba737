#include "encoding/fullzip_decode.h"

#include <utility>

#include <arrow/buffer.h>

#include "encoding/block_decode.h"
#include "encoding/miniblock_decode.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

namespace pb = lance::encodings21;
using pb::CompressiveEncoding;
using Kind = ValueShape::Kind;

namespace {

constexpr int64_t kMaxRowBytes = int64_t{1} << 40;

Status Mismatch(const CompressiveEncoding& encoding) {
  return Corruption("encoding ", EncodingName(encoding),
                    " of a full-zip page does not fit the column's type");
}

bool IsFlat(const CompressiveEncoding& encoding) {
  return encoding.has_flat() && !encoding.flat().has_data();
}

}  // namespace

Result<FixedRowCodec> FixedRowCodec::Make(const CompressiveEncoding& given,
                                          const ValueShape& shape) {
  FixedRowCodec out;
  const CompressiveEncoding* encoding = &given;
  const ValueShape* item = &shape;
  int64_t items = 1;
  int64_t validity_bytes = 0;
  // Items that are all null have no bytes, at whatever level of nested lists they stand.
  auto all_null = [&] {
    return encoding->has_constant() && !encoding->constant().has_value() &&
           !out.lists_.empty();
  };
  while (item->kind == Kind::kFixedSizeList && !all_null()) {
    if (!encoding->has_fixed_size_list() ||
        encoding->fixed_size_list().items_per_value() !=
            static_cast<uint64_t>(item->list_size)) {
      return Mismatch(*encoding);
    }
    items = CheckedMultiply(items, item->list_size);
    if (items < 0 || items > kMaxRowBytes) return Mismatch(*encoding);
    bool has_validity = encoding->fixed_size_list().has_validity();
    out.lists_.push_back({items, has_validity});
    if (has_validity) validity_bytes += (items + 7) / 8;
    encoding = &encoding->fixed_size_list().values();
    item = &item->children[0];
  }
  out.null_items_ = all_null();
  switch (out.null_items_ ? Kind::kNull : item->kind) {
    case Kind::kNull:
      if (!out.null_items_) return Mismatch(*encoding);
      break;
    case Kind::kFixed:
      if (!IsFlat(*encoding) || encoding->flat().bits_per_value() !=
                                    static_cast<uint64_t>(8 * item->byte_width)) {
        return Mismatch(*encoding);
      }
      out.value_bytes_ = items * item->byte_width;
      break;
    case Kind::kBits:
      if (!IsFlat(*encoding)) return Mismatch(*encoding);
      if (encoding->flat().bits_per_value() == 8 && out.lists_.empty()) {
        out.bits_ = true;
        out.value_bytes_ = 1;
      } else if (encoding->flat().bits_per_value() == 1 && !out.lists_.empty()) {
        out.packed_bits_ = true;
        out.value_bytes_ = (items + 7) / 8;
      } else {
        return Mismatch(*encoding);
      }
      break;
    case Kind::kStruct: {
      if (!encoding->has_packed_struct() || !out.lists_.empty())
        return Mismatch(*encoding);
      for (uint64_t bits : encoding->packed_struct().bits_per_value()) {
        if (bits % 8 != 0 || bits > 8 * static_cast<uint64_t>(kMaxRowBytes)) {
          return Mismatch(*encoding);
        }
        out.tuple_.push_back(static_cast<int64_t>(bits / 8));
        out.value_bytes_ += out.tuple_.back();
      }
      GLAIVE_RETURN_NOT_OK(CheckTuple(out.tuple_, *item));
      break;
    }
    default:
      return Mismatch(*encoding);
  }
  out.row_bytes_ = validity_bytes + out.value_bytes_;
  if (out.row_bytes_ > kMaxRowBytes) return Mismatch(given);
  out.plain_ = validity_bytes == 0 && item->kind == Kind::kFixed && !out.null_items_;
  return out;
}

Status FixedRowCodec::Append(const uint8_t* rows, int64_t stride, int64_t count,
                             ValueSink* out) const {
  if (!tuple_.empty()) {
    for (int64_t r = 0; r < count; ++r) {
      GLAIVE_RETURN_NOT_OK(AppendTuples(rows + r * stride, 1, tuple_, out));
    }
    return Status::OK();
  }
  if (bits_) {
    for (int64_t r = 0; r < count; ++r) {
      GLAIVE_RETURN_NOT_OK(out->bits().AppendRun((rows[r * stride] & 1) != 0, 1));
    }
    out->AddLength(count);
    return Status::OK();
  }
  // Validity of each layer of lists, then the items of all rows.
  ValueSink* items = out;
  int64_t at = 0;
  for (const ListLayer& list : lists_) {
    items->AddLength(count * (list.items / items->shape().list_size));
    items = &items->children()[0];
    if (list.has_validity) {
      for (int64_t r = 0; r < count; ++r) {
        GLAIVE_RETURN_NOT_OK(
            items->validity().AppendBitmap(rows + r * stride + at, 0, list.items));
      }
      at += (list.items + 7) / 8;
    } else if (null_items_ && &list == &lists_.back()) {
      GLAIVE_RETURN_NOT_OK(items->validity().AppendNulls(count * list.items));
    } else {
      GLAIVE_RETURN_NOT_OK(items->validity().AppendValid(count * list.items));
    }
  }
  int64_t num_items = count * (lists_.empty() ? 1 : lists_.back().items);
  if (null_items_) return items->AppendEmpty(num_items);
  if (packed_bits_) {
    for (int64_t r = 0; r < count; ++r) {
      GLAIVE_RETURN_NOT_OK(
          items->bits().Append(rows + r * stride + at, 0, lists_.back().items));
    }
    items->AddLength(num_items);
    return Status::OK();
  }
  GLAIVE_RETURN_NOT_OK(items->data().Reserve(count * value_bytes_));
  uint8_t* to = items->data().tail();
  if (stride == value_bytes_) {
    std::memcpy(to, rows, static_cast<size_t>(count * value_bytes_));
  } else {
    for (int64_t r = 0; r < count; ++r) {
      std::memcpy(to + r * value_bytes_, rows + r * stride + at,
                  static_cast<size_t>(value_bytes_));
    }
  }
  items->data().Advance(count * value_bytes_);
  items->AddLength(num_items);
  return Status::OK();
}

Status FixedRowCodec::AppendPlain(const std::shared_ptr<arrow::Buffer>& buffer,
                                  int64_t count, ValueSink* out) const {
  ValueSink* items = out;
  for (const ListLayer& list : lists_) {
    items->AddLength(count * (list.items / items->shape().list_size));
    items = &items->children()[0];
    GLAIVE_RETURN_NOT_OK(items->validity().AppendValid(count * list.items));
  }
  // Consumers may load whole values: misaligned data (possible in old files) is copied.
  int64_t width = items->shape().byte_width;
  int64_t alignment = width % 8 == 0 ? 8 : width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
  if (reinterpret_cast<uintptr_t>(buffer->data()) % static_cast<uintptr_t>(alignment) ==
      0) {
    GLAIVE_RETURN_NOT_OK(items->data().AppendBuffer(buffer));
  } else {
    GLAIVE_RETURN_NOT_OK(items->data().Append(buffer->data(), buffer->size()));
  }
  items->AddLength(count * (lists_.empty() ? 1 : lists_.back().items));
  return Status::OK();
}

Status VariableRowCodec::AddSteps(const CompressiveEncoding& encoding,
                                  std::vector<Step>* steps) {
  switch (encoding.compression_case()) {
    case CompressiveEncoding::kVariable:
      return Status::OK();
    case CompressiveEncoding::kFsst: {
      GLAIVE_RETURN_NOT_OK(AddSteps(encoding.fsst().values(), steps));
      Step step;
      step.fsst = true;
      GLAIVE_ASSIGN_OR_RETURN(step.table,
                              FsstTable::Parse(encoding.fsst().symbol_table()));
      if (step.table.compressed()) steps->push_back(std::move(step));
      return Status::OK();
    }
    case CompressiveEncoding::kGeneral: {
      Step step;
      GLAIVE_ASSIGN_OR_RETURN(step.scheme, SchemeOf(encoding.general().compression()));
      steps->push_back(std::move(step));
      return AddSteps(encoding.general().values(), steps);
    }
    default:
      return NotSupported("encoding ", EncodingName(encoding),
                          " for values of a full-zip page");
  }
}

Result<VariableRowCodec> VariableRowCodec::Make(const CompressiveEncoding& encoding,
                                                const ValueShape& shape) {
  VariableRowCodec out;
  if (shape.kind == Kind::kVariable) {
    GLAIVE_RETURN_NOT_OK(AddSteps(encoding, &out.steps_));
    return out;
  }
  if (shape.kind != Kind::kStruct || !encoding.has_variable_packed_struct()) {
    return Mismatch(encoding);
  }
  const auto& packed = encoding.variable_packed_struct();
  if (packed.fields_size() != static_cast<int>(shape.children.size()) ||
      packed.fields_size() == 0) {
    return Corruption("packed struct of ", packed.fields_size(), " fields instead of ",
                      shape.children.size());
  }
  for (int i = 0; i < packed.fields_size(); ++i) {
    const auto& field = packed.fields(i);
    const ValueShape& child = shape.children[static_cast<size_t>(i)];
    StructField made;
    if (field.has_bits_per_length()) {
      uint64_t bits = field.bits_per_length();
      if (bits != 8 && bits != 16 && bits != 32 && bits != 64) {
        return Corruption("packed struct: lengths of ", bits, " bits");
      }
      if (child.kind != Kind::kVariable) return Mismatch(field.value());
      made.length_bytes = static_cast<int64_t>(bits / 8);
      GLAIVE_ASSIGN_OR_RETURN(auto codec, Make(field.value(), child));
      made.variable = std::make_unique<VariableRowCodec>(std::move(codec));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto codec, FixedRowCodec::Make(field.value(), child));
      if (field.bits_per_value() != static_cast<uint64_t>(8 * codec.row_bytes())) {
        return Corruption("packed struct: field ", i, " of ", field.bits_per_value(),
                          " bits instead of ", 8 * codec.row_bytes());
      }
      made.fixed = std::make_unique<FixedRowCodec>(std::move(codec));
    }
    out.fields_.push_back(std::move(made));
  }
  return out;
}

Status VariableRowCodec::Apply(const Step& step, Bytes in, ByteSink* out) {
  if (!step.fsst) return Decompress(step.scheme, in, out);
  GLAIVE_RETURN_NOT_OK(
      out->Reserve(FsstTable::kMaxSymbolBytes * (static_cast<int64_t>(in.size()) + 1)));
  int64_t written = step.table.Expand(in, out->tail());
  if (written < 0) return Corruption("FSST codes that the symbol table does not have");
  out->Advance(written);
  return Status::OK();
}

Status VariableRowCodec::Append(Bytes value, ValueSink* out) const {
  if (!fields_.empty()) return AppendStruct(value, out);
  if (steps_.empty())
    return out->AppendOne(value.data(), static_cast<int64_t>(value.size()));
  ByteSink scratch[2];
  for (size_t i = 0; i + 1 < steps_.size(); ++i) {
    ByteSink& to = scratch[i % 2];
    to.Clear();
    GLAIVE_RETURN_NOT_OK(Apply(steps_[i], value, &to));
    value = Bytes(to.data(), static_cast<size_t>(to.size()));
  }
  GLAIVE_RETURN_NOT_OK(Apply(steps_.back(), value, &out->data()));
  int64_t end = out->data().size();
  return out->AppendEnds(&end, 1);
}

Status VariableRowCodec::AppendStruct(Bytes row, ValueSink* out) const {
  const uint8_t* at = row.data();
  auto left = static_cast<int64_t>(row.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const StructField& field = fields_[i];
    ValueSink& child = out->children()[i];
    int64_t bytes = 0;
    if (field.fixed) {
      bytes = field.fixed->row_bytes();
      if (bytes > left) return Corruption("packed struct: a row ends early");
      GLAIVE_RETURN_NOT_OK(field.fixed->Append(at, bytes, 1, &child));
    } else {
      if (field.length_bytes > left) return Corruption("packed struct: a row ends early");
      uint64_t length = 0;
      std::memcpy(&length, at, static_cast<size_t>(field.length_bytes));
      at += field.length_bytes;
      left -= field.length_bytes;
      if (length > static_cast<uint64_t>(left)) {
        return Corruption("packed struct: a field of ", length, " bytes in a row with ",
                          left, " left");
      }
      bytes = static_cast<int64_t>(length);
      GLAIVE_RETURN_NOT_OK(
          field.variable->Append(Bytes(at, static_cast<size_t>(bytes)), &child));
    }
    GLAIVE_RETURN_NOT_OK(child.validity().AppendValid(1));
    at += bytes;
    left -= bytes;
  }
  if (left != 0)
    return Corruption("packed struct: ", left, " bytes after the last field");
  out->AddLength(1);
  return Status::OK();
}

}  // namespace glaive::encoding
