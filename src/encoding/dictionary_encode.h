// Finds out whether a page is smaller as a dictionary, and builds it.
#pragma once

#include <optional>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/page_encode.h"
#include "encoding/values.h"

namespace glaive::encoding {

struct DictionaryValues {
  FixedValues indices;  // 32 bits
  PageDictionary dictionary;
};

// Nothing when the values do not repeat enough. Items appear in the order of first use.
Result<std::optional<DictionaryValues>> TryDictionary(const FixedValues& values,
                                                      const EncodeOptions& options);
Result<std::optional<DictionaryValues>> TryDictionary(const VariableValues& values,
                                                      const EncodeOptions& options);

// Block form of the items of an Arrow dictionary.
Result<PageDictionary> EncodeArrowDictionary(const arrow::ArrayData& items,
                                             const EncodeOptions& options);

}  // namespace glaive::encoding
