#include "table/row_ids.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "format/rowids.pb.h"

namespace glaive::table {
namespace {

using lance::table::EncodedU64Array;
using lance::table::U64Segment;

Status Broken(const char* why) {
  return Corruption("a row id sequence is broken: ", why);
}

template <typename T>
Status AppendOffsets(uint64_t base, const std::string& bytes,
                     std::vector<uint64_t>* out) {
  if (bytes.size() % sizeof(T) != 0) return Broken("array length");
  const size_t count = bytes.size() / sizeof(T);
  out->reserve(out->size() + count);
  for (size_t i = 0; i < count; ++i) {
    T offset;
    std::memcpy(&offset, bytes.data() + i * sizeof(T), sizeof(T));
    if (offset > std::numeric_limits<uint64_t>::max() - base)
      return Broken("array overflow");
    out->push_back(base + offset);
  }
  return Status::OK();
}

Result<std::vector<uint64_t>> DecodeArray(const EncodedU64Array& array) {
  std::vector<uint64_t> values;
  switch (array.array_case()) {
    case EncodedU64Array::kU16Array:
      GLAIVE_RETURN_NOT_OK(AppendOffsets<uint16_t>(array.u16_array().base(),
                                                   array.u16_array().offsets(), &values));
      break;
    case EncodedU64Array::kU32Array:
      GLAIVE_RETURN_NOT_OK(AppendOffsets<uint32_t>(array.u32_array().base(),
                                                   array.u32_array().offsets(), &values));
      break;
    case EncodedU64Array::kU64Array:
      GLAIVE_RETURN_NOT_OK(
          AppendOffsets<uint64_t>(0, array.u64_array().values(), &values));
      break;
    case EncodedU64Array::ARRAY_NOT_SET:
      break;  // an empty array
  }
  return values;
}

// Collects runs and refuses to pass the number of rows that the fragment has.
class RunBuilder {
 public:
  explicit RunBuilder(uint64_t limit) : limit_(limit) {}

  Status Add(uint64_t first, uint64_t count) {
    if (count == 0) return Status::OK();
    if (count > limit_ - total_) return Broken("more ids than rows");
    total_ += count;
    if (!runs_.empty() && runs_.back().first_id + runs_.back().count == first) {
      runs_.back().count += count;
    } else {
      runs_.push_back({first, count});
    }
    return Status::OK();
  }
  uint64_t total() const { return total_; }
  std::vector<RowIdRun> Take() { return std::move(runs_); }

 private:
  const uint64_t limit_;
  uint64_t total_ = 0;
  std::vector<RowIdRun> runs_;
};

Status AddHoles(const U64Segment::RangeWithHoles& segment, RunBuilder* runs) {
  GLAIVE_ASSIGN_OR_RETURN(std::vector<uint64_t> holes, DecodeArray(segment.holes()));
  uint64_t next = segment.start();
  for (uint64_t hole : holes) {
    if (hole < next || hole >= segment.end()) return Broken("holes");
    GLAIVE_RETURN_NOT_OK(runs->Add(next, hole - next));
    next = hole + 1;
  }
  return runs->Add(next, segment.end() - next);
}

Status AddBitmap(const U64Segment::RangeWithBitmap& segment, RunBuilder* runs) {
  const uint64_t slots = segment.end() - segment.start();
  const std::string& bits = segment.bitmap();
  if (slots > uint64_t{bits.size()} * 8) return Broken("bitmap length");
  uint64_t i = 0;
  auto bit = [&bits](uint64_t k) {
    return (static_cast<uint8_t>(bits[k >> 3]) >> (k & 7)) & 1;
  };
  while (i < slots) {
    while (i < slots && !bit(i)) ++i;
    const uint64_t start = i;
    while (i < slots && bit(i)) ++i;
    GLAIVE_RETURN_NOT_OK(runs->Add(segment.start() + start, i - start));
  }
  return Status::OK();
}

Status AddArray(const EncodedU64Array& array, bool sorted, RunBuilder* runs) {
  GLAIVE_ASSIGN_OR_RETURN(std::vector<uint64_t> values, DecodeArray(array));
  for (size_t i = 0; i < values.size(); ++i) {
    if (sorted && i > 0 && values[i] < values[i - 1]) return Broken("sorted array");
    GLAIVE_RETURN_NOT_OK(runs->Add(values[i], 1));
  }
  return Status::OK();
}

Status AddSegment(const U64Segment& segment, RunBuilder* runs) {
  switch (segment.segment_case()) {
    case U64Segment::kRange:
      if (segment.range().end() < segment.range().start()) return Broken("range");
      return runs->Add(segment.range().start(),
                       segment.range().end() - segment.range().start());
    case U64Segment::kRangeWithHoles:
      if (segment.range_with_holes().end() < segment.range_with_holes().start()) {
        return Broken("range");
      }
      return AddHoles(segment.range_with_holes(), runs);
    case U64Segment::kRangeWithBitmap:
      if (segment.range_with_bitmap().end() < segment.range_with_bitmap().start()) {
        return Broken("range");
      }
      return AddBitmap(segment.range_with_bitmap(), runs);
    case U64Segment::kSortedArray:
      return AddArray(segment.sorted_array(), /*sorted=*/true, runs);
    case U64Segment::kArray:
      return AddArray(segment.array(), /*sorted=*/false, runs);
    case U64Segment::SEGMENT_NOT_SET:
      break;
  }
  return Broken("unknown segment kind");
}

template <typename T>
std::string PackOffsets(std::span<const uint64_t> values, uint64_t base) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const T offset = static_cast<T>(values[i] - base);
    std::memcpy(bytes.data() + i * sizeof(T), &offset, sizeof(T));
  }
  return bytes;
}

