#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/runtime.h"

namespace glaive {
namespace {

TEST(Cache, FindsReplacesErases) {
  Cache cache(1 << 20);
  EXPECT_EQ(cache.Get<int>("a"), nullptr);
  cache.Put("a", std::make_shared<int>(1), 100);
  cache.Put("b", std::make_shared<int>(2), 100);
  EXPECT_EQ(*cache.Get<int>("a"), 1);
  const int64_t bytes = cache.size_bytes();
  cache.Put("a", std::make_shared<int>(3), 100);
  EXPECT_EQ(*cache.Get<int>("a"), 3);
  EXPECT_EQ(cache.num_items(), 2);
  EXPECT_EQ(cache.size_bytes(), bytes);
  cache.Erase("a");
  cache.Erase("a");
  EXPECT_EQ(cache.Get<int>("a"), nullptr);
  cache.Clear();
  EXPECT_EQ(cache.num_items(), 0);
  EXPECT_EQ(cache.size_bytes(), 0);
}

TEST(Cache, DropsTheLeastRecentlyUsed) {
  Cache cache(10'000);
  for (int i = 0; i < 8; ++i) {
    cache.Put(std::to_string(i), std::make_shared<int>(i), 1'000);
  }
  EXPECT_EQ(cache.num_items(), 8);
  EXPECT_NE(cache.Get<int>("0"), nullptr);
  cache.Put("8", std::make_shared<int>(8), 1'000);
  EXPECT_NE(cache.Get<int>("0"), nullptr);
  EXPECT_EQ(cache.Get<int>("1"), nullptr);
  EXPECT_LE(cache.size_bytes(), 10'000);
}

TEST(Cache, IsBoundedWhenSharded) {
  const int64_t capacity = 64 << 20;
  Cache cache(capacity);
  for (int i = 0; i < 10'000; ++i) {
    cache.Put("key " + std::to_string(i), std::make_shared<int>(i), 100'000);
    ASSERT_LE(cache.size_bytes(), capacity);
  }
  EXPECT_GT(cache.size_bytes(), capacity * 9 / 10);
  EXPECT_NE(cache.Get<int>("key 9999"), nullptr);
  // One big item may take nearly everything; one too big is not kept, and costs nobody a
  // place.
  cache.Put("big", std::make_shared<int>(1), capacity - 1'000);
  EXPECT_NE(cache.Get<int>("big"), nullptr);
  cache.Put("too big", std::make_shared<int>(1), capacity);
  EXPECT_EQ(cache.Get<int>("too big"), nullptr);
  EXPECT_NE(cache.Get<int>("big"), nullptr);
}

TEST(Cache, ValuesOutliveTheirPlace) {
  auto cache = std::make_unique<Cache>(1 << 20);
  cache->Put("a", std::make_shared<std::string>("kept"), 10);
  auto value = cache->Get<std::string>("a");
  cache.reset();
  EXPECT_EQ(*value, "kept");
}

TEST(Cache, ConcurrentUse) {
  Cache cache(32 << 20);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 20'000; ++i) {
        const int k = static_cast<int>(random() % 1000);
        const std::string key = std::to_string(k);
        if (auto value = cache.Get<int>(key)) {
          if (*value != k) ++wrong;
        } else {
          cache.Put(key, std::make_shared<int>(k), 50'000);
        }
        if (i % 1000 == 0) cache.Erase(key);
        if (i % 7000 == 0) cache.Clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.size_bytes(), 32 << 20);
}

}  // namespace
}  // namespace glaive
