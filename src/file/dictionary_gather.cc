#include "file/dictionary_gather.h"

#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>

namespace glaive::file {

using encoding::ValueShape;
using encoding::ValueSink;
using Kind = ValueShape::Kind;

namespace {

// Short values are copied in one step of this size, past their end.
constexpr int64_t kWordCopyBytes = 16;

}  // namespace

Result<DictionaryGather> DictionaryGather::Make(std::shared_ptr<arrow::ArrayData> items,
                                                const ValueShape& shape) {
  DictionaryGather out;
  out.shape_ = &shape;
  out.items_ = std::move(items);
  if (shape.kind == Kind::kDictionary) {
    out.array_ = arrow::MakeArray(out.items_);
  } else if (shape.kind == Kind::kFixed) {
    out.bytes_ = out.items_->buffers[1]->data();
  } else if (shape.kind == Kind::kVariable) {
    const auto& text = *out.items_->buffers[2];
    out.text_.resize(static_cast<size_t>(text.size()) + kWordCopyBytes);
    if (text.size() > 0) {
      std::memcpy(out.text_.data(), text.data(), static_cast<size_t>(text.size()));
    }
    out.offsets_.resize(static_cast<size_t>(out.items_->length) + 1);
    for (size_t i = 0; i < out.offsets_.size(); ++i) {
      const uint8_t* at = out.items_->buffers[1]->data();
      out.offsets_[i] = shape.wide_offsets ? encoding::LoadUnaligned<int64_t>(at + 8 * i)
                                           : encoding::LoadUnaligned<int32_t>(at + 4 * i);
    }
  } else {
    return NotSupported("dictionary pages for a column of this type");
  }
  return out;
}

int64_t DictionaryGather::memory_bytes() const {
  int64_t bytes = static_cast<int64_t>(offsets_.capacity() * 8 + text_.capacity());
  for (const auto& buffer : items_->buffers) bytes += buffer ? buffer->size() : 0;
  return bytes;
}

template <typename Index>
Status DictionaryGather::AppendKeys(const Index* indices, int64_t count,
                                    ValueSink* out) const {
  GLAIVE_RETURN_NOT_OK(out->SetDictionary(array_));
  const auto size = static_cast<uint64_t>(items_->length);
  const int64_t width = shape_->byte_width;
  const int64_t first = out->length();
  if (width < static_cast<int64_t>(sizeof(Index)) &&
      size > (uint64_t{1} << (8 * width - 1))) {
    return NotSupported("a dictionary of ", size, " values for keys of ", width,
                        " bytes");
  }
  GLAIVE_RETURN_NOT_OK(out->data().Reserve(count * width));
  uint8_t* to = out->data().tail();
  for (int64_t i = 0; i < count; ++i) {
    uint64_t index = indices[i];
    if (index >= size) [[unlikely]] {
      out->MarkMustBeNull(first + i);
      index = 0;
    }
    std::memcpy(to + i * width, &index, static_cast<size_t>(width));
  }
  out->data().Advance(count * width);
  out->AddLength(count);
  return Status::OK();
}

template <typename Index>
Status DictionaryGather::AppendFixed(const Index* indices, int64_t count,
                                     ValueSink* out) const {
  const auto size = static_cast<uint64_t>(items_->length);
  const int64_t width = shape_->byte_width;
  const int64_t first = out->length();
  GLAIVE_RETURN_NOT_OK(out->data().Reserve(count * width));
  uint8_t* to = out->data().tail();
  auto gather = [&](auto copy) {
    for (int64_t i = 0; i < count; ++i) {
      if (indices[i] >= size) [[unlikely]] {
        out->MarkMustBeNull(first + i);
        std::memset(to + i * width, 0, static_cast<size_t>(width));
        continue;
      }
      copy(to + i * width, bytes_ + static_cast<int64_t>(indices[i]) * width);
    }
  };
  if (width == 8) {
    gather([](uint8_t* a, const uint8_t* b) { std::memcpy(a, b, 8); });
  } else if (width == 16) {
    gather([](uint8_t* a, const uint8_t* b) { std::memcpy(a, b, 16); });
  } else {
    gather([width](uint8_t* a, const uint8_t* b) {
      std::memcpy(a, b, static_cast<size_t>(width));
    });
  }
  out->data().Advance(count * width);
  out->AddLength(count);
  return Status::OK();
}

template <typename Index>
Status DictionaryGather::AppendVariable(const Index* indices, int64_t count,
                                        ValueSink* out) const {
  const auto size = static_cast<uint64_t>(items_->length);
  const int64_t first = out->length();
  std::vector<int64_t> ends(static_cast<size_t>(count));
  int64_t end = out->data().size();
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] >= size) [[unlikely]] {
      out->MarkMustBeNull(first + i);
    } else {
      auto index = static_cast<size_t>(indices[i]);
      end += offsets_[index + 1] - offsets_[index];
    }
    ends[static_cast<size_t>(i)] = end;
  }
  GLAIVE_RETURN_NOT_OK(out->data().Reserve(end - out->data().size() + kWordCopyBytes));
  uint8_t* to = out->data().tail();
  const uint8_t* const begin = to;
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] >= size) [[unlikely]]
      continue;
    auto index = static_cast<size_t>(indices[i]);
    const int64_t length = offsets_[index + 1] - offsets_[index];
    const uint8_t* from = text_.data() + offsets_[index];
    if (length <= kWordCopyBytes) {
      std::memcpy(to, from, kWordCopyBytes);
    } else {
      std::memcpy(to, from, static_cast<size_t>(length));
    }
    to += length;
  }
  out->data().Advance(to - begin);
  return out->AppendEnds(ends.data(), count);
}

template <typename Index>
Status DictionaryGather::AppendTyped(const Index* indices, int64_t count,
                                     ValueSink* out) const {
  switch (shape_->kind) {
    case Kind::kDictionary:
      return AppendKeys(indices, count, out);
    case Kind::kFixed:
      return AppendFixed(indices, count, out);
    default:
      return AppendVariable(indices, count, out);
  }
}

Status DictionaryGather::Append(const uint8_t* indices, int64_t count, int64_t width,
                                ValueSink* out) const {
  switch (width) {
    case 1:
      return AppendTyped(indices, count, out);
    case 2:
      return AppendTyped(reinterpret_cast<const uint16_t*>(indices), count, out);
    case 4:
      return AppendTyped(reinterpret_cast<const uint32_t*>(indices), count, out);
    default:
      return AppendTyped(reinterpret_cast<const uint64_t*>(indices), count, out);
  }
}

}  // namespace glaive::file
