// Rows of packed structs: the members of a row side by side in one value.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/values.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

struct PackedRows {
  bool variable = false;
  // When all members are plain fixed-width values.
  FixedValues fixed_rows;
  std::vector<int64_t> member_bits;
  // Otherwise.
  VariableValues variable_rows;
  lance::encodings21::CompressiveEncoding encoding;
};

// InvalidInput when a valid struct has a null member, or a null inside of a vector
// member: packed rows have no place for it.
Status CheckPackable(std::span<const Segment> segments);

// `segments` hold structs that passed CheckPackable; `member_options` has one entry per
// member.
Result<PackedRows> PackRows(std::span<const Segment> segments,
                            std::span<const EncodeOptions> member_options,
                            const EncodeOptions& options);

}  // namespace glaive::encoding
