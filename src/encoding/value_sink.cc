#include "encoding/value_sink.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/buffer.h>
#include <arrow/memory_pool.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/bitmap_ops.h>

namespace glaive::encoding {

using Kind = ValueShape::Kind;

namespace {

// Reservations rest on counts that come from disk: beyond this, memory is taken as data
// arrives.
constexpr int64_t kMostReservedBytes = int64_t{256} << 20;

}  // namespace

// ---- ByteSink
// ----------------------------------------------------------------------------------

Status ByteSink::Grow(int64_t extra) {
  if (extra < 0 || extra > std::numeric_limits<int64_t>::max() / 4 - size_) {
    return ResourceExhausted("a decoded buffer would need ", extra, " more bytes");
  }
  int64_t wanted = std::max<int64_t>(size_ + extra,
                                     std::min(2 * capacity_, size_ + (int64_t{1} << 30)));
  wanted = (wanted + 63) & ~int64_t{63};
  if (owned_) {
    GLAIVE_RETURN_NOT_OK(owned_->Resize(wanted, false));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(auto made, arrow::AllocateResizableBuffer(wanted));
    owned_ = std::move(made);
    if (borrowed_) {
      std::memcpy(owned_->mutable_data(), borrowed_->data(), static_cast<size_t>(size_));
      borrowed_.reset();
    }
  }
  data_ = owned_->mutable_data();
  capacity_ = wanted;
  return Status::OK();
}

Status ByteSink::AppendZeros(int64_t bytes) {
  GLAIVE_RETURN_NOT_OK(Reserve(bytes));
  if (bytes > 0) std::memset(tail(), 0, static_cast<size_t>(bytes));
  size_ += bytes;
  return Status::OK();
}

Status ByteSink::AppendBuffer(const std::shared_ptr<arrow::Buffer>& buffer) {
  if (size_ == 0 && !borrowed_ && buffer->size() > 0) {
    owned_.reset();
    borrowed_ = buffer;
    // Never written: capacity 0 makes the next append copy first.
    data_ = const_cast<uint8_t*>(buffer->data());
    size_ = buffer->size();
    capacity_ = 0;
    return Status::OK();
  }
  return Append(buffer->data(), buffer->size());
}

void ByteSink::Clear() {
  borrowed_.reset();
  size_ = 0;
  data_ = owned_ ? owned_->mutable_data() : nullptr;
  capacity_ = owned_ ? owned_->size() : 0;
}

std::shared_ptr<arrow::Buffer> ByteSink::Finish() {
  std::shared_ptr<arrow::Buffer> out;
  if (borrowed_) {
    out = std::move(borrowed_);
  } else if (owned_) {
    // Memory that is far larger than its contents goes back to the allocator.
    bool shrink = owned_->size() > size_ + size_ / 2 + 4096;
    if (Status s = owned_->Resize(size_, shrink); !s.ok()) s = Status::OK();
    owned_->ZeroPadding();
    out = std::move(owned_);
  } else {
    static const uint8_t kNothing[64] = {};
    out = std::make_shared<arrow::Buffer>(kNothing, 0);
  }
  owned_.reset();
  borrowed_.reset();
  data_ = nullptr;
  size_ = capacity_ = 0;
  return out;
}

// ---- BitSink
// -----------------------------------------------------------------------------------

Status BitSink::Extend(int64_t count) {
  int64_t bytes = arrow::bit_util::BytesForBits(length_ + count);
  return bytes > bytes_.size() ? bytes_.AppendZeros(bytes - bytes_.size()) : Status::OK();
}

Status BitSink::Append(const uint8_t* bits, int64_t offset, int64_t count) {
  if (count == 0) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Extend(count));
  arrow::internal::CopyBitmap(bits, offset, count, bytes_.mutable_data(), length_);
  length_ += count;
  return Status::OK();
}

Status BitSink::AppendRun(bool value, int64_t count) {
  if (count == 0) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Extend(count));
  if (value) arrow::bit_util::SetBitsTo(bytes_.mutable_data(), length_, count, true);
  length_ += count;
  return Status::OK();
}

