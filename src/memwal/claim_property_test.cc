// Writers that fight for one shard over stores that fail at random, beside a collector
// that removes whatever it may: no acknowledged entry is lost or doubled, and none is
// acknowledged to a writer whose successor has opened the shard.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <arrow/api.h>

#include "io/store_hook.h"
#include "memwal/shard_manifest.h"
#include "memwal/test_util.h"
#include "memwal/wal.h"

namespace glaive::memwal {
namespace {

// Fails one call in `one_in`, done or not, and tears entries of the log.
class RandomFaults : public io::StoreHook {
 public:
  RandomFaults(uint64_t seed, int one_in) : random_(seed), one_in_(one_in) {}
  void Pause(bool paused) { paused_ = paused; }

  io::HookVerdict Before(io::StoreOp, std::string_view path) override {
    std::lock_guard lock(mutex_);
    if (paused_ || one_in_ == 0 || random_() % static_cast<uint64_t>(one_in_) != 0) {
      return {};
    }
    const bool log = path.ends_with(".arrow");
    const io::FaultEffect effects[] = {io::FaultEffect::kNotDone, io::FaultEffect::kDone,
                                       io::FaultEffect::kTorn};
    return {IoError("the disk says no"), effects[random_() % (log ? 3 : 2)]};
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;  // guarded by mutex_
  const int one_in_;
  std::atomic<bool> paused_{false};
};

std::shared_ptr<arrow::RecordBatch> MakeRow(int64_t value) {
  arrow::Int64Builder builder;
  EXPECT_TRUE(builder.Append(value).ok());
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("id", arrow::int64())}), 1,
                                  {builder.Finish().ValueOrDie()});
}

void AddValues(const WalReader::Tail& tail, std::vector<int64_t>* values) {
  for (const WalEntry& entry : tail.entries) {
    for (const auto& batch : entry.batches) {
      values->push_back(
          static_cast<const arrow::Int64Array&>(*batch->column(0)).Value(0));
    }
  }
}

class Shard {
 public:
  explicit Shard(std::shared_ptr<io::ObjectStore> store) : store_(std::move(store)) {}

  // One life of a writer: claim, replay, appends, now and then a flush. `next` numbers
  // its rows.
  Status Live(const std::shared_ptr<io::ObjectStore>& store, std::mt19937_64& random,
              int64_t* next) {
    const auto manifests = std::make_shared<ShardManifests>(store, shard_);
    GLAIVE_ASSIGN_OR_RETURN(ShardManifest manifest, manifests->Claim(0));
    const uint64_t epoch = manifest.writer_epoch();
    {
      std::lock_guard lock(mutex_);
      EXPECT_TRUE(epochs_.insert(epoch).second) << "epoch " << epoch << " claimed twice";
    }
    WalAppender appender(store, manifests, epoch,
                         {.max_persist_retries = 2, .retry_base_delay_us = 0});
    const WalReader reader(store, shard_);
    std::vector<int64_t> unflushed;
    const uint64_t first = manifest.replay_after_wal_entry_position() + 1;
    GLAIVE_ASSIGN_OR_RETURN(auto tail, reader.ReadFrom(first));
    GLAIVE_RETURN_NOT_OK(appender.ReplaceTorn(tail.torn));
    AddValues(tail, &unflushed);
    if (epoch > 1) {
      GLAIVE_RETURN_NOT_OK(appender.AppendSentinel(tail.next_position).status());
      GLAIVE_ASSIGN_OR_RETURN(tail, reader.ReadFrom(tail.next_position));
      GLAIVE_RETURN_NOT_OK(appender.ReplaceTorn(tail.torn));
      AddValues(tail, &unflushed);
    }
    for (const WalEntry& entry : tail.entries) {
      if (entry.header.writer_epoch > epoch) return Fenced("while opening");
    }
    // From here on nobody before us may append.
    uint64_t known = opened_;
    while (known < epoch && !opened_.compare_exchange_weak(known, epoch)) {
    }
    appender.set_next_position(tail.next_position);
    for (uint64_t i = random() % 30; i > 0; --i) {
      const int64_t value = (*next)++;
      const uint64_t newest = opened_;
      GLAIVE_ASSIGN_OR_RETURN(const auto entry,
                              EncodeWalEntry({epoch, 1}, {MakeRow(value)}));
      GLAIVE_RETURN_NOT_OK(appender.Append(entry).status());
      EXPECT_GE(epoch, newest) << "an append of a fenced writer succeeded";
      {
        std::lock_guard lock(mutex_);
        acknowledged_.insert(value);
      }
      unflushed.push_back(value);
      if (random() % 4 == 0) std::this_thread::yield();
      if (random() % 8 == 0) {
        GLAIVE_RETURN_NOT_OK(Flush(*manifests, epoch, appender.next_position() - 1,
                                   &manifest, &unflushed));
      }
    }
    return Status::OK();
  }

  // What nobody needs any more, oldest first.
  void Collect() {
    ShardManifests manifests(store_, shard_);
    auto latest = manifests.ReadLatest();
    if (!latest.ok() || !*latest) return;
    ASSERT_OK(manifests.PutHint((*latest)->version()));
    ASSERT_OK_AND_ASSIGN(const auto versions, manifests.ListVersions());
    for (size_t i = 0; i + 40 < versions.size(); ++i) {
      ASSERT_OK(store_->Delete(ShardManifestPath(shard_, versions[i])));
    }
    const WalReader reader(store_, shard_);
    ASSERT_OK_AND_ASSIGN(const auto positions, reader.ListPositions());
    for (size_t i = 0; i + 1 < positions.size(); ++i) {
      if (positions[i] >= (*latest)->replay_after_wal_entry_position()) break;
      ASSERT_OK(store_->Delete(WalEntryPath(shard_, positions[i])));
    }
  }

