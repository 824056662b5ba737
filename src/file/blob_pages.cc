#include "file/blob_pages.h"

#include "encoding/levels_build.h"
#include "encoding/miniblock_encode.h"
#include "encoding/out_bytes.h"
#include "encoding/values.h"

namespace glaive::file {

Result<std::vector<encoding::EncodedPage>> WriteBlobPages(
    const encoding::PageColumn& column,
    const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays, PageSink* sink) {
  const encoding::Levels levels = encoding::BuildLevels(arrays, column.path);
  GLAIVE_ASSIGN_OR_RETURN(auto values, encoding::GatherVariable(levels));
  // One (position, size) per row. Without bytes, a position other than 0 holds the level.
  encoding::OutBytes descriptors(static_cast<size_t>(values.count) * 16);
  for (int64_t i = 0; i < values.count; ++i) {
    const uint64_t def = levels.def.empty() ? 0 : levels.def[static_cast<size_t>(i)];
    const std::string_view value = values.value(i);
    uint64_t position = def << 16;
    if (def == 0 && !value.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(
          const BufferLocation at,
          sink->Write(
              std::span(reinterpret_cast<const uint8_t*>(value.data()), value.size())));
      position = static_cast<uint64_t>(at.offset);
    }
    descriptors.Put(position);
    descriptors.Put(static_cast<uint64_t>(def == 0 ? value.size() : 0));
  }
  encoding::FixedValues rows;
  rows.bits = 128;
  rows.count = values.count;
  rows.pieces.push_back(descriptors.Finish());
  GLAIVE_ASSIGN_OR_RETURN(auto encoded, encoding::EncodeMiniBlockPacked(
                                            rows, {64, 64}, encoding::EncodeOptions{}));
  encoding::Levels plain;
  plain.layers = {lance::encodings21::REPDEF_ALL_VALID_ITEM};
  plain.num_levels = plain.num_visible = plain.num_rows = values.count;
  auto page = encoding::AssembleMiniBlock(plain, encoded, nullptr, column.options);
  if (!page)
    return InternalError("a page of blob positions does not fit a mini-block page");
  lance::encodings21::PageLayout layout;
  layout.mutable_blob_layout()->mutable_inner_layout()->Swap(&page->layout);
  for (auto layer : levels.layers) layout.mutable_blob_layout()->add_layers(layer);
  page->layout.Swap(&layout);
  std::vector<encoding::EncodedPage> out;
  out.push_back(std::move(*page));
  return out;
}

}  // namespace glaive::file
