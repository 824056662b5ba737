// The wrappers that count, delay and fail operations.
#include <chrono>

#include "io/counting_store.h"
#include "io/delaying_store.h"
#include "io/faulting_store.h"
#include "io/test_util.h"

namespace glaive::io {
namespace {

TEST(CountingStore, CountsEachKind) {
  auto counters = std::make_shared<StoreCounters>();
  auto store = MakeCountingStore(MakeMemoryStore(), counters);
  ASSERT_OK(store->Put("a", Bytes("12345")));
  ASSERT_OK(store->Child("d")->PutIfAbsent("b", Bytes("123")));
  EXPECT_KIND(ErrorKind::kAlreadyExists, store->PutIfAbsent("d/b", Bytes("123")));
  ASSERT_OK_AND_ASSIGN(auto writer, store->Create("c"));
  ASSERT_OK(writer->Append(Bytes("1234567")));
  ASSERT_OK(writer->Append(Bytes("1")));
  ASSERT_OK(writer->Publish());
  ASSERT_OK(writer->Sync());
  ASSERT_OK_AND_ASSIGN(auto object, store->Open("c"));
  const ByteRange ranges[] = {{0, 2}, {4, 3}, {1, 1}};
  ASSERT_OK(object->ReadMany(ranges).status());
  ASSERT_OK(object->Read({0, 8}).status());
  ASSERT_OK(store->Get("a").status());
  ASSERT_OK(store->Head("a").status());
  ASSERT_OK(store->Exists("a").status());
  ASSERT_OK(store->List("", true).status());
  ASSERT_OK(store->ListNames("").status());
  ASSERT_OK(store->Rename("a", "z"));
  ASSERT_OK(store->Delete("z"));
  ASSERT_OK(store->DeleteTree("d"));

  EXPECT_EQ(counters->count(StoreOp::kPut), 1);
  EXPECT_EQ(counters->count(StoreOp::kPutIfAbsent), 1);
  EXPECT_EQ(counters->count(StoreOp::kCreate), 1);
  EXPECT_EQ(counters->count(StoreOp::kAppend), 2);
  EXPECT_EQ(counters->count(StoreOp::kFinish), 1);
  EXPECT_EQ(counters->count(StoreOp::kSync), 1);
  EXPECT_EQ(counters->count(StoreOp::kOpen), 1);
  EXPECT_EQ(counters->count(StoreOp::kRead), 2);
  EXPECT_EQ(counters->count(StoreOp::kGet), 1);
  EXPECT_EQ(counters->count(StoreOp::kHead), 1);
  EXPECT_EQ(counters->count(StoreOp::kExists), 1);
  EXPECT_EQ(counters->count(StoreOp::kList), 2);
  EXPECT_EQ(counters->count(StoreOp::kRename), 1);
  EXPECT_EQ(counters->count(StoreOp::kDelete), 1);
  EXPECT_EQ(counters->count(StoreOp::kDeleteTree), 1);
  EXPECT_EQ(counters->total(), 18);
  EXPECT_EQ(counters->ranges_read(), 3 + 1 + 1);
  EXPECT_EQ(counters->bytes_read(), 6 + 8 + 5);
  EXPECT_EQ(counters->bytes_written(), 5 + 3 + 8);
  counters->Reset();
  EXPECT_EQ(counters->total(), 0);
  EXPECT_EQ(counters->bytes_read(), 0);
}

TEST(DelayingStore, DelaysTheChosenOperation) {
  using std::chrono::milliseconds;
  auto store = MakeDelayingStore(MakeMemoryStore(),
                                 StoreDelays().Set(StoreOp::kGet, milliseconds(30)));
  const auto timed = [](auto call) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(call().ok());
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_LT(timed([&] { return store->Put("a", Bytes("x")); }), milliseconds(25));
  EXPECT_GE(timed([&] { return store->Get("a"); }), milliseconds(30));
}

// Writes through every kind of operation; the error of the first that fails.
Status WriteABit(ObjectStore* store) {
  GLAIVE_RETURN_NOT_OK(store->Put("hint", Bytes("0123456789")));
  GLAIVE_ASSIGN_OR_RETURN(auto writer, store->Create("data/file"));
  GLAIVE_RETURN_NOT_OK(writer->Append(Bytes("0123456789")));
  GLAIVE_RETURN_NOT_OK(writer->Finish());
  GLAIVE_RETURN_NOT_OK(store->PutIfAbsent("v/1", Bytes("0123456789")));
  return store->Delete("hint");
}

TEST(FaultingStore, FailsEachOperationInTurn) {
  auto injector = std::make_shared<FaultInjector>();
  auto counted = MakeFaultingStore(MakeMemoryStore(), injector);
  ASSERT_OK(WriteABit(counted.get()));
  const int64_t operations = injector->operations();
  EXPECT_EQ(operations, 6);
  EXPECT_FALSE(injector->fired());
  for (int64_t at = 0; at < operations; ++at) {
    auto inner = MakeMemoryStore();
    auto store = MakeFaultingStore(inner, injector);
    FaultPlan plan;
    plan.fail_at = at;
    plan.crash = true;
    injector->Arm(plan);
    EXPECT_KIND(ErrorKind::kIo, WriteABit(store.get()));
    EXPECT_TRUE(injector->fired());
    EXPECT_EQ(injector->operations(), at + 1);
    // Gone, for every operation.
    EXPECT_KIND(ErrorKind::kIo, store->Exists("hint").status());
    EXPECT_EQ(inner->Exists("hint").ValueOrDie(), at >= 1);
    EXPECT_EQ(inner->Exists("data/file").ValueOrDie(), at >= 4);
    EXPECT_EQ(inner->Exists("v/1").ValueOrDie(), at >= 5);
    injector->Disarm();
    ASSERT_OK(store->Exists("hint").status());
  }
}

TEST(FaultingStore, FailsOneKindOnce) {
  auto injector = std::make_shared<FaultInjector>();
  auto store = MakeFaultingStore(MakeMemoryStore(), injector);
  FaultPlan plan;
  plan.fail_at = 1;
  plan.only = StoreOp::kPut;
  plan.kind = ErrorKind::kTimeout;
  injector->Arm(plan);
  ASSERT_OK(store->Put("a", Bytes("x")));
  ASSERT_OK(store->Get("a").status());
  EXPECT_KIND(ErrorKind::kTimeout, store->Child("c")->Put("b", Bytes("x")));
  ASSERT_OK(store->Put("c", Bytes("x")));
  EXPECT_FALSE(store->Exists("c/b").ValueOrDie());
}

TEST(FaultingStore, TornWritesLeaveHalf) {
  auto injector = std::make_shared<FaultInjector>();
  auto store = MakeFaultingStore(MakeMemoryStore(), injector);
  FaultPlan plan;
  plan.fail_at = 0;
  plan.effect = FaultEffect::kTorn;
  for (const StoreOp op : {StoreOp::kPut, StoreOp::kPutIfAbsent, StoreOp::kFinish}) {
    plan.only = op;
    injector->Arm(plan);
    EXPECT_KIND(ErrorKind::kIo, WriteABit(store.get()));
    injector->Disarm();
    const char* path = op == StoreOp::kPut      ? "hint"
                       : op == StoreOp::kFinish ? "data/file"
                                                : "v/1";
    EXPECT_EQ(Text(*store->Get(path)), "01234") << StoreOpName(op);
    ASSERT_OK(store->DeleteTree(""));
  }
  // What is there is never torn by a replacing Put.
  ASSERT_OK(store->Put("hint", Bytes("old")));
  plan.only = StoreOp::kPut;
  injector->Arm(plan);
  EXPECT_KIND(ErrorKind::kIo, store->Put("hint", Bytes("new one")));
  EXPECT_EQ(Text(*store->Get("hint")), "old");
}

TEST(FaultingStore, LostRepliesAreDoneAllTheSame) {
  auto injector = std::make_shared<FaultInjector>();
  auto store = MakeFaultingStore(MakeMemoryStore(), injector);
  FaultPlan plan;
  plan.fail_at = 0;
  plan.only = StoreOp::kPutIfAbsent;
  plan.effect = FaultEffect::kDone;
  injector->Arm(plan);
  EXPECT_KIND(ErrorKind::kIo, store->PutIfAbsent("v/1", Bytes("all of it")));
  EXPECT_EQ(Text(*store->Get("v/1")), "all of it");
  EXPECT_KIND(ErrorKind::kAlreadyExists, store->PutIfAbsent("v/1", Bytes("x")));
}

}  // namespace
}  // namespace glaive::io
