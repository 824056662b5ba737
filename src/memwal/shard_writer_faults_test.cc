// One fault at every store call of a writer's life, with each effect: what was
// acknowledged stays, what was not is there wholly or not at all.
#include <algorithm>

#include "io/faulting_store.h"
#include "memwal/writer_test_util.h"

namespace glaive::memwal {
namespace {

// A life whose calls are the same each time: nothing happens in the background but what
// somebody waits for.
struct Outcome {
  std::vector<Contents> possible{1};  // the last one: everything that was tried
  bool failed = false;
};

Outcome Live(const table::Dataset::Ptr& base, WriterConfig config) {
  Outcome outcome;
  std::shared_ptr<ShardWriter> writer;
  Contents& done = outcome.possible[0];
  const auto call = [&](const WriterCall& what) {
    if (writer == nullptr) return;
    const Status status = what.Run(*writer);
    if (status.ok()) {
      what.ApplyTo(&done);
      // Every one that is acknowledged can be read.
      auto contents = ReadWriter(*writer);
      if (contents.ok()) {
        EXPECT_EQ(*contents, done);
      } else {
        outcome.failed = true;
      }
      return;
    }
    outcome.failed = true;
    const ErrorKind kind = KindOf(status);
    EXPECT_TRUE(kind == ErrorKind::kWriterFailed) << status.ToString();
    // Nothing of a writer that failed is shown.
    EXPECT_KIND(ErrorKind::kWriterFailed, writer->View().status());
    if (outcome.possible.size() == 1) {
      Contents with = done;
      what.ApplyTo(&with);
      outcome.possible.push_back(with);
    }
  };
  const auto open = [&] {
    writer.reset();
    auto opened = ShardWriter::Open(base, TestShard(), config);
    if (opened.ok()) {
      writer = *opened;
    } else {
      outcome.failed = true;
    }
  };
  open();
  call({{{{1, "a"}, {2, "b"}}, {{1, "c"}}}, {}});
  call({{}, {{2}, {3}}});
  if (writer != nullptr) outcome.failed |= !writer->Flush().ok();
  call({{{{2, "d"}, {4, "e"}}}, {}});
  if (outcome.failed) return outcome;  // a second writer could hide what became of it
  open();
  call({{{{5, "f"}}}, {}});
  if (writer != nullptr) outcome.failed |= !writer->Close().ok();
  return outcome;
}

TEST(ShardWriterFaults, AtEveryStoreCall) {
  for (const auto effect :
       {io::FaultEffect::kNotDone, io::FaultEffect::kTorn, io::FaultEffect::kDone}) {
    for (const bool crash : {false, true}) {
      int survived = 0, failed = 0;
      // Each call under soak; else every third one, others each time.
      const int64_t step = Soak() ? 1 : 3;
      for (int64_t at = static_cast<int64_t>(TestSeed() % 3) % step;; at += step) {
        SCOPED_TRACE("effect " + std::to_string(static_cast<int>(effect)) +
                     (crash ? ", crash" : "") + ", call " + std::to_string(at));
        const auto faults = std::make_shared<io::FaultInjector>();
        const auto store = io::MakeMemoryStore();
        auto base = MakeLsmTable(MakeEnv(io::MakeFaultingStore(store, faults), 1));
        ASSERT_TRUE(base.ok()) << base.status().ToString();
        WriterConfig config;
        config.wal_persist_retry_base_delay_ms = 0;
        io::FaultPlan plan;
        plan.fail_at = at;
        plan.effect = effect;
        plan.crash = crash;
        faults->Arm(plan);
        const Outcome outcome = Live(*base, config);
        const bool fired = faults->fired();
        faults->Disarm();
        if (!fired) {
          EXPECT_FALSE(outcome.failed);
          break;
        }
        (outcome.failed ? failed : survived)++;

        auto again = ShardWriter::Open(*base, TestShard(), config);
        if (effect == io::FaultEffect::kTorn &&
            KindOf(again.status()) == ErrorKind::kCorruption) {
          // Half a manifest under its final name: no store that we know does that. What
          // counts is that it is told.
          continue;
        }
        ASSERT_TRUE(again.ok()) << again.status().ToString();
        auto contents = ReadWriter(**again);
        ASSERT_TRUE(contents.ok()) << contents.status().ToString();
        EXPECT_TRUE(std::find(outcome.possible.begin(), outcome.possible.end(),
                              *contents) != outcome.possible.end())
            << testing::PrintToString(*contents) << " instead of "
            << testing::PrintToString(outcome.possible[0]);
        // And life goes on.
        ASSERT_TRUE((*again)->Put({MakeRows({{9, "z"}})}).ok());
        ASSERT_TRUE((*again)->Close().ok());
      }
      EXPECT_GT(step * (survived + failed), 40);
      if (crash) {
        EXPECT_GT(failed, survived);
      }
    }
  }
}

}  // namespace
}  // namespace glaive::memwal
