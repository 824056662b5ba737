// The settings of a full-text index of a table.
#pragma once

#include "base/status.h"
#include "index/text/tokenizer_params.h"
#include "table/dataset.h"

namespace lance::table {
class IndexMetadata;
}

namespace glaive::text {

// From the files of the index: its manifest entry leaves custom stop words out. Only when
// they are not in the table's own folder the entry must do. NotSupported: elements of
// lists as documents of their own. Corruption.
Result<TokenizerParams> ReadIndexParams(const table::Dataset& dataset,
                                        const lance::table::IndexMetadata& index);

}  // namespace glaive::text
