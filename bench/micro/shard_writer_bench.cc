// Puts of a shard's writer beside the plain files that they come down to.
//
//   shard_writer_bench [directory]
//
// Each put line is paired: one put, then one file of the same bytes that is written,
// (synced,) linked into place (and its directory synced), by turns, so that both meet the
// same disk. `cpu` is what the putting thread computes for a put on a store that does
// nothing.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <arrow/api.h>

#include "io/object_store.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

using Clock = std::chrono::steady_clock;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).ValueUnsafe();
}
void Must(const Status& status) {
  Must(Result<int>(status.ok() ? Result<int>(0) : status));
}

double Micros(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}
// Of this thread's processor, so that a busy machine matters less.
double CpuMicros() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) +
         1e-3 * static_cast<double>(time.tv_nsec);
}
double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::shared_ptr<arrow::Schema> BenchSchema() {
  return arrow::schema(
      {arrow::field(
           "id", arrow::int64(), false,
           arrow::key_value_metadata({"lance-schema:unenforced-primary-key"}, {"true"})),
       arrow::field("payload", arrow::fixed_size_list(arrow::float32(), 400))});
}

// Rows of 1.6 KB.
std::shared_ptr<arrow::RecordBatch> MakeRows(int64_t first, int64_t rows) {
  arrow::Int64Builder id;
  for (int64_t i = 0; i < rows; ++i) Must(id.Append(first + i));
  arrow::FloatBuilder values;
  Must(values.AppendValues(std::vector<float>(static_cast<size_t>(rows) * 400, 1.5F)));
  auto list =
      Must(arrow::FixedSizeListArray::FromArrays(Must(values.Finish()), int32_t{400}));
  return arrow::RecordBatch::Make(BenchSchema(), rows, {Must(id.Finish()), list});
}

table::Dataset::Ptr MakeTable(std::shared_ptr<io::ObjectStore> store) {
  table::TableEnv env{Must(Runtime::Make()), std::move(store)};
  auto base = Must(table::Dataset::WriteEmpty(env, *BenchSchema(), {}));
  InitializeOptions options;
  options.sharding = ShardingKind::kUnsharded;
  return Must(Initialize(base, options));
}

table::Dataset::Ptr MakeTable(const std::string& path) {
  std::filesystem::remove_all(path);
  return MakeTable(Must(io::OpenLocalStore(path, true)));
}

std::shared_ptr<ShardWriter> Open(const table::Dataset::Ptr& base,
                                  const WriterConfig& config) {
  return Must(ShardWriter::Open(base, ShardId::Derive("unsharded"), config));
}

// As any careful program would write a file that others read.
void WriteFile(const std::string& directory, int64_t number, const std::string& bytes,
               bool sync) {
  const std::string name = directory + "/" + std::to_string(number);
  const std::string temporary = name + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const auto size = static_cast<ssize_t>(bytes.size());
  bool ok = fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == size;
  if (sync) ok = ok && ::fsync(fd) == 0;
  ::close(fd);
  ok = ok && ::link(temporary.c_str(), name.c_str()) == 0;
  ::unlink(temporary.c_str());
  if (sync) {
    const int dir = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = ok && ::fsync(dir) == 0;
    ::close(dir);
  }
  if (!ok) std::exit(1);
}

// Takes everything and keeps nothing.
class NullStore : public io::ObjectStore {
 public:
  explicit NullStore(std::shared_ptr<io::ObjectStore> inner) : inner_(std::move(inner)) {}
  const std::string& root() const override { return inner_->root(); }
  std::shared_ptr<ObjectStore> Child(std::string_view path) override {
    return inner_->Child(path);
  }
  bool lists_in_order() const override { return inner_->lists_in_order(); }
  Result<std::shared_ptr<io::RandomAccessObject>> Open(
      std::string_view path, std::optional<int64_t> hint) override {
    return inner_->Open(path, hint);
  }
  Result<std::shared_ptr<arrow::Buffer>> Get(std::string_view path) override {
    return inner_->Get(path);
  }
  Result<io::ObjectInfo> Head(std::string_view path) override {
    return inner_->Head(path);
  }
  Result<bool> Exists(std::string_view path) override {
    if (dropping && path.ends_with(".arrow")) return true;
    return inner_->Exists(path);
  }
  Result<std::vector<io::ObjectInfo>> List(std::string_view prefix,
                                           bool recursive) override {
    return inner_->List(prefix, recursive);
  }
  Result<std::vector<std::string>> ListNames(std::string_view directory) override {
    return inner_->ListNames(directory);
  }
  Result<std::unique_ptr<io::ObjectWriter>> Create(std::string_view path) override {
    return inner_->Create(path);
  }
  Status Put(std::string_view path, std::span<const uint8_t> bytes,
             bool durable) override {
    return inner_->Put(path, bytes, durable);
  }
  Status PutPartsIfAbsent(std::string_view path, io::ByteParts parts,
                          bool durable) override {
    if (dropping && path.ends_with(".arrow")) return Status::OK();
    return inner_->PutPartsIfAbsent(path, parts, durable);
  }
  Status Delete(std::string_view path) override { return inner_->Delete(path); }
  Status DeleteTree(std::string_view prefix) override {
    return inner_->DeleteTree(prefix);
  }
  Status Rename(std::string_view from, std::string_view to) override {
    return inner_->Rename(from, to);
  }
  bool dropping = false;

 private:
  const std::shared_ptr<io::ObjectStore> inner_;
};

