// Clean-up: what stays and what goes, also when the store fails.
#include "table/cleanup.h"

#include <gtest/gtest.h>

#include "io/faulting_store.h"
#include "table/live_versions.h"
#include "table/names.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

using io::FaultEffect;

constexpr int64_t kHour = int64_t{3600} * 1'000'000;

// Versions 1 to 7: append, append, delete, delete, overwrite, append.
void MakeHistory(const TableEnv& env) {
  ASSERT_OK(Create(env, {1, 2, 3}).status());
  ASSERT_OK(Append(env, {4, 5}).status());
  ASSERT_OK_AND_ASSIGN(auto dataset, Append(env, {6}));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {2}));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {4}));
  WriteOptions overwrite;
  overwrite.mode = WriteMode::kOverwrite;
  ASSERT_OK(WriteValues(env, {9}, overwrite).status());
  ASSERT_OK(Append(env, {10}).status());
}

const std::vector<Values> kContent = {
    {1, 2, 3}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}, {1, 3, 4, 5, 6}, {1, 3, 5, 6},
    {9},       {9, 10}};

size_t CountFiles(io::ObjectStore& store) {
  auto all = store.List("", /*recursive=*/true);
  EXPECT_TRUE(all.ok());
  return all->size();
}

// Every version that is there can be read, and holds what it held.
void CheckVersions(const TableEnv& env, const std::vector<int64_t>& expected) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
  ASSERT_OK_AND_ASSIGN(auto versions, dataset->ListVersions());
  std::vector<int64_t> found;
  for (const auto& info : versions) {
    found.push_back(info.version);
    ASSERT_OK_AND_ASSIGN(auto old, dataset->Checkout(info.version));
    ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*old));
    EXPECT_EQ(values, kContent[static_cast<size_t>(info.version - 1)]);
  }
  if (!expected.empty()) {
    EXPECT_EQ(found, expected);
  }
  EXPECT_EQ(found.back(), 7);
}

TEST(CleanUp, AllButTheNewest) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  MakeHistory(env);
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
  CleanupOptions options;
  options.dry_run = true;
  options.max_files_listed = 1000;
  const size_t before = CountFiles(*env.store);
  ASSERT_OK_AND_ASSIGN(const auto plan, CleanUp(*dataset, options));
  EXPECT_EQ(CountFiles(*env.store), before);
  options.dry_run = false;
  ASSERT_OK_AND_ASSIGN(const auto report, CleanUp(*dataset, options));
  EXPECT_EQ(report.stats.old_versions, 6);
  EXPECT_EQ(report.stats.data_files_removed, 3);
  EXPECT_EQ(report.stats.deletion_files_removed, 2);
  EXPECT_EQ(report.stats.transaction_files_removed, 6);
  EXPECT_EQ(report.stats.bytes_removed, plan.stats.bytes_removed);
  EXPECT_EQ(report.files.size(), plan.files.size());
  // Two data files, manifest, transaction, hint.
  EXPECT_EQ(CountFiles(*env.store), 5u);
  CheckVersions(env, {7});
}

TEST(CleanUp, Policies) {
  struct Case {
    CleanupOptions options;
    int64_t own_version;
    std::vector<int64_t> left;
  };
  std::vector<Case> cases(7);
  cases[0] = {{.older_than_us = kHour}, 7, {1, 2, 3, 4, 5, 6, 7}};
  cases[1] = {{.older_than_us = 0}, 7, {7}};
  cases[2] = {{.retain_versions = 3}, 7, {5, 6, 7}};
  cases[3] = {{.versions = std::vector<int64_t>{1, 4, 7, 99}}, 7, {2, 3, 5, 6, 7}};
  cases[4] = {{}, 4, {4, 5, 6, 7}};
  cases[5] = {{.keep_versions = {2}}, 7, {2, 7}};
  cases[6] = {{.retain_versions = 5, .versions = std::vector<int64_t>{1, 6}},
              7,
              {2, 3, 4, 5, 6, 7}};
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const TableEnv env = MakeEnv(io::MakeMemoryStore());
    MakeHistory(env);
    ASSERT_OK(CleanUp(env, cases[i].own_version, cases[i].options).status());
    CheckVersions(env, cases[i].left);
  }
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  MakeHistory(env);
  EXPECT_EQ(KindOf(CleanUp(env, 7, {.retain_versions = 0}).status()),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(KindOf(CleanUp(env, 7, {.delete_rate_limit = 0}).status()),
            ErrorKind::kInvalidInput);
}

TEST(CleanUp, Tags) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  MakeHistory(env);
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
  ASSERT_OK(dataset->CreateTag("three", 3));
  const size_t before = CountFiles(*env.store);
  EXPECT_EQ(KindOf(CleanUp(*dataset, {}).status()), ErrorKind::kInvalidInput);
  EXPECT_EQ(CountFiles(*env.store), before);
  ASSERT_OK(CleanUp(*dataset, {.error_if_tagged_old_versions = false}).status());
  CheckVersions(env, {3, 7});
}