Result<int64_t> BitSink::AppendAtMost(const uint16_t* levels, int64_t count,
                                      uint16_t limit) {
  GLAIVE_RETURN_NOT_OK(Extend(count));
  uint8_t* out = bytes_.mutable_data();
  int64_t i = 0;
  int64_t set = 0;
  for (; i < count && ((length_ + i) & 7) != 0; ++i) {
    bool valid = levels[i] <= limit;
    set += valid;
    if (valid) arrow::bit_util::SetBit(out, length_ + i);
  }
  for (; i + 8 <= count; i += 8) {
    uint32_t byte = 0;
    for (int b = 0; b < 8; ++b)
      byte |= static_cast<uint32_t>(levels[i + b] <= limit) << b;
    out[(length_ + i) >> 3] = static_cast<uint8_t>(byte);
    set += __builtin_popcount(byte);
  }
  for (; i < count; ++i) {
    bool valid = levels[i] <= limit;
    set += valid;
    if (valid) arrow::bit_util::SetBit(out, length_ + i);
  }
  length_ += count;
  return count - set;
}

std::shared_ptr<arrow::Buffer> BitSink::Finish() {
  length_ = 0;
  return bytes_.Finish();
}

// ---- ValiditySink
// ------------------------------------------------------------------------------

Status ValiditySink::Materialise() {
  if (materialised_) return Status::OK();
  materialised_ = true;
  return bits_.AppendRun(true, length_);
}

Status ValiditySink::AppendValid(int64_t count) {
  if (materialised_) GLAIVE_RETURN_NOT_OK(bits_.AppendRun(true, count));
  length_ += count;
  return Status::OK();
}

Status ValiditySink::AppendNulls(int64_t count) {
  if (count == 0) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Materialise());
  GLAIVE_RETURN_NOT_OK(bits_.AppendRun(false, count));
  length_ += count;
  null_count_ += count;
  return Status::OK();
}

Status ValiditySink::AppendBitmap(const uint8_t* bits, int64_t offset, int64_t count) {
  int64_t nulls = count - arrow::internal::CountSetBits(bits, offset, count);
  if (nulls == 0) return AppendValid(count);
  GLAIVE_RETURN_NOT_OK(Materialise());
  GLAIVE_RETURN_NOT_OK(bits_.Append(bits, offset, count));
  length_ += count;
  null_count_ += nulls;
  return Status::OK();
}

Status ValiditySink::AppendLevels(const uint16_t* levels, int64_t count, uint16_t limit) {
  if (!materialised_) {
    bool any = false;
    for (int64_t i = 0; i < count; ++i) any |= levels[i] > limit;
    if (!any) return AppendValid(count);
    GLAIVE_RETURN_NOT_OK(Materialise());
  }
  GLAIVE_ASSIGN_OR_RETURN(int64_t nulls, bits_.AppendAtMost(levels, count, limit));
  length_ += count;
  null_count_ += nulls;
  return Status::OK();
}

bool ValiditySink::IsValid(int64_t slot) const {
  return !materialised_ || arrow::bit_util::GetBit(bits_.data(), slot);
}

std::shared_ptr<arrow::Buffer> ValiditySink::Finish() {
  std::shared_ptr<arrow::Buffer> out;
  if (materialised_ && null_count_ > 0) out = bits_.Finish();
  *this = ValiditySink();
  return out;
}

// ---- ValueShape
// --------------------------------------------------------------------------------

