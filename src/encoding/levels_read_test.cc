#include "encoding/levels_read.h"

#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

namespace glaive::encoding {
namespace {

LevelBatch Batch(const std::vector<uint16_t>& rep, const std::vector<uint16_t>& def) {
  LevelBatch out;
  out.num_entries = static_cast<int64_t>(std::max(rep.size(), def.size()));
  out.has_rep = !rep.empty();
  out.has_def = !def.empty();
  EXPECT_TRUE(out.rep
                  .Append(reinterpret_cast<const uint8_t*>(rep.data()),
                          static_cast<int64_t>(2 * rep.size()))
                  .ok());
  EXPECT_TRUE(out.def
                  .Append(reinterpret_cast<const uint8_t*>(def.data()),
                          static_cast<int64_t>(2 * def.size()))
                  .ok());
  return out;
}

std::vector<bool> Valid(const LayerSink& layer) {
  std::vector<bool> out;
  for (int64_t i = 0; i < layer.length(); ++i) out.push_back(layer.validity.IsValid(i));
  return out;
}

struct Case {
  std::vector<int> kinds;
  std::vector<PathLayer> path;
};

Result<std::vector<LayerSink>> Unravel(const Case& c, const LevelBatch& batch) {
  GLAIVE_ASSIGN_OR_RETURN(auto rules, LevelRules::Make(c.kinds, c.path));
  StructureSink sink(c.path);
  GLAIVE_RETURN_NOT_OK(sink.Append(rules, batch));
  return std::move(sink.layers());
}

// [[1,2], null, [], [3,null]]
TEST(Levels, ListOfNullableItems) {
  Case c{{3, 6}, {{false}, {true}}};
  auto got = Unravel(c, Batch({1, 0, 1, 1, 1, 0}, {0, 0, 2, 3, 0, 1}));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Valid((*got)[0]), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ((*got)[1].offsets, (std::vector<int64_t>{2, 2, 2, 4}));
  EXPECT_EQ(Valid((*got)[1]), (std::vector<bool>{true, false, true, true}));
}

// struct<x>: [{1}, null, {null}]
TEST(Levels, NullableStruct) {
  Case c{{3, 3}, {{false}, {false}}};
  auto got = Unravel(c, Batch({}, {0, 2, 1}));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Valid((*got)[0]), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(Valid((*got)[1]), (std::vector<bool>{true, false, true}));
}

// list<struct?<list<int>>>: [[{[1,2]}, null, {[]}], [], null]
TEST(Levels, ListOfStructOfList) {
  Case c{{1, 5, 3, 6}, {{false}, {true}, {false}, {true}}};
  auto got = Unravel(c, Batch({2, 0, 1, 1, 2, 2}, {0, 0, 2, 1, 4, 3}));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].length(), 2);
  EXPECT_EQ((*got)[1].offsets, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(Valid((*got)[1]), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(Valid((*got)[2]), (std::vector<bool>{true, false, true}));
  EXPECT_EQ((*got)[3].offsets, (std::vector<int64_t>{3, 3, 3}));
  EXPECT_EQ(Valid((*got)[3]), (std::vector<bool>{true, true, false}));
}

// [{<0,1>,<>,<2>},{<3>},{}], [], [{<4>}]
TEST(Levels, ThreeListLayers) {
  Case c{{1, 5, 5, 5}, {{false}, {true}, {true}, {true}}};
  auto got = Unravel(c, Batch({3, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 1, 0, 0, 2, 3, 0}));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].length(), 5);
  EXPECT_EQ((*got)[1].offsets, (std::vector<int64_t>{2, 2, 3, 4, 5}));
  EXPECT_EQ((*got)[2].offsets, (std::vector<int64_t>{3, 4, 4, 5}));
  EXPECT_EQ((*got)[3].offsets, (std::vector<int64_t>{3, 3, 4}));
}

// fixed_size_list<struct<x>, 2>: [[{1},null], null]
TEST(Levels, FixedSizeListOfStruct) {
  Case c{{3, 3, 3}, {{false}, {false}, {false, 2}}};
  auto got = Unravel(c, Batch({}, {0, 2, 3, 3}));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Valid((*got)[0]), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(Valid((*got)[1]), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(Valid((*got)[2]), (std::vector<bool>{true, false}));
}

TEST(Levels, PagesOfDifferentKindsAreJoined) {
  std::vector<PathLayer> path{{false}, {true}};
  StructureSink sink(path);
  auto first = LevelRules::Make(std::vector<int>{1, 2}, path);
  auto second = LevelRules::Make(std::vector<int>{3, 4}, path);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(sink.Append(*first, Batch({1, 0, 1}, {})).ok());
  ASSERT_TRUE(sink.Append(*second, Batch({1, 1, 0}, {2, 0, 1})).ok());
  EXPECT_EQ(sink.layers()[1].offsets, (std::vector<int64_t>{2, 3, 3, 5}));
  EXPECT_EQ(Valid(sink.layers()[1]), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(Valid(sink.layers()[0]), (std::vector<bool>{true, true, true, true, false}));
}

TEST(Levels, ContradictionsAreCorruption) {
  Case list{{3, 6}, {{false}, {true}}};
  // A level above the maximum.
  EXPECT_EQ(KindOf(Unravel(list, Batch({1}, {4})).status()), ErrorKind::kCorruption);
  EXPECT_EQ(KindOf(Unravel(list, Batch({2}, {0})).status()), ErrorKind::kCorruption);
  // An item before the first list.
  EXPECT_EQ(KindOf(Unravel(list, Batch({0}, {0})).status()), ErrorKind::kCorruption);
  // An empty list that goes on.
  EXPECT_EQ(KindOf(Unravel(list, Batch({1, 0}, {3, 0})).status()),
            ErrorKind::kCorruption);
  // Counts that differ.
  EXPECT_EQ(KindOf(Unravel(list, Batch({1, 1}, {0})).status()), ErrorKind::kCorruption);
  // Kinds that the schema does not have there.
  EXPECT_EQ(KindOf(Unravel({{3, 3}, list.path}, Batch({}, {0})).status()),
            ErrorKind::kCorruption);
  EXPECT_EQ(KindOf(Unravel({{3}, list.path}, Batch({}, {0})).status()),
            ErrorKind::kCorruption);
  EXPECT_EQ(KindOf(Unravel({{0, 6}, list.path}, Batch({1}, {0})).status()),
            ErrorKind::kCorruption);
}

}  // namespace
}  // namespace glaive::encoding
