// Speed of the distance kernels: bytes of vectors per second, beside a plain read of the
// same bytes.
//
//   distance_bench [--quick]
//
// For each tier that this CPU can run: one query over vectors in memory and in cache, and
// 32 queries at once. Every figure is the best of several interleaved rounds on one
// thread.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "simd/dispatch.h"

namespace glaive::simd {
namespace {

constexpr size_t kDim = 384;
constexpr size_t kNumQueries = 32;

// Processor time of this thread: other programs on the machine disturb it less than the
// clock.
double Seconds(const std::function<void()>& body) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

// Adds up all words, 64 bytes at a time: what reading the bytes costs at least.
uint64_t ReadAll(const uint8_t* bytes, size_t size) {
  typedef uint64_t Words __attribute__((vector_size(16), aligned(1), may_alias));
  const Words* words = reinterpret_cast<const Words*>(bytes);
  Words a = {}, b = {}, c = {}, d = {};
  for (size_t i = 0; i + 4 <= size / sizeof(Words); i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  const Words sum = (a + b) + (c + d);
  return sum[0] + sum[1];
}

struct Case {
  std::string name;
  double bytes;  // of vectors, per run
  std::function<void()> run;
  double best = 1e9;
};

struct Data {
  Data(size_t n, size_t rounds)
      : num_vectors(n), repeats(rounds), storage(n * kDim * 8 + 64) {
    // As in a mapped file, whose pages begin at multiples of 64 bytes.
    const size_t address = reinterpret_cast<size_t>(storage.data());
    bytes = {storage.data() + (64 - address % 64) % 64, n * kDim * 8};
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    float* floats = reinterpret_cast<float*>(bytes.data());
    // Halves and doubles are read from the same bytes; small floats keep all of them
    // finite.
    for (size_t i = 0; i < bytes.size() / 4; ++i) floats[i] = uniform(random);
    out.resize(n * kNumQueries);
  }
  size_t num_vectors;
  size_t repeats;  // passes over the vectors per run
  std::vector<uint8_t> storage;
  std::span<uint8_t> bytes;
  std::vector<float> out;
};

template <typename T>
void AddCases(const std::string& label, const VectorKernels<T>& kernels, Data* data,
              bool in_cache, std::vector<Case>* cases) {
  const T* vectors = reinterpret_cast<const T*>(data->bytes.data());
  const T* queries = vectors;
  const size_t n = data->num_vectors;
  float* out = data->out.data();
  const double bytes = static_cast<double>(n * kDim * sizeof(T) * data->repeats);
  const auto add = [&](const std::string& name, auto call) {
    cases->push_back({name + " " + label, bytes, [=, repeats = data->repeats] {
                        for (size_t i = 0; i < repeats; ++i) call();
                      }});
  };
  add("l2", [=] { kernels.l2(queries, vectors, kDim, n, kDim, out); });
  add("dot", [=] { kernels.dot(queries, vectors, kDim, n, kDim, out); });
  add("cosine", [=] { kernels.cosine(queries, 1, vectors, kDim, n, kDim, out); });
  if (in_cache) return;
  add("l2_many x32", [=] {
    kernels.l2_many(queries, kDim, kNumQueries, vectors, kDim, n, kDim, out, n);
  });
  const std::vector<double> norms(kNumQueries, 1);
  add("cosine_many x32", [=] {
    kernels.cosine_many(queries, kDim, kNumQueries, norms.data(), vectors, kDim, n, kDim,
                        out, n);
  });
}

void Run(Data* data, bool in_cache, int rounds) {
  volatile uint64_t sink = 0;
  std::printf("\n%zu vectors of %zu dimensions, %s\n", data->num_vectors, kDim,
              in_cache ? "in the second-level cache" : "in memory");
  std::printf("%-28s %-10s %9s %12s\n", "kernel", "tier", "GB/s", "of a read");
  const size_t float_bytes = data->num_vectors * kDim * sizeof(float);
  Case read{"read", static_cast<double>(float_bytes * data->repeats), [&] {
              for (size_t i = 0; i < data->repeats; ++i) {
                sink = sink + ReadAll(data->bytes.data(), float_bytes);
              }
            }};
  std::vector<std::pair<std::string, std::vector<Case>>> tiers;
  for (const Tier tier : AvailableTiers()) {
    const KernelTable table = KernelsOfTier(tier).ValueOrDie();
    std::vector<Case> cases;
    AddCases("f32", table.f32, data, in_cache, &cases);
    AddCases("f16", table.f16, data, in_cache, &cases);
    AddCases("bf16", table.bf16, data, in_cache, &cases);
    AddCases("f64", table.f64, data, in_cache, &cases);
    AddCases("u8", table.u8, data, in_cache, &cases);
    const auto hamming = table.bits.hamming;
    cases.push_back({"hamming", read.bytes / 4, [=] {
                       for (size_t i = 0; i < data->repeats; ++i) {
                         hamming(data->bytes.data(), data->bytes.data(), kDim,
                                 data->num_vectors, kDim, data->out.data());
                       }
                     }});
    tiers.emplace_back(TierName(tier), std::move(cases));
  }
  for (int round = 0; round < rounds; ++round) {
    read.best = std::min(read.best, Seconds(read.run));
    for (auto& [name, cases] : tiers) {
      for (Case& c : cases) c.best = std::min(c.best, Seconds(c.run));
    }
  }
  const double read_speed = read.bytes / read.best;
  std::printf("%-28s %-10s %9.1f\n", "read", "", read_speed / 1e9);
  for (size_t i = 0; i < tiers[0].second.size(); ++i) {
    for (const auto& [tier, cases] : tiers) {
      const Case& c = cases[i];
      const double speed = c.bytes / c.best;
      std::printf("%-28s %-10s %9.1f %11.0f%%\n", c.name.c_str(), tier.c_str(),
                  speed / 1e9, 100 * speed / read_speed);
    }
  }
}

}  // namespace
}  // namespace glaive::simd

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  glaive::simd::Data memory(quick ? 20'000 : 100'000, 1);
  glaive::simd::Run(&memory, false, quick ? 3 : 7);
  glaive::simd::Data cache(200, quick ? 100 : 1'000);
  glaive::simd::Run(&cache, true, quick ? 3 : 7);
  return 0;
}
