// Random lives of a shard against a plain map: faults at any store call, lost processes,
// cut power, other writers. What was acknowledged is there; what was not is there wholly
// or not at all.
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "io/power_loss_store.h"
#include "io/store_hook.h"
#include "memwal/writer_test_util.h"

namespace glaive::memwal {
namespace {

// Fails one operation, perhaps all after it too.
class Faults : public io::StoreHook {
 public:
  void Arm(uint64_t after, io::FaultEffect effect, bool crash) {
    std::lock_guard lock(mutex_);
    armed_ = true;
    left_ = after;
    effect_ = effect;
    crash_ = crash;
    down_ = false;
  }
  void Disarm() {
    std::lock_guard lock(mutex_);
    armed_ = down_ = false;
  }
  bool quiet() const {
    std::lock_guard lock(mutex_);
    return !armed_ && !down_;
  }
  bool down() const {
    std::lock_guard lock(mutex_);
    return down_;
  }
  io::HookVerdict Before(io::StoreOp, std::string_view path) override {
    std::lock_guard lock(mutex_);
    if (down_) return {IoError("the store is gone"), io::FaultEffect::kNotDone};
    if (!armed_ || left_-- > 0) return {};
    armed_ = false;
    down_ = crash_;
    // No store that we know leaves half a manifest where it was to appear at once.
    const bool whole = path.find("manifest") != std::string_view::npos;
    return {IoError("fault at ", path), whole && effect_ == io::FaultEffect::kTorn
                                            ? io::FaultEffect::kNotDone
                                            : effect_};
  }

 private:
  mutable std::mutex mutex_;
  bool armed_ = false, crash_ = false, down_ = false;
  uint64_t left_ = 0;
  io::FaultEffect effect_ = io::FaultEffect::kNotDone;
};

class Life {
 public:
  Life(uint64_t seed, bool durable) : random_(seed), faults_(std::make_shared<Faults>()) {
    config_.durable_write = durable;
    config_.max_wal_flush_interval_ms = 1 + static_cast<int64_t>(random_() % 3);
    config_.wal_persist_retry_base_delay_ms = 0;
    config_.max_memtable_rows = 15 + static_cast<int64_t>(random_() % 30);
    config_.max_memtable_batches = 3 + static_cast<int64_t>(random_() % 20);
    disk_ = std::make_shared<io::PowerLoss>();
  }

  void Run(int steps) {
    auto base = MakeLsmTable(MakeEnv(Store(), 1));
    ASSERT_TRUE(base.ok()) << base.status().ToString();
    base_ = *base;
    Reopen();
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) Step();
    faults_->Disarm();
    Reopen();
  }

 private:
  std::shared_ptr<io::ObjectStore> Store() {
    return io::MakeHookedStore(disk_->store(), faults_);
  }
  uint64_t Below(uint64_t n) { return random_() % n; }

  void Step() {
    if (faults_->down() || !writer_->health().ok()) return Recover();
    switch (Below(24)) {
      case 0:
        Arm();
        break;
      case 1: {
        const Status status = writer_->Flush().status();
        if (status.ok()) NoteDurable();
        CheckFailure(status);
        break;
      }
      case 2: {
        const Status status = writer_->Close();
        CheckFailure(status);
        if (status.ok()) NoteDurable();
        Recover();
        break;
      }
      case 3:
        Recover();
        break;
      case 4:
        Steal();
        break;
      case 5:
      case 6:
        Check();
        break;
      default:
        Call();
    }
  }

  void Call() {
    const WriterCall call = RandomCall(random_, &serial_);
    const Status status = call.Run(*writer_);
    if (status.ok()) {
      states_.push_back(states_.back());
      call.ApplyTo(&states_.back());
      if (config_.durable_write) NoteDurable();
      return;
    }
    CheckFailure(status);
    // Nothing was taken when there was no room.
    if (KindOf(status) != ErrorKind::kResourceExhausted) unsure_ = call;
  }

  void NoteDurable() { states_.erase(states_.begin(), states_.end() - 1); }

  void Arm() {
    constexpr io::FaultEffect kEffects[] = {
        io::FaultEffect::kNotDone, io::FaultEffect::kTorn, io::FaultEffect::kDone};
    faults_->Arm(Below(Below(2) == 0 ? 3 : 40), kEffects[Below(3)], Below(2) == 0);
    faulty_ = true;
  }

  void CheckFailure(const Status& status) {
    if (status.ok()) return;
    ASSERT_TRUE(faulty_) << "without a fault: " << status.ToString();
    const ErrorKind kind = KindOf(status);
    ASSERT_TRUE(kind == ErrorKind::kIo || kind == ErrorKind::kWriterFailed ||
                kind == ErrorKind::kResourceExhausted)
        << status.ToString();
  }

  void Check() {
    auto contents = ReadWriter(*writer_);
    CheckFailure(contents.status());
    if (contents.ok()) {
      ASSERT_EQ(*contents, states_.back());
    }
  }

