// Assembles constant pages: all null, or one value for all rows.
#include <cstring>

#include "encoding/block_encode.h"
#include "encoding/out_bytes.h"
#include "encoding/page_encode.h"

namespace glaive::encoding {
namespace {

constexpr size_t kMaxInlineBytes = 32;

std::shared_ptr<arrow::Buffer> RawLevels(const std::vector<uint16_t>& levels) {
  OutBytes out(levels.size() * 2);
  out.Append(levels.data(), levels.size() * 2);
  return out.Finish();
}

}  // namespace

EncodedPage AssembleAllNull(const Levels& levels, const EncodeOptions& options) {
  EncodedPage page;
  page.num_rows = levels.num_rows;
  auto* layout = page.layout.mutable_constant_layout();
  for (auto layer : levels.layers) layout->add_layers(layer);
  if (levels.layers.size() == 1) return page;
  const auto add = [&](const std::vector<uint16_t>& all,
                       lance::encodings21::CompressiveEncoding* encoding) {
    const LevelCodec codec = LevelCodec::Choose(all, true);
    OutBytes bytes;
    codec.Append(all, &bytes);
    codec.Describe(encoding);
    page.buffers.push_back({bytes.Finish()});
  };
  if (!options.v2_2) {
    page.buffers.push_back({RawLevels(levels.rep)});
    page.buffers.push_back({RawLevels(levels.def)});
    return page;
  }
  if (levels.has_rep()) {
    add(levels.rep, layout->mutable_rep_compression());
    layout->set_num_rep_values(levels.rep.size());
  } else {
    page.buffers.push_back({});
  }
  if (levels.has_def()) {
    add(levels.def, layout->mutable_def_compression());
    layout->set_num_def_values(levels.def.size());
  } else {
    page.buffers.push_back({});
  }
  return page;
}

EncodedPage AssembleConstant(const Levels& levels, std::span<const uint8_t> scalar,
                             const VariableValues* variable) {
  EncodedPage page;
  page.num_rows = levels.num_rows;
  auto* layout = page.layout.mutable_constant_layout();
  for (auto layer : levels.layers) layout->add_layers(layer);
  if (variable == nullptr && scalar.size() <= kMaxInlineBytes) {
    layout->set_inline_value(scalar.data(), scalar.size());
  } else {
    OutBytes bytes;
    if (variable == nullptr) {
      bytes.Put(uint32_t{1});
      bytes.Put(static_cast<uint32_t>(scalar.size()));
    } else {
      const size_t width = static_cast<size_t>(variable->offset_bytes());
      const uint64_t end = scalar.size();
      const uint64_t zero = 0;
      bytes.Put(uint32_t{2});
      bytes.Put(static_cast<uint32_t>(2 * width));
      bytes.Put(static_cast<uint32_t>(scalar.size()));
      bytes.Append(&zero, width);
      bytes.Append(&end, width);
    }
    bytes.Append(scalar);
    page.buffers.push_back({bytes.Finish()});
  }
  if (levels.has_rep() || levels.has_def()) {
    page.buffers.push_back({RawLevels(levels.rep)});
    page.buffers.push_back({RawLevels(levels.def)});
  }
  return page;
}

}  // namespace glaive::encoding