Result<ValueShape> ValueShape::Of(const std::shared_ptr<arrow::DataType>& type) {
  ValueShape out;
  out.type = type;
  switch (type->id()) {
    case arrow::Type::NA:
      out.kind = Kind::kNull;
      return out;
    case arrow::Type::BOOL:
      out.kind = Kind::kBits;
      return out;
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      out.kind = Kind::kVariable;
      return out;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      out.kind = Kind::kVariable;
      out.wide_offsets = true;
      return out;
    case arrow::Type::FIXED_SIZE_LIST: {
      out.kind = Kind::kFixedSizeList;
      out.list_size = static_cast<const arrow::FixedSizeListType&>(*type).list_size();
      if (out.list_size < 1) return NotSupported("type ", type->ToString());
      GLAIVE_ASSIGN_OR_RETURN(auto child, Of(type->field(0)->type()));
      out.children.push_back(std::move(child));
      return out;
    }
    case arrow::Type::STRUCT:
      out.kind = Kind::kStruct;
      for (const auto& field : type->fields()) {
        GLAIVE_ASSIGN_OR_RETURN(auto child, Of(field->type()));
        out.children.push_back(std::move(child));
      }
      return out;
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryType&>(*type);
      out.kind = Kind::kDictionary;
      out.byte_width = dictionary.index_type()->byte_width();
      GLAIVE_ASSIGN_OR_RETURN(auto child, Of(dictionary.value_type()));
      out.children.push_back(std::move(child));
      return out;
    }
    default:
      break;
  }
  if (!arrow::is_fixed_width(type->id()) || type->byte_width() < 0) {
    return NotSupported("reading values of type ", type->ToString());
  }
  out.kind = Kind::kFixed;
  out.byte_width = type->byte_width();
  return out;
}

int64_t ValueShape::FixedBytes() const {
  switch (kind) {
    case Kind::kNull:
      return 0;
    case Kind::kBits:
      return 1;
    case Kind::kFixed:
    case Kind::kDictionary:
      return byte_width;
    case Kind::kVariable:
      return -1;
    case Kind::kFixedSizeList: {
      int64_t child = children[0].FixedBytes();
      if (children[0].kind == Kind::kBits) return (list_size + 7) / 8;
      return child < 0 ? -1 : CheckedMultiply(child, list_size);
    }
    case Kind::kStruct: {
      int64_t sum = 0;
      for (const ValueShape& child : children) {
        int64_t bytes = child.FixedBytes();
        if (bytes < 0) return -1;
        sum += bytes;
      }
      return sum;
    }
  }
  return -1;
}

ValueShape ValueShape::Fixed(int64_t byte_width) {
  ValueShape out;
  out.kind = Kind::kFixed;
  out.byte_width = byte_width;
  return out;
}

// ---- ValueSink
// ---------------------------------------------------------------------------------

ValueSink::ValueSink(const ValueShape& shape) : shape_(&shape) {
  if (shape.kind == Kind::kDictionary) return;
  children_.reserve(shape.children.size());
  for (const ValueShape& child : shape.children) children_.emplace_back(child);
}

Status ValueSink::StartOffsets() {
  return offsets_.size() > 0 ? Status::OK()
                             : offsets_.AppendZeros(shape_->wide_offsets ? 8 : 4);
}

Status ValueSink::ReserveValues(int64_t count) {
  switch (shape_->kind) {
    case Kind::kFixed:
    case Kind::kDictionary: {
      int64_t bytes = CheckedMultiply(count, shape_->byte_width);
      if (bytes < 0) return ResourceExhausted("too many rows for one batch: ", count);
      return data_.Reserve(std::min(bytes, kMostReservedBytes));
    }
    case Kind::kVariable: {
      int64_t bytes = CheckedMultiply(count + 1, shape_->wide_offsets ? 8 : 4);
      if (bytes < 0) return ResourceExhausted("too many rows for one batch: ", count);
      return offsets_.Reserve(std::min(bytes, kMostReservedBytes));
    }
    case Kind::kFixedSizeList: {
      int64_t items = CheckedMultiply(count, shape_->list_size);
      if (items < 0) return ResourceExhausted("too many rows for one batch: ", count);
      return children_[0].ReserveValues(items);
    }
    default:
      for (ValueSink& child : children_) GLAIVE_RETURN_NOT_OK(child.ReserveValues(count));
      return Status::OK();
  }
}

namespace {

template <typename In, typename Out>
void Rebase(const uint8_t* in, int64_t count, In first, Out base, uint8_t* out) {
  for (int64_t i = 1; i <= count; ++i) {
    Out value =
        static_cast<Out>(LoadUnaligned<In>(in + i * static_cast<int64_t>(sizeof(In))) -
                         first) +
        base;
    std::memcpy(out + (i - 1) * static_cast<int64_t>(sizeof(Out)), &value, sizeof(Out));
  }
}

Status TooLong() {
  return ResourceExhausted(
      "more than 2 GiB of text or binary data in one batch: read fewer rows at a time");
}

}  // namespace

