// Blob pages of versions 2.1 and 2.2: descriptors of values that lie elsewhere in the
// file.
#include <optional>
#include <utility>

#include "file/page_reader.h"
#include "format/encodings21.pb.h"

namespace glaive::file {
namespace {

using encoding::LayerKind;
using encoding::LevelBatch;
using encoding::LevelRules;
using encoding::PathLayer;
using encoding::ValueRange;
using encoding::ValueSink;

// The column's shape is a struct of position and size; a missing value becomes a null
// row.
class BlobReader final : public PageReader {
 public:
  BlobReader(LevelRules rules, std::unique_ptr<PageReader> inner)
      : PageReader(std::move(rules)), inner_(std::move(inner)) {}

  Status Read(std::span<const ValueRange> rows, LevelBatch* levels,
              ValueSink* values) const override;
  int64_t memory_bytes() const override { return 256 + inner_->memory_bytes(); }

 private:
  std::unique_ptr<PageReader> inner_;
};

Status BlobReader::Read(std::span<const ValueRange> rows, LevelBatch* levels,
                        ValueSink* values) const {
  LevelBatch inner_levels;
  const int64_t first = values->children()[0].length();
  GLAIVE_RETURN_NOT_OK(inner_->Read(rows, &inner_levels, values));
  const int64_t count = values->children()[0].length() - first;
  levels->num_entries = count;
  levels->has_def = rules().max_def() > 0;
  if (!levels->has_def) return Status::OK();
  auto* positions =
      reinterpret_cast<uint64_t*>(values->children()[0].data().mutable_data()) + first;
  const auto* sizes =
      reinterpret_cast<const uint64_t*>(values->children()[1].data().data()) + first;
  GLAIVE_RETURN_NOT_OK(levels->def.Reserve(2 * count));
  auto* def = reinterpret_cast<uint16_t*>(levels->def.tail());
  for (int64_t i = 0; i < count; ++i) {
    // Without bytes, the position holds the levels of the entry.
    const bool missing = sizes[i] == 0 && positions[i] != 0;
    def[i] = missing ? static_cast<uint16_t>(positions[i] >> 16) : 0;
    if (missing) positions[i] = 0;
  }
  levels->def.Advance(2 * count);
  return Status::OK();
}

}  // namespace

Result<std::unique_ptr<PageReader>> MakeBlobReader(
    const PageContext& context, const lance::encodings21::BlobLayout& layout) {
  GLAIVE_ASSIGN_OR_RETURN(auto rules,
                          LevelRules::Make(LayerNumbers(layout), context.path));
  if (rules.max_rep() > 0) return NotSupported("lists of blobs");
  const auto& shape = *context.shape;
  if (shape.kind != encoding::ValueShape::Kind::kStruct || shape.children.size() != 2 ||
      shape.FixedBytes() != 16) {
    return Corruption("a blob page in a column that holds no blobs");
  }
  if (layout.inner_layout().has_blob_layout())
    return Corruption("blob pages within blob pages");
  const PathLayer leaf;
  PageContext inner = context;
  inner.path = std::span(&leaf, 1);
  GLAIVE_ASSIGN_OR_RETURN(auto reader, MakeLayoutReader(inner, layout.inner_layout()));
  std::unique_ptr<PageReader> out =
      std::make_unique<BlobReader>(std::move(rules), std::move(reader));
  return out;
}

}  // namespace glaive::file
