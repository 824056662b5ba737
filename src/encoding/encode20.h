// Page encodings of file version 2.0.
//
// Layout: docs/format/file.md, section "2.0 encodings".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/page_encode.h"
#include "format/encodings.pb.h"

namespace glaive::encoding {

struct EncodedArray20 {
  lance::encodings::ArrayEncoding encoding;
  std::vector<PageBuffer> buffers;
};

// Consecutive pieces of one leaf column as one page; any storable type but structs and
// lists.
Result<EncodedArray20> EncodeArray20(
    std::span<const std::shared_ptr<arrow::ArrayData>> arrays,
    const EncodeOptions& options);

// Structs of fixed-width members (see CheckPackable) as rows of bytes.
Result<EncodedArray20> EncodePacked20(
    std::span<const std::shared_ptr<arrow::ArrayData>> arrays);

// A page of list lengths, -1 for null lists.
EncodedArray20 EncodeLists20(std::span<const int64_t> lengths);

// A page of struct rows: only their number is stored.
EncodedArray20 EncodeStructs20();

// A page of blob positions and sizes.
EncodedArray20 EncodeBlobs20(std::span<const uint64_t> positions_and_sizes);

}  // namespace glaive::encoding