  // Another process takes the shard.
  void Steal() {
    const auto victim = writer_;
    faults_->Disarm();
    // What the victim has not appended yet is lost with it.
    Reopen(/*drop=*/false);
    if (testing::Test::HasFatalFailure()) return;
    const WriterCall call = RandomCall(random_, &serial_);
    // Its own thread may have met a fault meanwhile.
    const bool failed = KindOf(victim->health()) == ErrorKind::kWriterFailed;
    const ErrorKind expected = failed ? ErrorKind::kWriterFailed : ErrorKind::kFenced;
    if (Below(2) == 0) {
      EXPECT_KIND(expected, victim->View().status());
      EXPECT_KIND(expected, call.Run(*victim));
    } else if (config_.durable_write) {
      EXPECT_KIND(expected, call.Run(*victim));
    } else {
      // It may not know yet; its rows are lost, as a crash would lose them.
      static_cast<void>(call.Run(*victim).ok());
    }
  }

  void Recover() {
    const bool power = Below(3) == 0;
    if (power) {
      // Nothing of the destructor gets through.
      faults_->Arm(0, io::FaultEffect::kNotDone, true);
    } else if (!faults_->down() && Below(2) == 0) {
      faults_->Disarm();
    }
    bool clean = faults_->quiet() && writer_->health().ok();
    if (clean && faulty_) {
      // An append may have met the fault, and its writer not have said so yet: only what
      // closing says is certain.
      const Status status = writer_->Close();
      CheckFailure(status);
      clean = status.ok();
    }
    writer_.reset();
    if (clean) NoteDurable();
    faults_->Disarm();
    if (power) {
      auto after = disk_->CutPower(random_);
      ASSERT_TRUE(after.ok()) << after.status().ToString();
      disk_ = *after;
      auto base = table::Dataset::Open(MakeEnv(Store(), 1));
      ASSERT_TRUE(base.ok()) << base.status().ToString();
      base_ = *base;
    }
    Reopen();
  }

  void Reopen(bool drop = true) {
    if (drop) writer_.reset();
    if (Below(6) == 0) {
      // Opening meets a fault as well.
      Arm();
      auto failed = ShardWriter::Open(base_, TestShard(), config_);
      CheckFailure(failed.status());
      failed = Status::Invalid("gone");
      faults_->Disarm();
    }
    faulty_ = false;
    auto opened = ShardWriter::Open(base_, TestShard(), config_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    writer_ = *opened;
    auto contents = ReadWriter(*writer_);
    ASSERT_TRUE(contents.ok()) << contents.status().ToString();
    ASSERT_TRUE(IsPossible(*contents))
        << testing::PrintToString(*contents) << "\nexpected\n"
        << testing::PrintToString(states_.back());
    states_ = {*contents};
    unsure_.reset();
  }

  // All that was acknowledged, perhaps with the call that failed; without durability
  // perhaps without the last calls.
  bool IsPossible(const Contents& contents) {
    if (std::find(states_.begin(), states_.end(), contents) != states_.end()) return true;
    if (!unsure_) return false;
    Contents with = states_.back();
    unsure_->ApplyTo(&with);
    return contents == with;
  }

  std::mt19937_64 random_;
  const std::shared_ptr<Faults> faults_;
  std::shared_ptr<io::PowerLoss> disk_;
  table::Dataset::Ptr base_;
  WriterConfig config_;
  std::shared_ptr<ShardWriter> writer_;
  bool faulty_ = false;  // a fault was armed since the writer was opened
  int serial_ = 0;
  // What readers saw after each call, from the last one that is known to be durable to
  // now.
  std::vector<Contents> states_{1};
  std::optional<WriterCall> unsure_;
};

void RunLives(int count, int steps, bool durable) {
  std::mt19937_64 seeds(TestSeed());
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    const uint64_t seed = seeds();
    SCOPED_TRACE("life " + std::to_string(seed));
    Life(seed, durable).Run(steps);
  }
}

TEST(ShardWriterHistory, DurableWritersLoseNothing) {
  RunLives(Soak() ? 5000 : 25, 60, /*durable=*/true);
}

TEST(ShardWriterHistory, OthersLoseTheirLastCallsOnly) {
  RunLives(Soak() ? 5000 : 15, 60, /*durable=*/false);
}

// Each thread writes rising numbers under keys of its own; -1 before the first.
struct Putters {
  static constexpr int kThreads = 16;
  std::array<std::atomic<int64_t>, kThreads> acknowledged;
  std::array<std::atomic<int64_t>, kThreads> tried;
  std::vector<std::thread> threads;