// The handle that a clean-up leaves at an old version must not take it for the newest.
TEST(CleanUp, AGapAfterAKeptVersionIsNoEnd) {
  auto store = io::MakeMemoryStore();
  const TableEnv other = MakeEnv(store);
  ASSERT_OK(Create(other, {1, 2, 3}).status());
  ASSERT_OK_AND_ASSIGN(auto two, Append(other, {4, 5}));
  const TableEnv env = MakeEnv(store);
  ASSERT_OK_AND_ASSIGN(auto dataset, Append(env, {6}));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {2}));
  ASSERT_OK(dataset->CreateTag("two", 2));
  ASSERT_OK(CleanUp(*dataset, {.error_if_tagged_old_versions = false}).status());
  ASSERT_OK_AND_ASSIGN(auto latest, two->Latest());
  EXPECT_EQ(latest->version(), 4);
  ASSERT_OK_AND_ASSIGN(auto appended, Append(other, {7}));
  EXPECT_EQ(appended->version(), 5);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*appended));
  EXPECT_EQ(values, (Values{1, 3, 4, 5, 6, 7}));
}

// Whatever fails, and when: no version that is left has lost a file.
TEST(CleanUpFaults, EveryOperation) {
  for (FaultEffect effect : {FaultEffect::kNotDone, FaultEffect::kDone}) {
    for (bool crash : {false, true}) {
      for (int64_t at = 0;; ++at) {
        SCOPED_TRACE(std::to_string(at) + (crash ? " crash" : "") +
                     std::to_string(static_cast<int>(effect)));
        ASSERT_LT(at, 200);
        auto store = io::MakeMemoryStore();
        MakeHistory(MakeEnv(store));
        auto injector = std::make_shared<io::FaultInjector>();
        const TableEnv env = MakeEnv(io::MakeFaultingStore(store, injector));
        injector->Arm({.fail_at = at, .only = {}, .effect = effect, .crash = crash});
        const auto report = CleanUp(env, 7, {.retain_versions = 2});
        const bool fired = injector->fired();
        injector->Disarm();
        CheckVersions(MakeEnv(store), {});
        if (::testing::Test::HasFatalFailure()) return;
        if (!fired) {
          ASSERT_OK(report.status());
          ASSERT_TRUE(report->errors.empty());
          break;
        }
        // One failure does not keep the rest from going on.
        if (report.ok() && !crash) {
          EXPECT_LE(report->stats.failed_deletes, 1);
        }
        // And the next one finishes what was left.
        ASSERT_OK(CleanUp(MakeEnv(store), 7, {.delete_unverified = true}).status());
        ASSERT_EQ(CountFiles(*store), 5u);
        CheckVersions(MakeEnv(store), {7});
      }
    }
  }
}

TEST(CleanUp, WhatCannotBeReadStopsIt) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  MakeHistory(env);
  const std::string path = ManifestPath(5, NamingScheme::kV2);
  ASSERT_OK_AND_ASSIGN(auto bytes, env.store->Get(path));
  std::string damaged = io::Text(bytes);
  damaged[damaged.size() / 3] = static_cast<char>(damaged[damaged.size() / 3] ^ 0x55);
  damaged[damaged.size() - 9] = '\x7f';
  ASSERT_OK(env.store->Put(path, io::Bytes(damaged)));
  const size_t before = CountFiles(*env.store);
  // Version 5 stays, and nobody knows what it needs.
  EXPECT_EQ(KindOf(CleanUp(MakeEnv(env.store), 7, {.retain_versions = 4}).status()),
            ErrorKind::kCorruption);
  EXPECT_EQ(CountFiles(*env.store), before);
}

TEST(LiveVersions, OfThisProcess) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  MakeHistory(env);
  EXPECT_EQ(LiveVersions(*env.store), (std::vector<int64_t>{}));
  ASSERT_OK_AND_ASSIGN(auto three, Dataset::Open(env, 3));
  ASSERT_OK_AND_ASSIGN(auto again, Dataset::Open(env, 3));
  ASSERT_OK_AND_ASSIGN(auto newest, Dataset::Open(env));
  EXPECT_EQ(LiveVersions(*env.store), (std::vector<int64_t>{3, 7}));
  three.reset();
  EXPECT_EQ(LiveVersions(*env.store), (std::vector<int64_t>{3, 7}));
  again.reset();
  EXPECT_EQ(LiveVersions(*env.store), (std::vector<int64_t>{7}));
}

TEST(Durations, AsUpstreamReadsThem) {
  constexpr int64_t kSecond = 1'000'000;
  const std::pair<const char*, int64_t> good[] = {
      {"14days", 14 * 24 * kHour}, {"2h 30m", 2 * kHour + 1800 * kSecond},
      {"90s", 90 * kSecond},       {"0s", 0},
      {"1500ms", 1500 * 1000},     {" 1 day ", 24 * kHour},
  };
  for (const auto& [text, us] : good) {
    ASSERT_OK_AND_ASSIGN(const int64_t parsed, ParseDuration(text));
    EXPECT_EQ(parsed, us) << text;
  }
  for (const char* bad :
       {"", " ", "x", "5", "5 lightyears", "-1s", "9999999999999days"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace glaive::table