void EncodeArray(std::span<const uint64_t> values, EncodedU64Array* out) {
  if (values.empty()) {
    out->mutable_u64_array();
    return;
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const uint64_t width = *high - *low;
  if (width <= std::numeric_limits<uint16_t>::max()) {
    out->mutable_u16_array()->set_base(*low);
    out->mutable_u16_array()->set_offsets(PackOffsets<uint16_t>(values, *low));
  } else if (width <= std::numeric_limits<uint32_t>::max()) {
    out->mutable_u32_array()->set_base(*low);
    out->mutable_u32_array()->set_offsets(PackOffsets<uint32_t>(values, *low));
  } else {
    out->mutable_u64_array()->set_values(PackOffsets<uint64_t>(values, 0));
  }
}

void EncodeSorted(std::span<const uint64_t> ids, U64Segment* out) {
  const uint64_t start = ids.front();
  const uint64_t slots = ids.back() - start + 1;  // 0: all of 2^64
  const uint64_t holes = slots - ids.size();
  if (slots != 0 && holes == 0) {
    out->mutable_range()->set_start(start);
    out->mutable_range()->set_end(start + slots);
    return;
  }
  // The first two kinds name an exclusive end, which the largest id does not have.
  const bool narrow = slots != 0 && ids.back() != std::numeric_limits<uint64_t>::max();
  const uint64_t hole_cost = holes > (uint64_t{1} << 60) ? ~uint64_t{0} : 24 + 4 * holes;
  const uint64_t bitmap_cost = 24 + slots / 8 + (slots % 8 != 0);
  const uint64_t array_cost = 24 + 2 * ids.size();
  if (narrow && hole_cost <= bitmap_cost && hole_cost <= array_cost) {
    auto* segment = out->mutable_range_with_holes();
    segment->set_start(start);
    segment->set_end(ids.back() + 1);
    std::vector<uint64_t> missing;
    missing.reserve(holes);
    for (size_t i = 1; i < ids.size(); ++i) {
      for (uint64_t id = ids[i - 1] + 1; id < ids[i]; ++id) missing.push_back(id);
    }
    EncodeArray(missing, segment->mutable_holes());
  } else if (narrow && bitmap_cost <= array_cost) {
    auto* segment = out->mutable_range_with_bitmap();
    segment->set_start(start);
    segment->set_end(ids.back() + 1);
    std::string bits(slots / 8 + (slots % 8 != 0), '\0');
    for (uint64_t id : ids) {
      const uint64_t k = id - start;
      bits[k >> 3] = static_cast<char>(bits[k >> 3] | (1 << (k & 7)));
    }
    segment->set_bitmap(std::move(bits));
  } else {
    EncodeArray(ids, out->mutable_sorted_array());
  }
}

}  // namespace

