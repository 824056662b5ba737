// FSST: strings as sequences of one-byte codes for frequent substrings of up to 8 bytes.
//
// Layout of the table: docs/format/file.md, section "FSST". Pure, thread-safe.
#pragma once

#include <string>

#include "base/status.h"
#include "encoding/values.h"

namespace glaive::encoding {

struct FsstValues {
  std::string symbol_table;
  VariableValues values;  // same count and offset width, each value compressed by itself
};

// Learns a table from a sample of `values` and compresses all of them with it.
Result<FsstValues> FsstEncode(const VariableValues& values);

}  // namespace glaive::encoding