  void Check() {
    ShardManifests manifests(store_, shard_);
    ASSERT_OK_AND_ASSIGN(const auto latest, manifests.ReadLatest());
    ASSERT_TRUE(latest);
    std::vector<int64_t> values;
    for (const auto& sstable : latest->sstables()) {
      std::lock_guard lock(mutex_);
      const auto& rows = generations_[sstable.path()];
      values.insert(values.end(), rows.begin(), rows.end());
    }
    ASSERT_OK_AND_ASSIGN(const auto tail,
                         WalReader(store_, shard_)
                             .ReadFrom(latest->replay_after_wal_entry_position() + 1));
    AddValues(tail, &values);
    const std::set<int64_t> distinct(values.begin(), values.end());
    EXPECT_EQ(distinct.size(), values.size()) << "an entry is there twice";
    for (int64_t value : acknowledged_) {
      EXPECT_TRUE(distinct.contains(value)) << "acknowledged row " << value << " is lost";
    }
    // A claim may be stored although an error was reported.
    EXPECT_GE(latest->writer_epoch(), *epochs_.rbegin());
  }

  size_t num_acknowledged() const { return acknowledged_.size(); }
  size_t num_generations() const { return generations_.size(); }
  uint64_t num_claims() const { return epochs_.size(); }

 private:
  Status Flush(ShardManifests& manifests, uint64_t epoch, uint64_t covered,
               ShardManifest* manifest, std::vector<int64_t>* rows) {
    const std::string path = NewGenerationName(1);
    {
      std::lock_guard lock(mutex_);
      generations_[path] = *rows;
    }
    GLAIVE_ASSIGN_OR_RETURN(
        *manifest, manifests.Update(epoch, *manifest, [&](ShardManifest* next) {
          for (const auto& sstable : next->sstables()) {
            if (sstable.path() == path) return Status::OK();
          }
          auto* sstable = next->add_sstables();
          sstable->set_generation(next->current_generation());
          sstable->set_path(path);
          next->set_current_generation(next->current_generation() + 1);
          next->set_replay_after_wal_entry_position(covered);
          return Status::OK();
        }));
    rows->clear();
    return Status::OK();
  }

  const ShardId shard_ = ShardId::Derive("unsharded");
  const std::shared_ptr<io::ObjectStore> store_;
  std::atomic<uint64_t> opened_{0};  // the highest epoch that replayed everything
  std::mutex mutex_;
  // Guarded by mutex_:
  std::map<std::string, std::vector<int64_t>> generations_;
  std::set<int64_t> acknowledged_;
  std::set<uint64_t> epochs_;
};

struct Totals {
  uint64_t acknowledged = 0, generations = 0, fenced = 0, failed = 0;
};

void Fight(uint64_t seed, int threads, int lives, int one_in, Totals* totals) {
  const auto store = io::MakeMemoryStore();
  Shard shard(store);
  std::atomic<bool> done{false};
  std::thread collector([&] {
    while (!done) {
      shard.Collect();
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> writers;
  std::atomic<int> fenced{0}, failed{0};
  for (int t = 0; t < threads; ++t) {
    writers.emplace_back([&, t] {
      std::mt19937_64 random(seed + static_cast<uint64_t>(t) * 1000);
      const auto faults = std::make_shared<RandomFaults>(random(), one_in);
      const auto faulty = io::MakeHookedStore(store, faults);
      int64_t next = int64_t{t} << 40;
      for (int life = 0; life < lives; ++life) {
        const Status status = shard.Live(faulty, random, &next);
        const ErrorKind kind = KindOf(status);
        if (kind == ErrorKind::kFenced) ++fenced;
        if (kind == ErrorKind::kWriterFailed || kind == ErrorKind::kIo) ++failed;
        EXPECT_TRUE(status.ok() || kind == ErrorKind::kFenced || kind == ErrorKind::kIo ||
                    kind == ErrorKind::kWriterFailed)
            << status.ToString();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  done = true;
  collector.join();
  shard.Check();
  // What one fight brings is a matter of luck; over all rounds there is some of each.
  totals->acknowledged += shard.num_acknowledged();
  totals->generations += shard.num_generations();
  totals->fenced += static_cast<uint64_t>(fenced.load());
  totals->failed += static_cast<uint64_t>(failed.load());
}

TEST(ClaimPropertyTest, WritersOneAfterTheOther) {
  Totals totals;
  for (uint64_t round = 0; round < (Soak() ? 50 : 3); ++round) {
    Fight(TestSeed() + round, 1, 60, 40, &totals);
  }
  EXPECT_GT(totals.acknowledged, 0u);
  EXPECT_GT(totals.generations, 0u);
  EXPECT_GT(totals.failed, 0u);
}

TEST(ClaimPropertyTest, WritersFight) {
  Totals totals;
  for (uint64_t round = 0; round < (Soak() ? 100 : 4); ++round) {
    Fight(TestSeed() + round, 4, 25, 0, &totals);
  }
  EXPECT_GT(totals.acknowledged, 0u);
  EXPECT_GT(totals.fenced, 0u);
}

TEST(ClaimPropertyTest, WritersFightWhileTheStoreFails) {
  Totals totals;
  for (uint64_t round = 0; round < (Soak() ? 200 : 6); ++round) {
    Fight(TestSeed() + round, 3, 40, round % 2 == 0 ? 30 : 150, &totals);
  }
  EXPECT_GT(totals.acknowledged, 0u);
  EXPECT_GT(totals.failed, 0u);
}

}  // namespace
}  // namespace glaive::memwal
