// Replaces dictionary indices by the values they stand for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "encoding/value_sink.h"

namespace glaive::file {

// The dictionary of one page. Immutable, thread-safe.
class DictionaryGather {
 public:
  // `encoding`, `block`, `count`: as described by the page. `shape` is that of the column
  // and must outlive this.
  static Result<DictionaryGather> Make(std::shared_ptr<arrow::ArrayData> items,
                                       const encoding::ValueShape& shape);

  // Appends values for `count` indices of `width` bytes. Indices outside the dictionary
  // are noted in `out` as slots that must turn out null.
  Status Append(const uint8_t* indices, int64_t count, int64_t width,
                encoding::ValueSink* out) const;
  int64_t memory_bytes() const;

 private:
  template <typename Index>
  Status AppendTyped(const Index* indices, int64_t count, encoding::ValueSink* out) const;
  template <typename Index>
  Status AppendKeys(const Index* indices, int64_t count, encoding::ValueSink* out) const;
  template <typename Index>
  Status AppendFixed(const Index* indices, int64_t count, encoding::ValueSink* out) const;
  template <typename Index>
  Status AppendVariable(const Index* indices, int64_t count,
                        encoding::ValueSink* out) const;

  const encoding::ValueShape* shape_ = nullptr;
  std::shared_ptr<arrow::ArrayData> items_;
  std::shared_ptr<arrow::Array> array_;  // for columns that keep the dictionary
  const uint8_t* bytes_ = nullptr;       // of fixed-width values
  std::vector<int64_t> offsets_;         // of variable-width values
  std::vector<uint8_t> text_;  // their bytes, with slack for copies of whole words
};

}  // namespace glaive::file
