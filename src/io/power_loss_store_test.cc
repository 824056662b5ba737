#include "io/power_loss_store.h"

#include <set>
#include <string>

#include <arrow/buffer.h>
#include <gtest/gtest.h>

#include "io/test_util.h"

namespace glaive::io {
namespace {

std::string Content(ObjectStore& store, const std::string& path) {
  auto bytes = store.Get(path);
  return bytes.ok() ? Text(*bytes) : "none";
}

TEST(PowerLoss, WhatIsDurableStaysAndTheRestIsLeftToChance) {
  const auto before = std::make_shared<PowerLoss>();
  ObjectStore& store = *before->store();
  ASSERT_OK(store.Child("d")->Put("durable", Bytes("1234")));
  ASSERT_OK(store.Put("d/made_durable", Bytes("old"), false));
  ASSERT_OK(store.Child("d")->Put("made_durable", Bytes("new")));
  const std::span<const uint8_t> part = Bytes("1234");
  ASSERT_OK(store.Child("d")->PutPartsIfAbsent("volatile", {&part, 1}, false));
  ASSERT_OK(store.Put("hint", Bytes("old")));
  ASSERT_OK(store.Put("hint", Bytes("newer"), false));
  ASSERT_OK(store.Put("hint", Bytes("newest"), false));
  ASSERT_OK_AND_ASSIGN(auto writer, store.Create("written"));
  ASSERT_OK(writer->Append(Bytes("1234")));
  ASSERT_OK(writer->Finish());
  ASSERT_OK_AND_ASSIGN(auto synced, store.Create("synced"));
  ASSERT_OK(synced->Append(Bytes("1234")));
  ASSERT_OK(synced->Publish());
  ASSERT_OK(synced->Sync());
  ASSERT_OK_AND_ASSIGN(auto published, store.Child("d")->Create("published"));
  ASSERT_OK(published->Append(Bytes("1234")));
  ASSERT_OK(published->Publish());
  EXPECT_EQ(Content(store, "d/published"), "1234");
  ASSERT_OK_AND_ASSIGN(auto unfinished, store.Create("unfinished"));
  ASSERT_OK(unfinished->Append(Bytes("1234")));

  std::mt19937_64 random(1);
  std::set<std::string> volatile_contents, published_contents, hints;
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto after, before->CutPower(random));
    ObjectStore& left = *after->store();
    EXPECT_EQ(Content(left, "d/durable"), "1234");
    EXPECT_EQ(Content(left, "d/made_durable"), "new");
    EXPECT_EQ(Content(left, "written"), "1234");
    EXPECT_EQ(Content(left, "synced"), "1234");
    EXPECT_EQ(Content(left, "unfinished"), "none");
    published_contents.insert(Content(left, "d/published"));
    volatile_contents.insert(Content(left, "d/volatile"));
    hints.insert(Content(left, "hint"));
  }
  EXPECT_EQ(volatile_contents,
            (std::set<std::string>{"none", "", "1", "12", "123", "1234"}));
  EXPECT_EQ(published_contents, volatile_contents);
  EXPECT_EQ(hints, (std::set<std::string>{"old", "newest"}));
}

}  // namespace
}  // namespace glaive::io
