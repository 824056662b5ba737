// Blob columns of versions 2.1 and 2.2: payloads go to the file first, the page lists
// where.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "encoding/page_encode.h"
#include "file/page_sink.h"

namespace glaive::file {

Result<std::vector<encoding::EncodedPage>> WriteBlobPages(
    const encoding::PageColumn& column,
    const std::vector<std::shared_ptr<arrow::ArrayData>>& arrays, PageSink* sink);

}  // namespace glaive::file