template <typename Offset>
Status ValueSink::AppendVariable(const uint8_t* offsets, int64_t count,
                                 const uint8_t* bytes) {
  if (count == 0) return Status::OK();
  auto first = LoadUnaligned<Offset>(offsets);
  auto last =
      LoadUnaligned<Offset>(offsets + count * static_cast<int64_t>(sizeof(Offset)));
  auto total = static_cast<int64_t>(last - first);
  int64_t base = data_.size();
  GLAIVE_RETURN_NOT_OK(StartOffsets());
  if (shape_->wide_offsets) {
    GLAIVE_RETURN_NOT_OK(offsets_.Reserve(count * 8));
    Rebase<Offset, int64_t>(offsets, count, first, base, offsets_.tail());
    offsets_.Advance(count * 8);
  } else {
    if (base + total > std::numeric_limits<int32_t>::max()) return TooLong();
    GLAIVE_RETURN_NOT_OK(offsets_.Reserve(count * 4));
    Rebase<Offset, int32_t>(offsets, count, first, static_cast<int32_t>(base),
                            offsets_.tail());
    offsets_.Advance(count * 4);
  }
  length_ += count;
  return data_.Append(bytes + first, total);
}

template Status ValueSink::AppendVariable<uint32_t>(const uint8_t*, int64_t,
                                                    const uint8_t*);
template Status ValueSink::AppendVariable<uint64_t>(const uint8_t*, int64_t,
                                                    const uint8_t*);

Status ValueSink::AppendOne(const uint8_t* bytes, int64_t size) {
  GLAIVE_RETURN_NOT_OK(data_.Append(bytes, size));
  int64_t end = data_.size();
  return AppendEnds(&end, 1);
}

Status ValueSink::AppendEnds(const int64_t* ends, int64_t count) {
  if (count == 0) return Status::OK();
  GLAIVE_RETURN_NOT_OK(StartOffsets());
  if (shape_->wide_offsets) {
    GLAIVE_RETURN_NOT_OK(
        offsets_.Append(reinterpret_cast<const uint8_t*>(ends), count * 8));
  } else {
    if (ends[count - 1] > std::numeric_limits<int32_t>::max()) return TooLong();
    GLAIVE_RETURN_NOT_OK(offsets_.Reserve(count * 4));
    auto* out = reinterpret_cast<int32_t*>(offsets_.tail());
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(ends[i]);
    offsets_.Advance(count * 4);
  }
  length_ += count;
  return Status::OK();
}

Status ValueSink::AppendEmpty(int64_t count) {
  if (count == 0) return Status::OK();
  switch (shape_->kind) {
    case Kind::kNull:
      break;
    case Kind::kBits:
      GLAIVE_RETURN_NOT_OK(bits_.AppendRun(false, count));
      break;
    case Kind::kDictionary:
    case Kind::kFixed: {
      int64_t bytes = CheckedMultiply(count, shape_->byte_width);
      if (bytes < 0) return ResourceExhausted("too many rows for one batch: ", count);
      GLAIVE_RETURN_NOT_OK(data_.AppendZeros(bytes));
      break;
    }
    case Kind::kVariable: {
      GLAIVE_RETURN_NOT_OK(StartOffsets());
      int64_t end = data_.size();
      int64_t width = shape_->wide_offsets ? 8 : 4;
      int64_t bytes = CheckedMultiply(count, width);
      if (bytes < 0) return ResourceExhausted("too many rows for one batch: ", count);
      GLAIVE_RETURN_NOT_OK(offsets_.Reserve(bytes));
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(offsets_.tail() + i * width, &end, static_cast<size_t>(width));
      }
      offsets_.Advance(bytes);
      break;
    }
    case Kind::kFixedSizeList: {
      int64_t items = CheckedMultiply(count, shape_->list_size);
      if (items < 0) return ResourceExhausted("too many rows for one batch: ", count);
      GLAIVE_RETURN_NOT_OK(children_[0].AppendEmpty(items));
      GLAIVE_RETURN_NOT_OK(children_[0].validity().AppendValid(items));
      break;
    }
    case Kind::kStruct:
      for (ValueSink& child : children_) {
        GLAIVE_RETURN_NOT_OK(child.AppendEmpty(count));
        GLAIVE_RETURN_NOT_OK(child.validity().AppendValid(count));
      }
      break;
  }
  length_ += count;
  return Status::OK();
}

