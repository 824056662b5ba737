// Constant pages: one scalar for all values, or nothing but nulls.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <arrow/buffer.h>

#include "encoding/block_decode.h"
#include "file/page_reader.h"
#include "file/stored_levels.h"
#include "format/encodings21.pb.h"

namespace glaive::file {
namespace {

using encoding::Bytes;
using encoding::ByteSink;
using encoding::LayerKind;
using encoding::LevelBatch;
using encoding::LevelRules;
using encoding::LoadUnaligned;
using encoding::ValueRange;
using encoding::ValueShape;
using encoding::ValueSink;
using lance::encodings21::CompressiveEncoding;
using lance::encodings21::ConstantLayout;
using Kind = ValueShape::Kind;

class ConstantReader final : public PageReader {
 public:
  ConstantReader(LevelRules rules, const PageContext& context)
      : PageReader(std::move(rules)), num_rows_(context.num_rows) {}

  Status Init(const PageContext& context, const ConstantLayout& layout);
  Status Read(std::span<const ValueRange> rows, LevelBatch* levels,
              ValueSink* values) const override;
  int64_t memory_bytes() const override {
    return 512 + static_cast<int64_t>(scalar_.size()) + levels_.memory_bytes();
  }

 private:
  Status InitScalar(const ValueShape& shape, Bytes stored);
  Status AppendScalar(int64_t count, ValueSink* values) const;