  Putters() {
    for (auto& a : acknowledged) a = -1;
    for (auto& t : tried) t = -1;
  }
  // Until a put fails or `count` are done.
  void Start(const std::shared_ptr<ShardWriter>& writer, int count, ErrorKind expected) {
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([=, this] {
        const auto slot = static_cast<size_t>(t);
        for (int64_t i = 0; i < count; ++i) {
          tried[slot] = i;
          // Two rows: never half a put.
          const Status status = writer->Put({MakeRows({{2 * t, std::to_string(i)}}),
                                             MakeRows({{2 * t + 1, std::to_string(i)}})});
          if (!status.ok()) {
            EXPECT_KIND(expected, status);
            return;
          }
          acknowledged[slot] = i;
        }
      });
    }
  }
  void Join() {
    for (auto& thread : threads) thread.join();
    threads.clear();
  }
  // `before`: what was acknowledged before the rows were read.
  void Check(const Contents& contents, const std::array<int64_t, kThreads>& before) {
    for (int t = 0; t < kThreads; ++t) {
      const auto value = [&](int64_t key) {
        const auto found = contents.find(key);
        return found == contents.end() ? int64_t{-1} : std::stoll(found->second);
      };
      const auto slot = static_cast<size_t>(t);
      EXPECT_EQ(value(2 * t), value(2 * t + 1));
      EXPECT_GE(value(2 * t), before[slot]);
      EXPECT_LE(value(2 * t), tried[slot]);
    }
  }
  std::array<int64_t, kThreads> Acknowledged() const {
    std::array<int64_t, kThreads> now;
    for (size_t i = 0; i < kThreads; ++i) now[i] = acknowledged[i];
    return now;
  }
};

TEST(ShardWriterThreads, ReadersSeeWhatWasAcknowledged) {
  for (const bool durable : {true, false}) {
    auto base = MakeLsmTable(MakeEnv(io::MakeMemoryStore()));
    ASSERT_TRUE(base.ok()) << base.status().ToString();
    auto opened = ShardWriter::Open(*base, TestShard(),
                                    {.durable_write = durable,
                                     .max_wal_flush_interval_ms = 2,
                                     .max_memtable_rows = 150});
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    const auto writer = *opened;
    Putters putters;
    putters.Start(writer, Soak() ? 2000 : 60, ErrorKind::kClosed);
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r) {
      readers.emplace_back([&, r] {
        while (!stop) {
          const auto before = putters.Acknowledged();
          auto contents = ReadWriter(*writer);
          ASSERT_TRUE(contents.ok()) << contents.status().ToString();
          putters.Check(*contents, before);
          static_cast<void>(writer->stats());
          static_cast<void>(writer->memtable_stats());
          if (r == 0) {
            EXPECT_TRUE(writer->Flush().ok());
          }
        }
      });
    }
    putters.Join();
    stop = true;
    for (auto& reader : readers) reader.join();
    ASSERT_TRUE(writer->Close().ok());
    auto next = ShardWriter::Open(*base, TestShard(), {});
    ASSERT_TRUE(next.ok()) << next.status().ToString();
    auto contents = ReadWriter(**next);
    ASSERT_TRUE(contents.ok()) << contents.status().ToString();
    putters.Check(*contents, putters.Acknowledged());
  }
}

TEST(ShardWriterThreads, TheFencedOneAcknowledgesNothingMore) {
  auto base = MakeLsmTable(MakeEnv(io::MakeMemoryStore()));
  ASSERT_TRUE(base.ok()) << base.status().ToString();
  const WriterConfig config = {.max_memtable_rows = 200};
  std::shared_ptr<ShardWriter> writer;
  for (int round = 0; round < (Soak() ? 20 : 5); ++round) {
    auto opened = ShardWriter::Open(*base, TestShard(), config);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    writer = *opened;
    Putters putters;
    putters.Start(writer, 1'000'000, ErrorKind::kFenced);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + round * 4));
    opened = ShardWriter::Open(*base, TestShard(), config);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    putters.Join();
    auto contents = ReadWriter(**opened);
    ASSERT_TRUE(contents.ok()) << contents.status().ToString();
    putters.Check(*contents, putters.Acknowledged());
    // For the next round.
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < 2 * Putters::kThreads; ++key) keys.push_back(key);
    ASSERT_TRUE((*opened)->Delete({MakeDeletes(keys)}).ok());
    writer = *opened;
  }
}

TEST(ShardWriterThreads, WritersMayGoAtAnyTime) {
  for (int round = 0; round < 10; ++round) {
    auto base = MakeLsmTable(MakeEnv(io::MakeMemoryStore()));
    ASSERT_TRUE(base.ok()) << base.status().ToString();
    auto opened = ShardWriter::Open(
        *base, TestShard(), {.durable_write = round % 2 == 0, .max_memtable_rows = 50});
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Putters putters;
    putters.Start(*opened, 1'000'000, ErrorKind::kClosed);
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    if (round % 3 == 2) {
      (*opened)->Abort();
    } else {
      EXPECT_TRUE((*opened)->Close().ok());
    }
    putters.Join();
    opened = ShardWriter::Open(*base, TestShard(), {});
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    auto contents = ReadWriter(**opened);
    ASSERT_TRUE(contents.ok()) << contents.status().ToString();
    if (round % 2 == 0 || round % 3 != 2) {
      putters.Check(*contents, putters.Acknowledged());
    }
  }
}

}  // namespace
}  // namespace glaive::memwal
