// Decodes opaque blocks of a known number of values: levels of a chunk, dictionaries.
//
// Layout: docs/format/codecs.md.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "encoding/decompress.h"
#include "encoding/value_sink.h"

namespace lance::encodings21 {
class BufferCompression;
class CompressiveEncoding;
}  // namespace lance::encodings21

namespace glaive::encoding {

// Appends `count` integers of `width` bytes (1, 2, 4, 8; Flat takes any width). A
// run-length block may hold more than `count` values when `allow_more`; all of them are
// appended then.
Status DecodeFixedBlock(const lance::encodings21::CompressiveEncoding& encoding,
                        Bytes block, int64_t count, int64_t width, bool allow_more,
                        ByteSink* out);

// Appends `count` values of any leaf shape but dictionaries.
Status DecodeBlock(const lance::encodings21::CompressiveEncoding& encoding, Bytes block,
                   int64_t count, ValueSink* out);

Result<Compression> SchemeOf(const lance::encodings21::BufferCompression& compression);

// Name of an encoding's kind, for messages.
const char* EncodingName(const lance::encodings21::CompressiveEncoding& encoding);

}  // namespace glaive::encoding
