// Decodes single values of full-zip pages.
//
// Layout: docs/format/pages.md, section "Full-zip", and docs/format/codecs.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "encoding/decompress.h"
#include "encoding/fsst_decode.h"
#include "encoding/value_sink.h"

namespace lance::encodings21 {
class CompressiveEncoding;
}

namespace glaive::encoding {

// Values that all take the same number of bytes. Immutable, thread-safe.
class FixedRowCodec {
 public:
  // `shape` must outlive the codec.
  static Result<FixedRowCodec> Make(
      const lance::encodings21::CompressiveEncoding& encoding, const ValueShape& shape);

  int64_t row_bytes() const { return row_bytes_; }
  // Rows are the values themselves, back to back: a whole run can be borrowed.
  bool is_plain() const { return plain_; }
  // Appends `count` values that lie `stride` bytes apart.
  Status Append(const uint8_t* rows, int64_t stride, int64_t count, ValueSink* out) const;
  // is_plain() only: appends the rows in `buffer` without a copy where that is possible.
  Status AppendPlain(const std::shared_ptr<arrow::Buffer>& buffer, int64_t count,
                     ValueSink* out) const;

 private:
  struct ListLayer {
    int64_t items = 0;  // items of this layer per row
    bool has_validity = false;
  };

  std::vector<ListLayer> lists_;  // outer-most first
  std::vector<int64_t> tuple_;    // widths of the fields of a packed struct
  bool bits_ = false;             // one byte per boolean
  bool packed_bits_ = false;      // a bitmap per row of a boolean vector
  bool null_items_ = false;       // items have no bytes: all null
  int64_t value_bytes_ = 0;       // bytes of the items of a row, without validity
  int64_t row_bytes_ = 0;
  bool plain_ = false;
};

// Values of varying size. Immutable, thread-safe.
class VariableRowCodec {
 public:
  static Result<VariableRowCodec> Make(
      const lance::encodings21::CompressiveEncoding& encoding, const ValueShape& shape);

  // The bytes are the value as they are.
  bool is_plain() const { return fields_.empty() && steps_.empty(); }
  // Appends one value.
  Status Append(Bytes value, ValueSink* out) const;

 private:
  struct Step {
    bool fsst = false;
    FsstTable table;
    Compression scheme = Compression::kNone;
  };
  struct StructField {
    std::unique_ptr<FixedRowCodec> fixed;        // either this
    std::unique_ptr<VariableRowCodec> variable;  // or this, behind a length
    int64_t length_bytes = 0;
  };

  static Status AddSteps(const lance::encodings21::CompressiveEncoding& encoding,
                         std::vector<Step>* steps);
  static Status Apply(const Step& step, Bytes in, ByteSink* out);
  Status AppendStruct(Bytes row, ValueSink* out) const;

  std::vector<Step> steps_;
  std::vector<StructField> fields_;
};

}  // namespace glaive::encoding