void BenchCpu() {
  for (const int64_t rows : {1, 100, 1000}) {
    auto store = std::make_shared<NullStore>(io::MakeMemoryStore());
    const auto base = MakeTable(store);
    store->dropping = true;
    const auto writer = Open(base, {});
    std::vector<double> micros;
    for (int64_t i = 0; i < 2000 && i * rows < 90'000; ++i) {
      const auto batch = MakeRows(i * rows, rows);
      const auto start = Clock::now();
      Must(writer->Put({batch}));
      micros.push_back(Micros(start));
    }
    std::printf("cpu    %5lld rows: %8.1f us\n", static_cast<long long>(rows),
                Median(micros));
    writer->Abort();
  }
}

void BenchOneCaller(const std::string& directory, Durability durability) {
  const bool sync = durability == Durability::kFsync;
  for (const int64_t rows : {1, 100}) {
    const auto base = MakeTable(directory + "/t.lance");
    const std::string plain = directory + "/plain";
    std::filesystem::remove_all(plain);
    std::filesystem::create_directories(plain);
    const auto writer = Open(base, {.durability = durability});
    std::vector<double> puts, files;
    std::string bytes;
    for (int64_t i = 0; i < (sync ? 200 : 1000); ++i) {
      if (i * rows >= 90'000) break;
      const auto batch = MakeRows(i * rows, rows);
      const int64_t before = writer->stats().wal_flush_bytes;
      auto start = Clock::now();
      Must(writer->Put({batch}));
      puts.push_back(Micros(start));
      bytes.resize(static_cast<size_t>(writer->stats().wal_flush_bytes - before));
      start = Clock::now();
      WriteFile(plain, i, bytes, sync);
      files.push_back(Micros(start));
    }
    std::printf("%-6s %5lld rows, 1 caller: put %8.1f us, file %8.1f us, ratio %.2f\n",
                sync ? "fsync" : "os", static_cast<long long>(rows), Median(puts),
                Median(files), Median(puts) / Median(files));
  }
}

double RowsPerSecond(const std::string& directory, int callers, Durability durability) {
  const auto base = MakeTable(directory + "/t.lance");
  const auto writer = Open(base, {.durability = durability});
  const auto end = Clock::now() + std::chrono::milliseconds(1500);
  std::vector<std::thread> threads;
  std::vector<int64_t> done(static_cast<size_t>(callers));
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; Clock::now() < end; ++i) {
        Must(writer->Put({MakeRows(i * callers + t, 1)}));
        done[static_cast<size_t>(t)]++;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return static_cast<double>(std::accumulate(done.begin(), done.end(), int64_t{0})) / 1.5;
}

void BenchSustained(const std::string& directory, Durability durability) {
  const auto base = MakeTable(directory + "/t.lance");
  const auto writer = Open(base, {.durability = durability});
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (int64_t i = 0; i < 100; ++i) batches.push_back(MakeRows(i * 1000, 1000));
  const auto start = Clock::now();
  int64_t rows = 0;
  double before_flush = 0;
  const double cpu_before = CpuMicros();
  while (Micros(start) < 3e6) {
    for (const auto& batch : batches) Must(writer->Put({batch}));
    rows += 100'000;
    if (before_flush == 0) before_flush = 100'000 / Micros(start) * 1e6;
  }
  const double wall = Micros(start), cpu = CpuMicros() - cpu_before;
  std::printf(
      "%-6s 1000 rows of 1.6 KB, sustained: %.0f rows/s (first memtable %.0f, "
      "%.0f by processor time of the caller), %lld generations\n",
      durability == Durability::kFsync ? "fsync" : "os",
      static_cast<double>(rows) / wall * 1e6, before_flush,
      static_cast<double>(rows) / cpu * 1e6,
      static_cast<long long>(writer->stats().memtable_flush_count));
}

void BenchReplay(const std::string& directory) {
  const auto base = MakeTable(directory + "/t.lance");
  {
    const auto writer = Open(base, {.durability = Durability::kOs});
    for (int64_t i = 0; i < 99; ++i) Must(writer->Put({MakeRows(i * 1000, 1000)}));
  }
  const auto start = Clock::now();
  const auto writer = Open(base, {.durability = Durability::kOs});
  std::printf("replay of 99,000 rows of 1.6 KB in 99 entries: %.1f ms\n",
              Micros(start) / 1e3);
}

int Run(const std::string& directory) {
  BenchCpu();
  BenchOneCaller(directory, Durability::kOs);
  BenchOneCaller(directory, Durability::kFsync);
  for (const Durability durability : {Durability::kOs, Durability::kFsync}) {
    const double one = RowsPerSecond(directory, 1, durability);
    const double many = RowsPerSecond(directory, 16, durability);
    std::printf("%-6s 1 row: 1 caller %.0f rows/s, 16 callers %.0f rows/s, ratio %.1f\n",
                durability == Durability::kFsync ? "fsync" : "os", one, many, many / one);
  }
  BenchSustained(directory, Durability::kOs);
  BenchReplay(directory);
  return 0;
}

}  // namespace
}  // namespace glaive::memwal

int main(int argc, char** argv) {
  const std::string directory =
      argc > 1 ? argv[1]
               : (std::filesystem::temp_directory_path() / "shard_writer_bench").string();
  std::filesystem::create_directories(directory);
  const int code = glaive::memwal::Run(directory);
  std::filesystem::remove_all(directory);
  return code;
}
