// Deletion vectors against std::set, both file kinds, broken files.
#include "table/deletion_vector.h"

#include <cstring>
#include <random>
#include <set>

#include <arrow/buffer.h>
#include <gtest/gtest.h>

#include "io/test_util.h"

namespace glaive::table {
namespace {

using Offsets = std::vector<uint32_t>;

void CheckAgainst(const std::set<uint32_t>& model, const DeletionVector& vector,
                  int64_t rows, std::mt19937_64& random) {
  ASSERT_EQ(vector.size(), static_cast<int64_t>(model.size()));
  ASSERT_EQ(vector.ToOffsets(), Offsets(model.begin(), model.end()));
  for (int i = 0; i < 50; ++i) {
    const auto start = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
    const auto count =
        static_cast<int64_t>(random() % static_cast<uint64_t>(rows - start + 1));
    const auto expected =
        std::distance(model.lower_bound(static_cast<uint32_t>(start)),
                      model.lower_bound(static_cast<uint32_t>(start + count)));
    ASSERT_EQ(vector.CountInRange(start, start + count), expected);
    ASSERT_EQ(vector.Contains(static_cast<uint32_t>(start)),
              model.count(static_cast<uint32_t>(start)) > 0);
    std::vector<uint8_t> keep(static_cast<size_t>(count + 7) / 8 + 1, 0xff);
    vector.MaskRange(start, count, keep.data());
    for (int64_t k = 0; k < static_cast<int64_t>(keep.size()) * 8; ++k) {
      const bool deleted = k < count && model.count(static_cast<uint32_t>(start + k)) > 0;
      ASSERT_EQ((keep[k / 8] >> (k % 8)) & 1, deleted ? 0 : 1) << start << " " << k;
    }
  }
  int64_t live = 0;
  for (int64_t offset = 0; offset < rows; ++offset) {
    if (model.count(static_cast<uint32_t>(offset))) continue;
    if (live % 97 == 0 || offset + 100 > rows) {
      ASSERT_EQ(vector.SelectLive(live, rows), offset);
    }
    ++live;
  }
  ASSERT_EQ(vector.SelectLive(live, rows), rows);
  ASSERT_EQ(vector.SelectLive(live + 5, rows), rows);
}

TEST(DeletionVector, AgreesWithAModelAndSurvivesBothFileKinds) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (uint64_t s : {uint64_t{1}, uint64_t{2}, seed}) {
    std::mt19937_64 random(s);
    for (int64_t rows : {1, 7, 300, 70000, 150000}) {
      for (int density : {1, 3, 50, 100}) {
        std::set<uint32_t> model;
        for (int64_t i = 0; i < rows; ++i) {
          if (static_cast<int>(random() % 100) < density)
            model.insert(static_cast<uint32_t>(i));
        }
        Offsets offsets(model.begin(), model.end());
        std::shuffle(offsets.begin(), offsets.end(), random);
        auto vector = DeletionVector::FromOffsets(offsets);
        CheckAgainst(model, *vector, rows, random);
        ASSERT_OK_AND_ASSIGN(auto arrow, vector->ToArrow());
        ASSERT_OK_AND_ASSIGN(auto parsed, DeletionVector::ParseArrow(arrow, rows));
        ASSERT_EQ(parsed->ToOffsets(), vector->ToOffsets());
        auto bitmap = vector->ToBitmap();
        uint32_t cookie;
        std::memcpy(&cookie, bitmap.data(), 4);
        ASSERT_EQ(cookie, 12346u);
        ASSERT_OK_AND_ASSIGN(parsed, DeletionVector::ParseBitmap(bitmap, rows));
        ASSERT_EQ(parsed->ToOffsets(), vector->ToOffsets());
        Offsets more{0, static_cast<uint32_t>(rows / 2)};
        std::set<uint32_t> both = model;
        both.insert(more.begin(), more.end());
        ASSERT_EQ(vector->Union(more)->ToOffsets(), Offsets(both.begin(), both.end()));
        ASSERT_EQ(vector->Intersects(more), model.count(0) || model.count(more[1]));
      }
    }
  }
}

// Written by hand after the description of the portable format: one run container (3..5,
// 9) under key 0 and one array container under key 2.
TEST(DeletionVector, ReadsRunContainers) {
  std::vector<uint8_t> bytes;
  auto put16 = [&](uint16_t v) {
    bytes.push_back(static_cast<uint8_t>(v));
    bytes.push_back(static_cast<uint8_t>(v >> 8));
  };
  put16(12347);
  put16(1);            // containers - 1
  bytes.push_back(1);  // the first one is a run container
  put16(0);
  put16(3);  // cardinality - 1
  put16(2);
  put16(0);
  put16(2);  // runs
  put16(3);
  put16(2);
  put16(9);
  put16(0);
  put16(7);
  ASSERT_OK_AND_ASSIGN(auto vector, DeletionVector::ParseBitmap(bytes, 200000));
  EXPECT_EQ(vector->ToOffsets(), (Offsets{3, 4, 5, 9, 131079}));
  EXPECT_KIND(ErrorKind::kCorruption,
              DeletionVector::ParseBitmap(bytes, 131079).status());
}

TEST(DeletionVector, RefusesOffsetsOutsideTheFragment) {
  auto vector = DeletionVector::FromOffsets(Offsets{3, 10});
  ASSERT_OK_AND_ASSIGN(auto arrow, vector->ToArrow());
  EXPECT_KIND(ErrorKind::kCorruption, DeletionVector::ParseArrow(arrow, 10).status());
  EXPECT_KIND(ErrorKind::kCorruption,
              DeletionVector::ParseBitmap(vector->ToBitmap(), 10).status());
}

// The bound on what a file may decompress to counts that file alone.
TEST(DeletionVector, IsReadWhateverElseTheProcessHolds) {
  ASSERT_OK_AND_ASSIGN(auto held, arrow::AllocateBuffer(int64_t{64} << 20));
  ASSERT_OK_AND_ASSIGN(auto arrow, DeletionVector::FromOffsets(Offsets{3})->ToArrow());
  ASSERT_OK_AND_ASSIGN(auto parsed, DeletionVector::ParseArrow(arrow, 10));
  EXPECT_EQ(parsed->ToOffsets(), Offsets{3});
}

// Each byte flipped, each truncation: an error or a vector within the fragment, never a
// crash.
TEST(DeletionVector, SurvivesDamage) {
  Offsets offsets;
  for (uint32_t i = 0; i < 6000; ++i) offsets.push_back(i * 20 % 100000);
  auto vector = DeletionVector::FromOffsets(offsets);
  auto small = DeletionVector::FromOffsets(Offsets{1, 5, 70000});
  auto check = [](const Result<std::shared_ptr<const DeletionVector>>& result) {
    if (!result.ok()) {
      EXPECT_KIND(ErrorKind::kCorruption, result.status());
      return;
    }
    for (uint32_t offset : (*result)->ToOffsets()) ASSERT_LT(offset, 100000u);
  };
  ASSERT_OK_AND_ASSIGN(auto arrow, small->ToArrow());
  for (size_t i = 0; i < arrow.size(); ++i) {
    for (uint8_t flip : {0x01, 0x80, 0xff}) {
      auto damaged = arrow;
      damaged[i] = static_cast<uint8_t>(damaged[i] ^ flip);
      check(DeletionVector::ParseArrow(damaged, 100000));
    }
    check(DeletionVector::ParseArrow(std::span(arrow).first(i), 100000));
  }
  for (const auto& bytes : {small->ToBitmap(), vector->ToBitmap()}) {
    for (size_t i = 0; i<bytes.size(); i += bytes.size()> 1000 ? 37 : 1) {
      auto damaged = bytes;
      damaged[i] = static_cast<uint8_t>(damaged[i] ^ 0xff);
      check(DeletionVector::ParseBitmap(damaged, 100000));
      check(DeletionVector::ParseBitmap(std::span(bytes).first(i), 100000));
    }
  }
}

}  // namespace
}  // namespace glaive::table
