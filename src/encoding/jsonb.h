// JSON text <-> JSONB, the binary form in which `lance.json` columns are stored.
//
// Layout: docs/format/jsonb.md. Both directions are pure functions; any thread may call
// them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive::encoding {

// Appends the JSONB form of `text` to `out`. InvalidInput when the text is not JSON,
// names an object key twice, or is nested deeper than 200 levels; `out` is then
// unchanged.
Status JsonToJsonb(std::string_view text, std::string* out);

// Appends compact JSON text to `out`. Corruption when the bytes are malformed.
Status JsonbToJson(std::string_view bytes, std::string* out);

}  // namespace glaive::encoding