Result<std::vector<RowIdRun>> DecodeFirstRowIdRuns(std::string_view serialized,
                                                   int64_t max_rows) {
  lance::table::RowIdSequence sequence;
  if (!sequence.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    return Broken("it does not decode");
  }
  RunBuilder runs(static_cast<uint64_t>(max_rows));
  for (const U64Segment& segment : sequence.segments()) {
    GLAIVE_RETURN_NOT_OK(AddSegment(segment, &runs));
  }
  return runs.Take();
}

Result<std::vector<RowIdRun>> DecodeRowIdRuns(std::string_view serialized,
                                              int64_t expected_rows) {
  GLAIVE_ASSIGN_OR_RETURN(auto runs, DecodeFirstRowIdRuns(serialized, expected_rows));
  int64_t total = 0;
  for (const RowIdRun& run : runs) total += static_cast<int64_t>(run.count);
  if (total != expected_rows) return Broken("fewer ids than rows");
  return runs;
}

Result<std::vector<uint64_t>> DecodeRowIds(std::string_view serialized,
                                           int64_t expected_rows) {
  GLAIVE_ASSIGN_OR_RETURN(std::vector<RowIdRun> runs,
                          DecodeRowIdRuns(serialized, expected_rows));
  std::vector<uint64_t> ids(static_cast<size_t>(expected_rows));
  size_t k = 0;
  for (const RowIdRun& run : runs) {
    for (uint64_t i = 0; i < run.count; ++i) ids[k++] = run.first_id + i;
  }
  return ids;
}

std::string EncodeRowIds(std::span<const uint64_t> ids) {
  lance::table::RowIdSequence sequence;
  U64Segment* segment = sequence.add_segments();
  const bool strictly_ascending =
      std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
  if (ids.empty()) {
    segment->mutable_range();
  } else if (strictly_ascending) {
    EncodeSorted(ids, segment);
  } else {
    EncodeArray(ids, segment->mutable_array());
  }
  return sequence.SerializeAsString();
}

std::string EncodeRowIdRange(uint64_t start, uint64_t end) {
  lance::table::RowIdSequence sequence;
  auto* range = sequence.add_segments()->mutable_range();
  range->set_start(start);
  range->set_end(end);
  return sequence.SerializeAsString();
}

Result<std::vector<RowVersionRun>> DecodeRowVersions(std::string_view serialized,
                                                     int64_t expected_rows) {
  lance::table::RowDatasetVersionSequence sequence;
  if (!sequence.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    return Corruption("a row version sequence does not decode");
  }
  std::vector<RowVersionRun> result;
  RunBuilder runs(static_cast<uint64_t>(expected_rows));
  uint64_t before = 0;
  for (const auto& run : sequence.runs()) {
    // Only the number of values of a span counts, not the values.
    GLAIVE_RETURN_NOT_OK(AddSegment(run.span(), &runs));
    const uint64_t count = runs.total() - before;
    before = runs.total();
    if (count == 0) continue;
    if (!result.empty() && result.back().version == run.version()) {
      result.back().count += static_cast<int64_t>(count);
    } else {
      result.push_back({static_cast<int64_t>(count), run.version()});
    }
  }
  if (before != static_cast<uint64_t>(expected_rows)) {
    return Corruption("a row version sequence covers ", before, " rows of ",
                      expected_rows);
  }
  return result;
}

std::string EncodeRowVersions(int64_t rows, uint64_t version) {
  const RowVersionRun run{rows, version};
  return EncodeRowVersionRuns({&run, 1});
}

std::string EncodeRowVersionRuns(std::span<const RowVersionRun> runs) {
  lance::table::RowDatasetVersionSequence sequence;
  uint64_t start = 0;
  for (const RowVersionRun& run : runs) {
    auto* message = sequence.add_runs();
    auto* range = message->mutable_span()->mutable_range();
    range->set_start(start);
    start += static_cast<uint64_t>(run.count);
    range->set_end(start);
    message->set_version(run.version);
  }
  return sequence.SerializeAsString();
}

}  // namespace glaive::table
