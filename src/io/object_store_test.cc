// What every store must do, run against each of them.
#include "io/object_store.h"

#include <functional>
#include <thread>

#include "io/test_util.h"

namespace glaive::io {
namespace {

struct StoreKind {
  const char* name;
  std::function<std::shared_ptr<ObjectStore>(const std::string& directory)> make;
};

std::shared_ptr<ObjectStore> Local(const std::string& directory, PublishMethod method) {
  LocalStoreOptions options;
  options.publish_method = method;
  return OpenLocalStore(directory + "/store", true, options).ValueOrDie();
}

class ObjectStoreTest : public testing::TestWithParam<StoreKind> {
 protected:
  TemporaryDirectory directory_;
  std::shared_ptr<ObjectStore> store_ = GetParam().make(directory_.path());

  std::string Content(std::string_view path) {
    auto buffer = store_->Get(path);
    return buffer.ok() ? Text(*buffer) : buffer.status().ToString();
  }

  std::vector<std::string> Paths(std::string_view prefix, bool recursive) {
    std::vector<std::string> paths;
    for (const ObjectInfo& info : store_->List(prefix, recursive).ValueOrDie()) {
      paths.push_back(info.is_directory ? info.path + "/" : info.path);
    }
    return paths;
  }
};

using Strings = std::vector<std::string>;

TEST_P(ObjectStoreTest, PutReplacesAndGetReads) {
  ASSERT_OK(store_->Put("a/b/c.bin", Bytes("first")));
  EXPECT_EQ(Content("a/b/c.bin"), "first");
  ASSERT_OK(store_->Put("a/b/c.bin", Bytes("second one")));
  EXPECT_EQ(Content("a/b/c.bin"), "second one");
  ASSERT_OK(store_->Put("hint", Bytes(""), false));
  EXPECT_EQ(Content("hint"), "");
  EXPECT_KIND(ErrorKind::kNotFound, store_->Get("a/b/d.bin").status());
  EXPECT_KIND(ErrorKind::kNotFound, store_->Get("a/b").status());
}

TEST_P(ObjectStoreTest, HeadAndExistsKnowObjectsOnly) {
  ASSERT_OK(store_->Put("d/x", Bytes("12345")));
  ASSERT_OK_AND_ASSIGN(ObjectInfo info, store_->Head("d/x"));
  EXPECT_EQ(info.path, "d/x");
  EXPECT_EQ(info.size_bytes, 5);
  EXPECT_FALSE(info.is_directory);
  const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  EXPECT_NEAR(static_cast<double>(info.modified_us), static_cast<double>(now_us), 60e6);
  EXPECT_KIND(ErrorKind::kNotFound, store_->Head("d").status());
  EXPECT_KIND(ErrorKind::kNotFound, store_->Head("d/x/y").status());
  EXPECT_TRUE(store_->Exists("d/x").ValueOrDie());
  EXPECT_FALSE(store_->Exists("d").ValueOrDie());
  EXPECT_FALSE(store_->Exists("d/x/y").ValueOrDie());
}

TEST_P(ObjectStoreTest, PartsAreJoinedInOrder) {
  // More pieces than one call to the kernel takes, empty ones among them.
  std::vector<uint8_t> expected;
  std::vector<std::vector<uint8_t>> pieces;
  for (int i = 0; i < 1500; ++i) {
    pieces.emplace_back(static_cast<size_t>(i % 7), static_cast<uint8_t>(i));
    expected.insert(expected.end(), pieces.back().begin(), pieces.back().end());
  }
  const std::vector<std::span<const uint8_t>> parts(pieces.begin(), pieces.end());
  for (const bool durable : {true, false}) {
    const std::string path = durable ? "a/synced" : "a/cached";
    ASSERT_OK(store_->PutPartsIfAbsent(path, parts, durable));
    ASSERT_OK_AND_ASSIGN(const auto got, store_->Get(path));
    EXPECT_EQ(std::vector<uint8_t>(got->data(), got->data() + got->size()), expected);
    EXPECT_KIND(ErrorKind::kAlreadyExists,
                store_->PutPartsIfAbsent(path, parts, durable));
  }
  ASSERT_OK(store_->PutPartsIfAbsent("a/empty", {}));
  ASSERT_OK_AND_ASSIGN(const auto empty, store_->Get("a/empty"));
  EXPECT_EQ(empty->size(), 0);
}

TEST_P(ObjectStoreTest, PutIfAbsentNeverReplaces) {
  ASSERT_OK(store_->PutIfAbsent("v/1.manifest", Bytes("mine")));
  EXPECT_KIND(ErrorKind::kAlreadyExists, store_->PutIfAbsent("v/1.manifest", Bytes("x")));
  EXPECT_EQ(Content("v/1.manifest"), "mine");
  EXPECT_EQ(Paths("", true), Strings{"v/1.manifest"});
}

TEST_P(ObjectStoreTest, PreparedPutsClaimTheirNameAtTheEnd) {
  const std::span<const uint8_t> parts[] = {Bytes("12"), Bytes("345")};
  ASSERT_OK_AND_ASSIGN(auto first, store_->PreparePutIfAbsent("v/1", parts));
  ASSERT_OK_AND_ASSIGN(auto second, store_->PreparePutIfAbsent("v/1", parts));
  ASSERT_OK_AND_ASSIGN(auto dropped, store_->PreparePutIfAbsent("v/2", parts));
  ASSERT_OK(first->Sync());
  ASSERT_OK(dropped->Sync());
  EXPECT_EQ(Paths("", true), Strings{});
  ASSERT_OK(second->Publish());  // syncs by itself
  EXPECT_EQ(Content("v/1"), "12345");
  EXPECT_KIND(ErrorKind::kAlreadyExists, first->Publish());
  dropped.reset();
  EXPECT_EQ(Paths("", true), Strings{"v/1"});
  auto bad = store_->PreparePutIfAbsent("../x", parts);
  EXPECT_KIND(ErrorKind::kInvalidInput, bad.ok() ? (*bad)->Publish() : bad.status());
}

TEST_P(ObjectStoreTest, OneOfManyWritersWins) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 20; ++round) {
    const std::string path = "v/" + std::to_string(round);
    std::atomic<int> winners{0}, losers{0};
    std::string won;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const std::string text = "writer " + std::to_string(i);
        const Status status = store_->PutIfAbsent(path, Bytes(text));
        if (status.ok()) {
          ++winners;
          won = text;
        } else if (KindOf(status) == ErrorKind::kAlreadyExists) {
          ++losers;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(losers, kThreads - 1);
    EXPECT_EQ(Content(path), won);
  }
}

TEST_P(ObjectStoreTest, ReadsRanges) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text.push_back(static_cast<char>('a' + i % 26));
  for (const size_t size : {size_t{0}, size_t{10}, size_t{4096}, text.size()}) {
    const std::string path = "f" + std::to_string(size);
    const std::string content = text.substr(0, size);
    ASSERT_OK(store_->Put(path, Bytes(content)));
    ASSERT_OK_AND_ASSIGN(auto object, store_->Open(path, static_cast<int64_t>(size)));
    EXPECT_EQ(object->size_bytes(), static_cast<int64_t>(size));
    EXPECT_EQ(object->path(), path);
    ASSERT_OK_AND_ASSIGN(auto whole, object->Read({0, static_cast<int64_t>(size)}));
    EXPECT_EQ(Text(whole), content);
    ASSERT_OK_AND_ASSIGN(auto nothing, object->Read({static_cast<int64_t>(size), 0}));
    EXPECT_EQ(nothing->size(), 0);
    for (const ByteRange bad :
         {ByteRange{0, static_cast<int64_t>(size) + 1},
          ByteRange{static_cast<int64_t>(size) + 1, 0}, ByteRange{-1, 1},
          ByteRange{0, -1}, ByteRange{INT64_MAX, 1}, ByteRange{1, INT64_MAX}}) {
      EXPECT_KIND(ErrorKind::kCorruption, object->Read(bad).status());
    }
  }
  ASSERT_OK_AND_ASSIGN(auto object, store_->Open("f100000"));
  const ByteRange ranges[] = {{26, 3}, {0, 1}, {99'999, 1}, {5, 0}};
  ASSERT_OK_AND_ASSIGN(auto buffers, object->ReadMany(ranges));
  ASSERT_EQ(buffers.size(), 4u);
  EXPECT_EQ(Text(buffers[0]), "abc");
  EXPECT_EQ(Text(buffers[1]), "a");
  EXPECT_EQ(Text(buffers[2]), text.substr(99'999));
  EXPECT_EQ(Text(buffers[3]), "");
  EXPECT_KIND(ErrorKind::kCorruption, store_->Open("f10", 11).status());
  EXPECT_KIND(ErrorKind::kNotFound, store_->Open("nothing").status());
}

TEST_P(ObjectStoreTest, BuffersOutliveObjectStoreAndName) {
  const std::string big(300'000, 'b');
  ASSERT_OK(store_->Put("big", Bytes(big)));
  ASSERT_OK_AND_ASSIGN(auto object, store_->Open("big"));
  ASSERT_OK_AND_ASSIGN(auto buffer, object->Read({100, 200'000}));
  ASSERT_OK(store_->Delete("big"));
  EXPECT_KIND(ErrorKind::kNotFound, store_->Open("big").status());
  object.reset();
  store_.reset();
  EXPECT_EQ(Text(buffer), big.substr(100, 200'000));
}

TEST_P(ObjectStoreTest, ReplacedObjectIsSeenByTheNextOpen) {
  for (const size_t size : {size_t{100}, size_t{100'000}}) {
    ASSERT_OK(store_->Put("x", Bytes(std::string(size, '1'))));
    ASSERT_OK_AND_ASSIGN(auto before, store_->Open("x"));
    ASSERT_OK(store_->Put("x", Bytes(std::string(size, '2'))));
    ASSERT_OK_AND_ASSIGN(auto after, store_->Open("x"));
    EXPECT_EQ(Text(*before->Read({0, 1})), "1");
    EXPECT_EQ(Text(*after->Read({0, 1})), "2");
  }
}

TEST_P(ObjectStoreTest, ListsInOrder) {
  for (const char* path : {"t/b/2", "t/b/10", "t/a", "t/c/d/e", "t/a-1", "u", "tt"}) {
    ASSERT_OK(store_->Put(path, Bytes(path)));
  }
  EXPECT_EQ(Paths("t", true), (Strings{"t/a", "t/a-1", "t/b/10", "t/b/2", "t/c/d/e"}));
  EXPECT_EQ(Paths("t/", true), Paths("t", true));
  EXPECT_EQ(Paths("t", false), (Strings{"t/a", "t/a-1", "t/b/", "t/c/"}));
  EXPECT_EQ(Paths("", false), (Strings{"t/", "tt", "u"}));
  EXPECT_EQ(Paths("missing", true), Strings{});
  EXPECT_EQ(Paths("u", true), Strings{});
  ASSERT_OK_AND_ASSIGN(Strings names, store_->ListNames("t"));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Strings{"a", "a-1"}));
  EXPECT_EQ(store_->ListNames("missing").ValueOrDie(), Strings{});
  ASSERT_OK_AND_ASSIGN(auto infos, store_->List("t/b", true));
  EXPECT_EQ(infos[0].size_bytes, 6);
}

TEST_P(ObjectStoreTest, WriterIsInvisibleUntilFinished) {
  std::string expected;
  ASSERT_OK_AND_ASSIGN(auto writer, store_->Create("data/part.bin"));
  for (const size_t size : {size_t{0}, size_t{3}, size_t{1'000'000}, size_t{100'000},
                            size_t{5'000'000}, size_t{1}}) {
    const std::string piece(size, static_cast<char>('a' + size % 26));
    ASSERT_OK(writer->Append(Bytes(piece)));
    expected += piece;
    EXPECT_EQ(writer->position(), static_cast<int64_t>(expected.size()));
  }
  EXPECT_FALSE(store_->Exists("data/part.bin").ValueOrDie());
  EXPECT_EQ(Paths("", true), Strings{});
  ASSERT_OK(writer->Finish());
  EXPECT_EQ(Content("data/part.bin"), expected);
  EXPECT_KIND(ErrorKind::kClosed, writer->Append(Bytes("x")));
  EXPECT_KIND(ErrorKind::kClosed, writer->Finish());
  writer.reset();
  EXPECT_EQ(Paths("", true), Strings{"data/part.bin"});
}

TEST_P(ObjectStoreTest, WritersFinishInTwoSteps) {
  ASSERT_OK_AND_ASSIGN(auto writer, store_->Create("data/part.bin"));
  ASSERT_OK(writer->Append(Bytes("abc")));
  EXPECT_EQ(Paths("", true), Strings{});
  ASSERT_OK(writer->Publish());
  EXPECT_EQ(Content("data/part.bin"), "abc");
  EXPECT_KIND(ErrorKind::kClosed, writer->Append(Bytes("x")));
  EXPECT_KIND(ErrorKind::kClosed, writer->Publish());
  ASSERT_OK(writer->Sync());
  writer->Abort();  // too late
  writer.reset();
  EXPECT_EQ(Content("data/part.bin"), "abc");
}

TEST_P(ObjectStoreTest, AbandonedWriterLeavesNothing) {
  {
    ASSERT_OK_AND_ASSIGN(auto dropped, store_->Create("data/dropped"));
    ASSERT_OK(dropped->Append(Bytes("x")));
    ASSERT_OK_AND_ASSIGN(auto aborted, store_->Create("data/aborted"));
    ASSERT_OK(aborted->Append(Bytes("x")));
    aborted->Abort();
    EXPECT_KIND(ErrorKind::kClosed, aborted->Finish());
  }
  EXPECT_EQ(Paths("", true), Strings{});
}

TEST_P(ObjectStoreTest, DeletesObjectsAndTrees) {
  for (const char* path : {"t/a", "t/b/c", "t/b/d", "tb"}) {
    ASSERT_OK(store_->Put(path, Bytes("x")));
  }
  ASSERT_OK(store_->Delete("t/a"));
  ASSERT_OK(store_->Delete("t/a"));
  ASSERT_OK(store_->Delete("no/such"));
  EXPECT_EQ(Paths("", true), (Strings{"t/b/c", "t/b/d", "tb"}));
  ASSERT_OK(store_->DeleteTree("t"));
  ASSERT_OK(store_->DeleteTree("t"));
  EXPECT_EQ(Paths("", true), Strings{"tb"});
}

TEST_P(ObjectStoreTest, RenamesObjectsAndDirectories) {
  ASSERT_OK(store_->Put("a/1", Bytes("one")));
  ASSERT_OK(store_->Put("a/sub/2", Bytes("two")));
  ASSERT_OK(store_->Put("full/x", Bytes("x")));
  EXPECT_KIND(ErrorKind::kAlreadyExists, store_->Rename("a", "full"));
  ASSERT_OK(store_->Rename("a", "b"));
  EXPECT_EQ(Paths("", true), (Strings{"b/1", "b/sub/2", "full/x"}));
  ASSERT_OK(store_->Rename("b/1", "full/x"));
  EXPECT_EQ(Content("full/x"), "one");
  EXPECT_KIND(ErrorKind::kNotFound, store_->Rename("nothing", "c"));
  EXPECT_KIND(ErrorKind::kInvalidInput, store_->Rename("b", "b/sub/below"));
  ASSERT_OK(store_->Rename("b/sub/2", "b/sub/2"));
  EXPECT_EQ(Content("b/sub/2"), "two");
}

TEST_P(ObjectStoreTest, ChildrenShareEverything) {
  auto child = store_->Child("db/t.lance");
  EXPECT_EQ(child->root(), store_->root() + "/db/t.lance");
  ASSERT_OK(child->Put("x", Bytes("1")));
  EXPECT_EQ(Content("db/t.lance/x"), "1");
  EXPECT_EQ(child->List("", true).ValueOrDie().at(0).path, "x");
  ASSERT_OK(child->Child("sub")->Put("y", Bytes("2")));
  EXPECT_EQ(Content("db/t.lance/sub/y"), "2");
  ASSERT_OK(child->DeleteTree(""));
  EXPECT_EQ(Paths("", true), Strings{});
}

TEST_P(ObjectStoreTest, RefusesPathsThatLeaveTheStore) {
  const std::string nul("a\0b", 3);
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("."), std::string("a/./b"), std::string(".."), std::string("../a"),
        std::string("a/.."), nul}) {
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Put(path, Bytes("x")));
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->PutIfAbsent(path, Bytes("x")));
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Get(path).status());
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Open(path).status());
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Create(path).status());
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Delete(path));
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Exists(path).status());
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Rename("a", path));
  }
  for (const char* path : {"/", "..", "a/../..", "/etc"}) {
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->List(path, true).status());
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->ListNames(path).status());
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->DeleteTree(path));
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Child(path)->Put("x", Bytes("x")));
    EXPECT_KIND(ErrorKind::kInvalidInput, store_->Child(path)->List("", true).status());
    EXPECT_KIND(ErrorKind::kInvalidInput,
                store_->Child(path)->Child("a")->Get("x").status());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stores, ObjectStoreTest,
    testing::Values(
        StoreKind{"LocalLink",
                  [](const std::string& d) { return Local(d, PublishMethod::kLink); }},
        StoreKind{"LocalRename",
                  [](const std::string& d) {
                    return Local(d, PublishMethod::kRenameNoReplace);
                  }},
        StoreKind{"LocalExclusive",
                  [](const std::string& d) {
                    return Local(d, PublishMethod::kExclusiveCreate);
                  }},
        StoreKind{"Memory", [](const std::string&) { return MakeMemoryStore(); }}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(OpenStore, UnderstandsUris) {
  TemporaryDirectory directory;
  const std::string& base = directory.path();
  ASSERT_OK_AND_ASSIGN(auto plain, OpenStore(base + "/a b/./x/../y", true));
  EXPECT_EQ(plain->root(), base + "/a b/y");
  ASSERT_OK(plain->Put("k", Bytes("v")));
  for (const std::string& uri : {"file://" + base + "/a%20b/y", "file:" + base + "/a b/y",
                                 "file://localhost" + base + "/a b/y/"}) {
    ASSERT_OK_AND_ASSIGN(auto store, OpenStore(uri, false));
    EXPECT_EQ(store->root(), plain->root()) << uri;
    EXPECT_EQ(Text(*store->Get("k")), "v");
  }
  ASSERT_OK_AND_ASSIGN(auto colon, OpenStore(base + "/odd:name", true));
  EXPECT_EQ(colon->root(), base + "/odd:name");

  ASSERT_OK_AND_ASSIGN(auto memory_1, OpenStore("memory://", true));
  ASSERT_OK_AND_ASSIGN(auto memory_2, OpenStore("memory://db/t", true));
  EXPECT_NE(memory_1->root(), memory_2->root());
  ASSERT_OK(memory_1->Put("k", Bytes("v")));
  EXPECT_FALSE(memory_2->Exists("k").ValueOrDie());

  EXPECT_KIND(ErrorKind::kNotFound, OpenStore(base + "/none", false).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, OpenStore("", true).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, OpenStore("file://host/x", true).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, OpenStore("memory://../x", true).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, OpenStore(base + "/a b/y/k", true).status());
  for (const char* uri : {"s3://bucket/x", "gs://b", "az://c", "db://x", "s3+ddb://x"}) {
    EXPECT_KIND(ErrorKind::kNotSupported, OpenStore(uri, true).status());
  }
}

TEST(OpenStore, ExpandsTheHomeDirectory) {
  TemporaryDirectory directory;
  const char* old_home = std::getenv("HOME");
  const std::string saved = old_home == nullptr ? "" : old_home;
  ::setenv("HOME", directory.path().c_str(), 1);
  ASSERT_OK_AND_ASSIGN(auto store, OpenStore("~/db", true));
  if (old_home != nullptr) ::setenv("HOME", saved.c_str(), 1);
  EXPECT_EQ(store->root(), directory.path() + "/db");
}

}  // namespace
}  // namespace glaive::io
