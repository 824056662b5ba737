// Speed of the parts of the LSM write path that hold rows: key map, memtable,
// generations.
//
//   memwal_bench [directory]
//
// Times are of this thread's processor where nothing waits for the disk. Generations are
// written below `directory` (default: the temporary one), beside one plain file of as
// many bytes that is written and synced.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <arrow/api.h>

#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/generation_writer.h"
#include "memwal/keys.h"
#include "memwal/memtable.h"
#include "memwal/pk_sidecar.h"
#include "runtime/runtime.h"
#include "table/dataset.h"

namespace glaive::memwal {
namespace {

double Now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The best of several rounds.
double Best(int rounds, const std::function<void()>& body,
            clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double start = Now(clock);
    body();
    best = std::min(best, Now(clock) - start);
  }
  return best;
}

// Keeps the compiler from dropping what was computed.
int64_t sink = 0;

EncodedKeys Int64Keys(int64_t count, bool shuffled) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = i;
  if (shuffled) std::shuffle(values.begin(), values.end(), std::mt19937_64(1));
  arrow::Int64Builder builder;
  if (!builder.AppendValues(values).ok()) return {};
  const std::shared_ptr<arrow::Array> array = builder.Finish().ValueOrDie();
  return EncodeKeys(std::span(&array, 1)).ValueOrDie();
}