  int64_t num_rows_;
  bool all_null_ = false;  // neither scalar nor levels: every row is null
  bool has_scalar_ = false;
  std::string scalar_;
  StoredLevels levels_;
};

// Strings are stored as an Arrow array of length one, buffer by buffer.
Result<Bytes> ScalarBytes(const ValueShape& shape, Bytes stored) {
  if (stored.size() < 4) return Corruption("a scalar of ", stored.size(), " bytes");
  const uint64_t count = LoadUnaligned<uint32_t>(stored.data());
  if (count < 1 || count > 2 || stored.size() < 4 + 4 * count) {
    return Corruption("a scalar of ", count, " buffers");
  }
  Bytes rest = stored.subspan(4 + 4 * count);
  std::vector<Bytes> buffers;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = LoadUnaligned<uint32_t>(stored.data() + 4 + 4 * i);
    if (length > rest.size()) return Corruption("a scalar is cut off");
    buffers.push_back(rest.first(length));
    rest = rest.subspan(length);
  }
  if (count == 1) {
    if (shape.kind == Kind::kVariable) return Corruption("a text scalar without offsets");
    return buffers[0];
  }
  if (shape.kind != Kind::kVariable)
    return Corruption("a fixed-width scalar with offsets");
  uint64_t start = 0;
  uint64_t end = 0;
  if (buffers[0].size() == 8) {
    start = LoadUnaligned<uint32_t>(buffers[0].data());
    end = LoadUnaligned<uint32_t>(buffers[0].data() + 4);
  } else if (buffers[0].size() == 16) {
    start = LoadUnaligned<uint64_t>(buffers[0].data());
    end = LoadUnaligned<uint64_t>(buffers[0].data() + 8);
  } else {
    return Corruption("a scalar with offsets of ", buffers[0].size(), " bytes");
  }
  if (start > end || end > buffers[1].size()) {
    return Corruption("a scalar from ", start, " to ", end, " of ", buffers[1].size(),
                      " bytes");
  }
  return buffers[1].subspan(start, end - start);
}

Status ConstantReader::InitScalar(const ValueShape& shape, Bytes value) {
  bool fits = (shape.kind == Kind::kFixed &&
               static_cast<int64_t>(value.size()) == shape.byte_width) ||
              (shape.kind == Kind::kBits && value.size() == 1) ||
              shape.kind == Kind::kVariable;
  if (!fits) {
    return Corruption("a scalar of ", value.size(),
                      " bytes does not fit the column's type");
  }
  scalar_.assign(reinterpret_cast<const char*>(value.data()), value.size());
  has_scalar_ = true;
  return Status::OK();
}

Result<ByteSink> ReadLevels(const PageContext& context, const io::ByteRange& range,
                            const CompressiveEncoding* encoding, uint64_t count,
                            uint64_t most) {
  ByteSink out;
  GLAIVE_ASSIGN_OR_RETURN(auto buffer, context.object->Read(range));
  if (!encoding) {
    if (range.length % 2 != 0) return Corruption("levels of ", range.length, " bytes");
    GLAIVE_RETURN_NOT_OK(out.AppendBuffer(buffer));
    return out;
  }
  if (count > most) return Corruption("a page claims ", count, " levels");
  GLAIVE_RETURN_NOT_OK(encoding::DecodeFixedBlock(
      *encoding, Bytes(buffer->data(), static_cast<size_t>(buffer->size())),
      static_cast<int64_t>(count), 2, false, &out));
  return out;
}

Status ConstantReader::Init(const PageContext& context, const ConstantLayout& layout) {
  const ValueShape& shape = *context.shape;
  std::span<const io::ByteRange> buffers = context.buffers;
  if (layout.has_inline_value()) {
    const std::string& value = layout.inline_value();
    GLAIVE_RETURN_NOT_OK(InitScalar(
        shape, Bytes(reinterpret_cast<const uint8_t*>(value.data()), value.size())));
  } else if (buffers.size() % 2 == 1) {
    GLAIVE_ASSIGN_OR_RETURN(auto stored, context.object->Read(buffers[0]));
    GLAIVE_ASSIGN_OR_RETURN(
        auto value,
        ScalarBytes(shape, Bytes(stored->data(), static_cast<size_t>(stored->size()))));
    GLAIVE_RETURN_NOT_OK(InitScalar(shape, value));
    buffers = buffers.subspan(1);
  }
  if (buffers.empty()) {
    if (rules().max_rep() > 0)
      return Corruption("a page of a list column without levels");
    all_null_ = !has_scalar_;
    GLAIVE_ASSIGN_OR_RETURN(levels_,
                            StoredLevels::Make(rules(), {}, {}, false, false, num_rows_));
    return Status::OK();
  }
  if (buffers.size() != 2) {
    return Corruption("a constant page with ", context.buffers.size(), " buffers");
  }
  // No page has more entries than this: an entry takes at least a 1/128 of a byte packed.
  const bool has_rep = buffers[0].length > 0 || layout.num_rep_values() > 0;
  const bool has_def = buffers[1].length > 0 || layout.num_def_values() > 0;
  const uint64_t most = static_cast<uint64_t>(context.max_decoded_bytes) / 2;
  ByteSink rep;
  ByteSink def;
  if (has_rep) {
    GLAIVE_ASSIGN_OR_RETURN(
        rep,
        ReadLevels(context, buffers[0],
                   layout.has_rep_compression() ? &layout.rep_compression() : nullptr,
                   layout.num_rep_values(), most));
  }
  if (has_def) {
    GLAIVE_ASSIGN_OR_RETURN(
        def,
        ReadLevels(context, buffers[1],
                   layout.has_def_compression() ? &layout.def_compression() : nullptr,
                   layout.num_def_values(), most));
  }
  GLAIVE_ASSIGN_OR_RETURN(
      levels_, StoredLevels::Make(rules(), std::move(rep), std::move(def), has_rep,
                                  has_def, num_rows_));
  return Status::OK();
}

Status ConstantReader::AppendScalar(int64_t count, ValueSink* values) const {
  const auto size = static_cast<int64_t>(scalar_.size());
  const auto* scalar = reinterpret_cast<const uint8_t*>(scalar_.data());
  switch (values->shape().kind) {
    case Kind::kBits:
      GLAIVE_RETURN_NOT_OK(values->bits().AppendRun((scalar[0] & 1) != 0, count));
      values->AddLength(count);
      return Status::OK();
    case Kind::kFixed: {
      const int64_t bytes = encoding::CheckedMultiply(count, size);
      if (bytes < 0) return ResourceExhausted("too many rows for one batch: ", count);
      GLAIVE_RETURN_NOT_OK(values->data().Reserve(bytes));
      uint8_t* to = values->data().tail();
      if (size == 4) {
        std::fill_n(reinterpret_cast<uint32_t*>(to), count,
                    LoadUnaligned<uint32_t>(scalar));
      } else if (size == 8) {
        std::fill_n(reinterpret_cast<uint64_t*>(to), count,
                    LoadUnaligned<uint64_t>(scalar));
      } else {
        for (int64_t i = 0; i < count; ++i) {
          std::memcpy(to + i * size, scalar, static_cast<size_t>(size));
        }
      }
      values->data().Advance(bytes);
      values->AddLength(count);
      return Status::OK();
    }
    default: {
      const int64_t bytes = encoding::CheckedMultiply(count, std::max<int64_t>(size, 8));
      if (bytes < 0) return ResourceExhausted("too many rows for one batch: ", count);
      GLAIVE_RETURN_NOT_OK(values->data().Reserve(count * size));
      for (int64_t i = 0; i < count; ++i) {
        GLAIVE_RETURN_NOT_OK(values->AppendOne(scalar, size));
      }
      return Status::OK();
    }
  }
}

Status ConstantReader::Read(std::span<const ValueRange> rows, LevelBatch* levels,
                            ValueSink* values) const {
  GLAIVE_ASSIGN_OR_RETURN(int64_t visible, levels_.Append(rules(), rows, levels));
  if (has_scalar_) return AppendScalar(visible, values);
  if (all_null_ && rules().max_def() > 0) {
    levels->has_def = true;
    GLAIVE_RETURN_NOT_OK(levels->def.Reserve(2 * levels->num_entries));
    std::fill_n(reinterpret_cast<uint16_t*>(levels->def.tail()), levels->num_entries,
                uint16_t{1});
    levels->def.Advance(2 * levels->num_entries);
  }
  return values->AppendEmpty(visible);
}

}  // namespace

Result<std::unique_ptr<PageReader>> MakeConstantReader(const PageContext& context,
                                                       const ConstantLayout& layout) {
  std::vector<int> layers = LayerNumbers(layout);
  // An empty struct within structs has one layer whatever its depth, and no nulls at all.
  const bool empty_struct =
      context.shape->kind == Kind::kStruct && context.shape->children.empty();
  if (empty_struct && layers.size() == 1) layers.clear();
  GLAIVE_ASSIGN_OR_RETURN(auto rules, LevelRules::Make(layers, context.path));
  auto reader = std::make_unique<ConstantReader>(std::move(rules), context);
  GLAIVE_RETURN_NOT_OK(reader->Init(context, layout));
  return reader;
}

}  // namespace glaive::file
