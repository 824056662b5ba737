// Undoes general compression (LZ4 block, Zstandard) of one framed unit.
//
// Layout: docs/format/codecs.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "encoding/value_sink.h"

namespace glaive::encoding {

enum class Compression : uint8_t { kNone, kLz4, kZstd };

// Appends the contents of `unit` to `out`; an empty unit is empty. The declared size is
// believed only as far as the algorithm can reach it from that many bytes. Thread-safe.
Status Decompress(Compression scheme, Bytes unit, ByteSink* out);

}  // namespace glaive::encoding