Status ValueSink::SetDictionary(const std::shared_ptr<arrow::Array>& dictionary) {
  if (dictionary_ == dictionary) return Status::OK();
  if (dictionary_ && length_ > piece_start_) {
    auto data = arrow::ArrayData::Make(shape_->type, length_ - piece_start_,
                                       {nullptr, data_.Finish()}, 0);
    data->dictionary = dictionary_->data();
    pieces_.push_back(arrow::MakeArray(data));
    piece_start_ = length_;
  }
  dictionary_ = dictionary;
  return Status::OK();
}

void ValueSink::Clear() {
  length_ = 0;
  data_.Clear();
  offsets_.Clear();
  bits_ = BitSink();
  validity_ = ValiditySink();
  must_be_null_.clear();
  for (ValueSink& child : children_) child.Clear();
  dictionary_.reset();
  pieces_.clear();
  piece_start_ = 0;
}

Result<std::shared_ptr<arrow::ArrayData>> ValueSink::FinishDictionary(
    std::shared_ptr<arrow::Buffer> validity, int64_t null_count) {
  const auto& type = static_cast<const arrow::DictionaryType&>(*shape_->type);
  if (!dictionary_ || dictionary_->length() == 0) {
    // Only nulls. Slots that merely lie under a null parent count as valid here and need
    // something to point at.
    const int64_t items = length_ > null_count ? 1 : 0;
    GLAIVE_ASSIGN_OR_RETURN(dictionary_,
                            arrow::MakeArrayOfNull(type.value_type(), items));
  }
  auto last = arrow::ArrayData::Make(shape_->type, length_ - piece_start_,
                                     {nullptr, data_.Finish()}, 0);
  last->dictionary = dictionary_->data();
  if (pieces_.empty()) {
    last->buffers[0] = std::move(validity);
    last->null_count = null_count;
    return last;
  }
  pieces_.push_back(arrow::MakeArray(last));
  // Different dictionaries are unified, indices rewritten.
  GLAIVE_ASSIGN_OR_RETURN(auto joined, arrow::Concatenate(pieces_));
  auto out = joined->data()->Copy();
  out->buffers[0] = std::move(validity);
  out->null_count = null_count;
  return out;
}

Result<std::shared_ptr<arrow::ArrayData>> ValueSink::Finish(
    std::shared_ptr<arrow::Buffer> validity, int64_t null_count) {
  const auto& type = shape_->type;
  int64_t length = length_;
  switch (shape_->kind) {
    case Kind::kNull:
      return arrow::ArrayData::Make(type, length, {nullptr}, length);
    case Kind::kBits:
      return arrow::ArrayData::Make(type, length, {std::move(validity), bits_.Finish()},
                                    null_count);
    case Kind::kFixed:
      return arrow::ArrayData::Make(type, length, {std::move(validity), data_.Finish()},
                                    null_count);
    case Kind::kVariable:
      GLAIVE_RETURN_NOT_OK(StartOffsets());
      return arrow::ArrayData::Make(
          type, length, {std::move(validity), offsets_.Finish(), data_.Finish()},
          null_count);
    case Kind::kDictionary:
      return FinishDictionary(std::move(validity), null_count);
    case Kind::kFixedSizeList:
    case Kind::kStruct: {
      std::vector<std::shared_ptr<arrow::ArrayData>> children;
      for (ValueSink& child : children_) {
        int64_t child_nulls = child.validity().null_count();
        auto child_validity = child.validity().Finish();
        GLAIVE_ASSIGN_OR_RETURN(auto data,
                                child.Finish(std::move(child_validity), child_nulls));
        children.push_back(std::move(data));
      }
      return arrow::ArrayData::Make(type, length, {std::move(validity)},
                                    std::move(children), null_count);
    }
  }
  return InternalError("unknown value shape");
}

}  // namespace glaive::encoding
