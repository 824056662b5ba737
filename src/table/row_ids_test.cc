// Row id and row version sequences: every segment kind, every array width, broken input.
#include "table/row_ids.h"

#include <cstring>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "format/rowids.pb.h"
#include "io/test_util.h"

namespace glaive::table {
namespace {

using lance::table::RowIdSequence;
using Ids = std::vector<uint64_t>;

template <typename T>
std::string Pack(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  return bytes;
}

Result<Ids> Decode(const RowIdSequence& sequence, int64_t rows) {
  return DecodeRowIds(sequence.SerializeAsString(), rows);
}

TEST(RowIds, AllSegmentKinds) {
  RowIdSequence sequence;
  auto* range = sequence.add_segments()->mutable_range();
  range->set_start(10);
  range->set_end(13);
  auto* holes = sequence.add_segments()->mutable_range_with_holes();
  holes->set_start(20);
  holes->set_end(26);
  holes->mutable_holes()->mutable_u16_array()->set_base(21);
  holes->mutable_holes()->mutable_u16_array()->set_offsets(Pack<uint16_t>({0, 3}));
  auto* bitmap = sequence.add_segments()->mutable_range_with_bitmap();
  bitmap->set_start(30);
  bitmap->set_end(40);
  bitmap->set_bitmap(
      std::string("\x05\x02", 2));  // bits 0, 2, 9: least significant first
  auto* sorted = sequence.add_segments()->mutable_sorted_array()->mutable_u32_array();
  sorted->set_base(100);
  sorted->set_offsets(Pack<uint32_t>({0, 70000}));
  auto* array = sequence.add_segments()->mutable_array()->mutable_u64_array();
  array->set_values(Pack<uint64_t>({uint64_t{1} << 40, 3}));
  ASSERT_OK_AND_ASSIGN(Ids ids, Decode(sequence, 14));
  EXPECT_EQ(ids, (Ids{10, 11, 12, 20, 22, 23, 25, 30, 32, 39, 100, 70100,
                      uint64_t{1} << 40, 3}));
  EXPECT_KIND(ErrorKind::kCorruption, Decode(sequence, 13).status());
  EXPECT_KIND(ErrorKind::kCorruption, Decode(sequence, 15).status());
}

// The kinds that upstream was seen to choose (14.0.2).
TEST(RowIds, ChoosesTheKindOfUpstream) {
  auto kind_of = [](const Ids& ids) {
    RowIdSequence sequence;
    EXPECT_TRUE(sequence.ParseFromString(EncodeRowIds(ids)));
    EXPECT_EQ(sequence.segments_size(), 1);
    return sequence.segments(0).segment_case();
  };
  using lance::table::U64Segment;
  Ids dense, two_holes, every_second, few;
  for (uint64_t i = 0; i < 1000; ++i) {
    dense.push_back(i);
    if (i != 300 && i != 301) two_holes.push_back(i);
    if (i % 2 == 0) every_second.push_back(i);
    if (i % 50 == 0) few.push_back(i);
  }
  EXPECT_EQ(kind_of({}), U64Segment::kRange);
  EXPECT_EQ(kind_of(dense), U64Segment::kRange);
  EXPECT_EQ(kind_of(two_holes), U64Segment::kRangeWithHoles);
  EXPECT_EQ(kind_of(every_second), U64Segment::kRangeWithBitmap);
  EXPECT_EQ(kind_of({1, 7, 11}), U64Segment::kRangeWithBitmap);
  EXPECT_EQ(kind_of(few), U64Segment::kSortedArray);
  EXPECT_EQ(kind_of({3, 500, 900}), U64Segment::kSortedArray);
  EXPECT_EQ(kind_of({5, 4}), U64Segment::kArray);
}

TEST(RowIds, RandomRoundTrips) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (uint64_t s : {uint64_t{42}, seed}) {
    std::mt19937_64 random(s);
    for (int round = 0; round < 300; ++round) {
      const uint64_t spread = uint64_t{1} << (random() % 64);
      const uint64_t base = random() % 3 == 0 ? ~uint64_t{0} - spread : random() % 1000;
      Ids ids;
      for (size_t n = random() % 200; n > 0; --n) ids.push_back(base + random() % spread);
      if (random() % 2) {
        std::set<uint64_t> unique(ids.begin(), ids.end());
        ids.assign(unique.begin(), unique.end());
      }
      ASSERT_OK_AND_ASSIGN(
          Ids decoded, DecodeRowIds(EncodeRowIds(ids), static_cast<int64_t>(ids.size())));
      ASSERT_EQ(decoded, ids) << "round " << round;
    }
  }
}

TEST(RowIds, RefusesBrokenSequences) {
  auto with = [](auto fill) {
    RowIdSequence sequence;
    fill(sequence.add_segments());
    return Decode(sequence, 10).status();
  };
  EXPECT_KIND(ErrorKind::kCorruption, DecodeRowIds("\xff\xff", 1).status());
  EXPECT_KIND(ErrorKind::kCorruption, with([](auto*) {}));
  EXPECT_KIND(ErrorKind::kCorruption, with([](auto* s) {
                s->mutable_range()->set_start(5);
                s->mutable_range()->set_end(4);
              }));
  EXPECT_KIND(ErrorKind::kCorruption, with([](auto* s) {  // must not allocate 2^64 ids
                s->mutable_range()->set_end(~uint64_t{0});
              }));
  EXPECT_KIND(ErrorKind::kCorruption, with([](auto* s) {
                s->mutable_range_with_bitmap()->set_end(~uint64_t{0});
              }));
  EXPECT_KIND(
      ErrorKind::kCorruption, with([](auto* s) {
        auto* holes = s->mutable_range_with_holes();
        holes->set_end(11);
        holes->mutable_holes()->mutable_u64_array()->set_values(Pack<uint64_t>({11}));
      }));
  EXPECT_KIND(ErrorKind::kCorruption, with([](auto* s) {
                s->mutable_array()->mutable_u16_array()->set_offsets("odd");
              }));
  EXPECT_KIND(ErrorKind::kCorruption, with([](auto* s) {
                auto* array = s->mutable_array()->mutable_u32_array();
                array->set_base(~uint64_t{0});
                array->set_offsets(Pack<uint32_t>({1}));
              }));
}

TEST(RowVersions, RunsCountSpansOnly) {
  lance::table::RowDatasetVersionSequence sequence;
  auto add = [&](uint64_t start, uint64_t end, uint64_t version) {
    auto* run = sequence.add_runs();
    run->mutable_span()->mutable_range()->set_start(start);
    run->mutable_span()->mutable_range()->set_end(end);
    run->set_version(version);
  };
  add(500, 503, 2);
  add(0, 4, 2);
  add(7, 8, 9);
  ASSERT_OK_AND_ASSIGN(auto runs, DecodeRowVersions(sequence.SerializeAsString(), 8));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].count, 7);
  EXPECT_EQ(runs[0].version, 2u);
  EXPECT_EQ(runs[1].count, 1);
  EXPECT_EQ(runs[1].version, 9u);
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeRowVersions(sequence.SerializeAsString(), 9).status());
  ASSERT_OK_AND_ASSIGN(runs, DecodeRowVersions(EncodeRowVersions(5, 3), 5));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].version, 3u);
}

}  // namespace
}  // namespace glaive::table
