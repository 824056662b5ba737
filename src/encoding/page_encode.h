// One page of a column in the structural layouts of versions 2.1 and 2.2.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <arrow/buffer.h>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/levels_build.h"
#include "encoding/miniblock_encode.h"
#include "encoding/values.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

// A buffer of a page, as pieces to write one after the other.
using PageBuffer = std::vector<std::shared_ptr<arrow::Buffer>>;

struct EncodedPage {
  std::vector<PageBuffer> buffers;
  int64_t num_rows = 0;  // Page.length
  lance::encodings21::PageLayout layout;
};

struct PageColumn {
  std::vector<PathNode> path;  // outer-most first, ends with kLeaf
  // Flags per node (see BuildLevels), or empty.
  std::vector<uint8_t> always;
  EncodeOptions options;
  // The leaf is a struct whose members share this column.
  bool packed = false;
  // Options of the members of a packed struct, in order.
  std::vector<EncodeOptions> member_options;
};

// Encodes consecutive pieces of one column (see BuildLevels) as one page, or as several
// when their levels would not fit the chunks of one. There must be at least one row.
Result<std::vector<EncodedPage>> EncodePages(
    const PageColumn& column,
    const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays);

// Dictionary of a mini-block page.
struct PageDictionary {
  std::shared_ptr<arrow::Buffer> bytes;
  lance::encodings21::CompressiveEncoding encoding;
  int64_t num_items = 0;
};

// The assemblers below return nothing when the page does not fit their layout's limits.
std::optional<EncodedPage> AssembleMiniBlock(const Levels& levels,
                                             const MiniBlockValues& values,
                                             const PageDictionary* dictionary,
                                             const EncodeOptions& options);
Result<EncodedPage> AssembleFullZip(const Levels& levels, const FixedValues& values);
Result<EncodedPage> AssembleFullZip(const Levels& levels, const FixedListValues& values);
Result<EncodedPage> AssembleFullZip(
    const Levels& levels, const VariableValues& values,
    const lance::encodings21::CompressiveEncoding& encoding);
// A page without any valid value.
EncodedPage AssembleAllNull(const Levels& levels, const EncodeOptions& options);
// A page whose valid values all equal `scalar`; `variable` tells how to store it.
EncodedPage AssembleConstant(const Levels& levels, std::span<const uint8_t> scalar,
                             const VariableValues* variable);

}  // namespace glaive::encoding