void BenchKeyMap() {
  for (const int64_t count : {100'000, 1'000'000}) {
    const EncodedKeys keys = Int64Keys(count, true);
    const EncodedKeys probes = Int64Keys(count, true);
    const auto ns = [&](double seconds) {
      return 1e9 * seconds / static_cast<double>(count);
    };
    KeyMap map;
    const double put = Best(5, [&] {
      map = KeyMap();
      for (int64_t i = 0; i < count; ++i) {
        sink += map.Put(keys[i], static_cast<uint32_t>(i));
      }
    });
    const double put_all = Best(5, [&] {
      map = KeyMap();
      for (int64_t i = 0; i < count; i += 1000) {
        sink += map.PutAll(keys, i, 1000, static_cast<uint32_t>(i), nullptr);
      }
    });
    const double again = Best(5, [&] {
      for (int64_t i = 0; i < count; i += 1000) {
        sink += map.PutAll(keys, i, 1000, static_cast<uint32_t>(i), nullptr);
      }
    });
    const double find = Best(5, [&] {
      for (int64_t i = 0; i < count; ++i) sink += map.Find(probes[i]);
    });
    std::printf(
        "KeyMap, %7lld int64 keys: Put %.0f ns, in batches %.0f ns (known keys %.0f ns), "
        "Find %.0f ns; %.1f bytes per key\n",
        static_cast<long long>(count), ns(put), ns(put_all), ns(again), ns(find),
        static_cast<double>(map.size_bytes()) / static_cast<double>(count));
  }
}

std::shared_ptr<arrow::Schema> BaseSchema(int dim) {
  return arrow::schema(
      {arrow::field(
           "id", arrow::int64(), false,
           arrow::key_value_metadata({"lance-schema:unenforced-primary-key"}, {"true"})),
       arrow::field("text", arrow::utf8()),
       arrow::field("vector", arrow::fixed_size_list(arrow::float32(), dim))});
}

BatchVector MakeBatches(const FreshSchema& schema, int64_t rows, int64_t batch_rows,
                        int dim) {
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  BatchVector batches;
  for (int64_t at = 0; at < rows; at += batch_rows) {
    arrow::Int64Builder ids;
    arrow::StringBuilder texts;
    auto floats = std::make_shared<arrow::FloatBuilder>();
    arrow::FixedSizeListBuilder vectors(arrow::default_memory_pool(), floats, dim);
    arrow::BooleanBuilder tombstones;
    Status status;
    for (int64_t i = at; i < std::min(rows, at + batch_rows); ++i) {
      status &= ids.Append(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
      status &= texts.Append("text of row " + std::to_string(i));
      status &= vectors.Append();
      for (int d = 0; d < dim; ++d) status &= floats->Append(normal(random));
      status &= tombstones.Append(false);
    }
    if (!status.ok()) return {};
    const int64_t count = ids.length();
    batches.push_back(arrow::RecordBatch::Make(
        schema.storage(), count,
        {ids.Finish().ValueOrDie(), texts.Finish().ValueOrDie(),
         vectors.Finish().ValueOrDie(), tombstones.Finish().ValueOrDie()}));
  }
  return batches;
}

void BenchMemtable(const std::shared_ptr<const FreshSchema>& schema) {
  constexpr int64_t kRows = 1'000'000;
  for (const int64_t batch_rows : {1, 1000}) {
    const int64_t rows = batch_rows == 1 ? 100'000 : kRows;
    const BatchVector batches = MakeBatches(*schema, rows, batch_rows, 4);
    std::unique_ptr<Memtable> memtable;
    const double append = Best(3, [&] {
      memtable = std::make_unique<Memtable>(schema, 1);
      for (const auto& batch : batches) sink += memtable->Append({batch}).ok() ? 1 : 0;
    });
    const EncodedKeys probes = Int64Keys(rows, true);
    const int64_t lookups = 100'000;
    const double lookup = Best(3, [&] {
      const auto view = memtable->Read(memtable->num_batches());
      for (int64_t i = 0; i < lookups; ++i) {
        const int64_t row = view.Find(probes[i]);
        if (row >= 0) sink += view.Row(row)->num_columns();
      }
    });
    const double views = Best(3, [&] {
      for (int64_t i = 0; i < lookups; ++i) {
        sink += memtable->Read(memtable->num_batches()).num_rows();
      }
    });
    const double live =
        Best(3, [&] { sink += memtable->Read(memtable->num_batches()).num_live(); });
    std::printf(
        "Memtable, %lld rows in batches of %lld: Append %.2f M rows/s, Find + Row %.0f "
        "ns, view %.0f ns, live rows %.2f ms\n",
        static_cast<long long>(rows), static_cast<long long>(batch_rows),
        static_cast<double>(rows) / append / 1e6, 1e9 * lookup / lookups,
        1e9 * views / lookups, 1e3 * live);
  }
}

void BenchGenerations(const table::Dataset& base,
                      const std::shared_ptr<const FreshSchema>& schema,
                      const std::string& directory, int dim) {
  for (const int64_t rows : {100, 100'000}) {
    Memtable memtable(schema, 1);
    if (!memtable.Append(MakeBatches(*schema, rows, 1000, dim)).ok()) return;
    const auto view = memtable.Read(memtable.num_batches());
    const int rounds = rows == 100 ? 20 : 3;
    const double write = Best(
        rounds,
        [&] {
          sink += WriteGeneration(base.env(), ShardId::Derive("bench"), view, {}).ok();
        },
        CLOCK_MONOTONIC);
    const std::vector<uint8_t> plain(static_cast<size_t>(memtable.row_bytes()), 0x5A);
    auto store = io::OpenLocalStore(directory, true).ValueOrDie();
    const double file = Best(
        rounds, [&] { sink += store->Put("plain", plain).ok(); }, CLOCK_MONOTONIC);
    const auto path =
        WriteGeneration(base.env(), ShardId::Derive("bench"), view, {})->path();
    const auto generation =
        table::Dataset::Open(
            {base.env().runtime,
             base.env().store->Child(ShardDir(ShardId::Derive("bench")) + "/" + path)})
            .ValueOrDie();
    const double load = Best(3, [&] {
      sink += GenerationKeys::Load(*generation, {"id"}).ValueOrDie()->num_keys();
    });
    std::printf(
        "WriteGeneration, %lld rows of %.1f KB: %.1f ms, %.0f MB/s; one plain file: %.1f "
        "ms (%.2f times); GenerationKeys::Load %.2f ms\n",
        static_cast<long long>(rows),
        static_cast<double>(memtable.row_bytes()) / static_cast<double>(rows) / 1e3,
        1e3 * write, static_cast<double>(memtable.row_bytes()) / write / 1e6, 1e3 * file,
        write / file, 1e3 * load);
  }
}

int Run(const std::string& parent) {
  std::string directory = parent + "/memwal-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  BenchKeyMap();
  {
    constexpr int kDim = 384;
    auto runtime = Runtime::Make().ValueOrDie();
    auto make = [&](const std::string& name, int dim) {
      auto store = io::OpenLocalStore(directory + "/" + name, true).ValueOrDie();
      return table::Dataset::WriteEmpty({runtime, store}, *BaseSchema(dim), {})
          .ValueOrDie();
    };
    const auto narrow = make("narrow", 4);
    BenchMemtable(FreshSchema::Make(*narrow).ValueOrDie());
    const auto wide = make("wide", kDim);
    BenchGenerations(*wide, FreshSchema::Make(*wide).ValueOrDie(), directory + "/plain",
                     kDim);
  }
  std::filesystem::remove_all(directory);
  return sink == 42 ? 1 : 0;
}

}  // namespace
}  // namespace glaive::memwal

int main(int argc, char** argv) {
  return glaive::memwal::Run(argc > 1 ? argv[1]
                                      : std::filesystem::temp_directory_path().string());
}
