// Updates: rows leave their fragments and come back in new ones, with their ids; two
// handles in both orders.
#include <algorithm>
#include <map>
#include <thread>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/faulting_store.h"
#include "table/fragment_writer.h"
#include "table/row_ids.h"
#include "table/test_util.h"
#include "table/writer_turn.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;

WriteOptions Stable() {
  WriteOptions options;
  options.stable_row_ids = true;
  return options;
}

Result<Dataset::Ptr> CreateStable(const TableEnv& env, const Values& values) {
  return WriteValues(env, values, Stable());
}

// The version at which a row was created, by its value.
Result<std::map<int64_t, std::pair<int64_t, int64_t>>> ReadVersions(
    const Dataset& dataset) {
  std::map<int64_t, std::pair<int64_t, int64_t>> versions;
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ReadRows(dataset));
  for (int f = 0; f < dataset.num_fragments(); ++f) {
    auto expand = [&](const std::string& bytes) -> Result<Values> {
      GLAIVE_ASSIGN_OR_RETURN(auto runs,
                              DecodeRowVersions(bytes, dataset.physical_rows(f)));
      Values all;
      for (const auto& run : runs) {
        all.insert(all.end(), static_cast<size_t>(run.count),
                   static_cast<int64_t>(run.version));
      }
      return all;
    };
    GLAIVE_ASSIGN_OR_RETURN(Values created,
                            expand(dataset.fragment(f).inline_created_at_versions()));
    GLAIVE_ASSIGN_OR_RETURN(
        Values updated, expand(dataset.fragment(f).inline_last_updated_at_versions()));
    for (const Row& row : rows) {
      const RowAddress address{row.address};
      if (address.fragment_id() != dataset.fragment_id(f)) continue;
      versions[row.value] = {created[address.offset()], updated[address.offset()]};
    }
  }
  return versions;
}

// Replaces each of `values` by its successor times 1000, and inserts `inserted`.
Result<Dataset::Ptr> Upsert(const Dataset& dataset, const Values& values,
                            const Values& inserted = {}, const RowUpdate* like = nullptr,
                            int max_retries = 20) {
  RowUpdate update;
  GLAIVE_ASSIGN_OR_RETURN(update.deleted, FindRows(dataset, values));
  FragmentWriter writer(dataset.env(), dataset.schema(), {});
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ReadRows(dataset));
  Values moved;
  std::vector<uint64_t> ids;
  for (const Row& row : rows) {
    if (std::count(values.begin(), values.end(), row.value) == 0) continue;
    moved.push_back(row.value * 1000);
    ids.push_back(row.row_id);
  }
  if (!moved.empty()) GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch(moved)));
  GLAIVE_RETURN_NOT_OK(writer.CutFragment());
  if (!inserted.empty()) GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch(inserted)));
  GLAIVE_ASSIGN_OR_RETURN(update.new_fragments, writer.Finish());
  if (dataset.has_stable_row_ids() && !moved.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(auto versions, ReadVersions(dataset));
    update.new_fragments[0].set_inline_row_ids(EncodeRowIds(ids));
    std::string created;
    for (int64_t value : moved) {
      created +=
          EncodeRowVersions(1, static_cast<uint64_t>(versions.at(value / 1000).first));
    }
    update.new_fragments[0].set_inline_created_at_versions(created);
  }
  if (like != nullptr) {
    update.inserted_keys = like->inserted_keys;
    update.fields_modified = like->fields_modified;
  }
  CommitOutcome outcome = CommitOutcome::kUnknown;
  auto committed = dataset.CommitUpdate(update, &outcome, max_retries);
  EXPECT_EQ(committed.ok(), outcome == CommitOutcome::kCommitted);
  if (outcome != CommitOutcome::kNotCommitted) writer.Keep();
  return committed;
}

Values Sorted(Values values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(RowUpdate, MovesRows) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1, 2, 3}));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {4, 5}));
  ASSERT_OK_AND_ASSIGN(dataset, Upsert(*dataset, {2, 4, 5}, {9}));
  EXPECT_EQ(dataset->version(), 3);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{1, 3, 2000, 4000, 5000, 9}));
  // Fragment 1 lost all its rows.
  EXPECT_EQ(dataset->FindFragment(1), -1);
  EXPECT_EQ(dataset->fragment_id(1), 2);
  EXPECT_EQ(dataset->fragment_id(2), 3);
  EXPECT_EQ(dataset->manifest().max_fragment_id(), 3u);
  // An update that changes nothing commits a version too.
  ASSERT_OK_AND_ASSIGN(dataset, Upsert(*dataset, {}));
  EXPECT_EQ(dataset->version(), 4);
}

TEST(RowUpdate, StableIdsAndVersions) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, CreateStable(env, {1, 2, 3}));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {4, 5}));
  ASSERT_OK_AND_ASSIGN(auto other, Dataset::Open(MakeEnv(env.store)));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {6}));
  // Made on version 2, committed as version 4.
  ASSERT_OK_AND_ASSIGN(dataset, Upsert(*other, {2, 4}, {9}));
  EXPECT_EQ(dataset->version(), 4);
  ASSERT_OK_AND_ASSIGN(auto rows, ReadRows(*dataset));
  std::map<int64_t, uint64_t> ids;
  for (const Row& row : rows) ids[row.value] = row.row_id;
  EXPECT_EQ(ids, (std::map<int64_t, uint64_t>{
                     {1, 0}, {3, 2}, {5, 4}, {6, 5}, {2000, 1}, {4000, 3}, {9, 6}}));
  EXPECT_EQ(dataset->manifest().next_row_id(), 7u);
  ASSERT_OK_AND_ASSIGN(auto versions, ReadVersions(*dataset));
  EXPECT_EQ(versions[2000], (std::pair<int64_t, int64_t>{1, 4}));
  EXPECT_EQ(versions[4000], (std::pair<int64_t, int64_t>{2, 4}));
  EXPECT_EQ(versions[9], (std::pair<int64_t, int64_t>{4, 4}));
  EXPECT_EQ(versions[6], (std::pair<int64_t, int64_t>{3, 3}));
  EXPECT_EQ(versions[1], (std::pair<int64_t, int64_t>{1, 1}));
  ASSERT_OK_AND_ASSIGN(auto index, dataset->row_id_index());
  EXPECT_TRUE(index != nullptr);
}

TEST(RowUpdate, IdsThatTheTableNeverGaveAreRefused) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, CreateStable(env, {1, 2, 3}));
  FragmentWriter writer(env, dataset->schema(), {});
  ASSERT_OK(writer.Write(*MakeBatch({7, 8})));
  RowUpdate update;
  ASSERT_OK_AND_ASSIGN(update.new_fragments, writer.Finish());
  CommitOutcome outcome;
  update.new_fragments[0].set_inline_row_ids(EncodeRowIdRange(2, 4));
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->CommitUpdate(update, &outcome).status());
  EXPECT_EQ(outcome, CommitOutcome::kNotCommitted);
  update.new_fragments[0].set_inline_row_ids("\xff");
  EXPECT_KIND(ErrorKind::kCorruption, dataset->CommitUpdate(update, &outcome).status());
  // A transaction that failed leaves nothing.
  ASSERT_OK_AND_ASSIGN(auto names, env.store->ListNames("_transactions"));
  EXPECT_EQ(names.size(), 1u);
}

TEST(RowUpdate, RowByRow) {
  for (bool stable : {false, true}) {
    SCOPED_TRACE(stable);
    const TableEnv env = MakeEnv(io::MakeMemoryStore());
    WriteOptions options;
    options.stable_row_ids = stable;
    ASSERT_OK_AND_ASSIGN(auto base, WriteValues(env, {1, 2, 3, 4, 5}, options));
    const TableEnv other_env = MakeEnv(env.store);
    ASSERT_OK_AND_ASSIGN(auto first, Dataset::Open(other_env));
    ASSERT_OK_AND_ASSIGN(auto second, Dataset::Open(env));
    ASSERT_OK(Upsert(*first, {1, 2}).status());
    // Other rows: carried over.
    ASSERT_OK_AND_ASSIGN(auto after, Upsert(*second, {4}, {50}));
    ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*after));
    EXPECT_EQ(Sorted(values), (Values{3, 5, 50, 1000, 2000, 4000}));
    // A delete of another row over both, then of a row that is gone.
    ASSERT_OK_AND_ASSIGN(after, DeleteValues(*base, {3}));
    EXPECT_KIND(ErrorKind::kRetryableConflict, DeleteValues(*base, {4}).status());
    EXPECT_KIND(ErrorKind::kRetryableConflict, Upsert(*base, {2}).status());
    EXPECT_KIND(ErrorKind::kRetryableConflict, Upsert(*base, {3}, {7}).status());
    // The last row of the fragment: it goes altogether.
    ASSERT_OK_AND_ASSIGN(after, Upsert(*base, {5}));
    EXPECT_EQ(after->FindFragment(0), -1);
    ASSERT_OK_AND_ASSIGN(values, ReadValues(*after));
    EXPECT_EQ(Sorted(values), (Values{50, 1000, 2000, 4000, 5000}));
    // Nobody left a deletion file or transaction that no version names: one each of the
    // four commits that had some.
    ASSERT_OK_AND_ASSIGN(auto names, env.store->ListNames("_deletions"));
    EXPECT_EQ(names.size(), 3u);
    ASSERT_OK_AND_ASSIGN(names, env.store->ListNames("_transactions"));
    EXPECT_EQ(static_cast<int64_t>(names.size()), after->version());
    ASSERT_OK_AND_ASSIGN(names, env.store->ListNames("data"));
    EXPECT_EQ(names.size(), 5u);
  }
}

TEST(RowUpdate, OverOverwriteAndRestore) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, Create(env, {1, 2}));
  ASSERT_OK_AND_ASSIGN(auto second, Append(env, {3}));
  ASSERT_OK(base->Restore().status());
  EXPECT_KIND(ErrorKind::kConflict, Upsert(*second, {1}).status());
  WriteOptions overwrite;
  overwrite.mode = WriteMode::kOverwrite;
  ASSERT_OK_AND_ASSIGN(auto third, second->Latest());
  ASSERT_OK(WriteValues(env, {8}, overwrite).status());
  EXPECT_KIND(ErrorKind::kConflict, Upsert(*third, {1}).status());
}

TEST(RowUpdate, InsertedKeys) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, Create(env, {1, 2}));
  auto with_keys = [](std::vector<uint64_t> hashes) {
    lance::table::KeyExistenceFilter filter;
    filter.add_field_ids(0);
    for (uint64_t hash : hashes) filter.mutable_exact()->add_key_hashes(hash);
    RowUpdate update;
    update.inserted_keys = filter.SerializeAsString();
    return update;
  };
  const RowUpdate ten = with_keys({10});
  const RowUpdate eleven = with_keys({11, 12});
  ASSERT_OK(Upsert(*base, {}, {10}, &ten).status());
  ASSERT_OK(Upsert(*base, {}, {11}, &eleven).status());
  EXPECT_KIND(ErrorKind::kRetryableConflict, Upsert(*base, {}, {10}, &ten).status());
  ASSERT_OK_AND_ASSIGN(auto latest, base->Latest());
  ASSERT_OK(Append(env, {13}).status());
  EXPECT_KIND(ErrorKind::kRetryableConflict, Upsert(*latest, {}, {14}, &ten).status());
  // Without a filter nothing is known of what came first.
  ASSERT_OK(Upsert(*latest, {}, {14}).status());
  RowUpdate broken;
  broken.inserted_keys = "\xff";
  EXPECT_KIND(ErrorKind::kInvalidInput, Upsert(*latest, {}, {14}, &broken).status());
}

// Faults at every operation of an update that is carried over a concurrent delete of the
// same fragment: all of it or nothing, and no litter where that is certain.
TEST(RowUpdate, FaultsWhileRebasing) {
  using io::FaultEffect;
  for (FaultEffect effect :
       {FaultEffect::kNotDone, FaultEffect::kDone, FaultEffect::kTorn}) {
    for (bool crash : {false, true}) {
      for (int64_t at = 0;; ++at) {
        SCOPED_TRACE(std::to_string(static_cast<int>(effect)) + (crash ? ", crash" : "") +
                     ", operation " + std::to_string(at));
        auto store = io::MakeMemoryStore();
        ASSERT_OK(Create(MakeEnv(store), {1, 2, 3, 4}).status());
        auto injector = std::make_shared<io::FaultInjector>();
        const TableEnv env = MakeEnv(io::MakeFaultingStore(store, injector));
        ASSERT_OK_AND_ASSIGN(auto behind, Dataset::Open(env));
        ASSERT_OK_AND_ASSIGN(auto first, Dataset::Open(MakeEnv(store)));
        ASSERT_OK(DeleteValues(*first, {1}).status());
        io::FaultPlan plan;
        plan.fail_at = at;
        plan.effect = effect;
        plan.crash = crash;
        injector->Arm(plan);
        RowUpdate update;
        update.deleted = {{0, {1}}};  // the row of 2
        Status outcome_status;
        CommitOutcome outcome = CommitOutcome::kNotCommitted;
        {
          FragmentWriter writer(env, behind->schema(), {});
          auto write = [&]() -> Status {
            GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch({20})));
            GLAIVE_ASSIGN_OR_RETURN(update.new_fragments, writer.Finish());
            return behind->CommitUpdate(update, &outcome).status();
          };
          outcome_status = write();
          if (outcome != CommitOutcome::kNotCommitted) writer.Keep();
        }
        ASSERT_OK_AND_ASSIGN(auto after, Dataset::Open(MakeEnv(store)));
        ASSERT_OK_AND_ASSIGN(Values seen, ReadValues(*after));
        if (!injector->fired()) {
          ASSERT_OK(outcome_status);
          ASSERT_EQ(seen, (Values{3, 4, 20}));
          break;
        }
        ASSERT_LT(at, 200);
        const bool committed = seen == (Values{3, 4, 20});
        ASSERT_TRUE(committed || seen == (Values{2, 3, 4}));
        if (outcome_status.ok()) {
          ASSERT_TRUE(committed);
        }
        if (outcome == CommitOutcome::kCommitted) {
          ASSERT_TRUE(committed);
        }
        if (outcome == CommitOutcome::kNotCommitted) {
          ASSERT_FALSE(committed);
        }
        if (outcome == CommitOutcome::kNotCommitted && !crash) {
          ASSERT_OK_AND_ASSIGN(auto names, store->ListNames("_deletions"));
          EXPECT_EQ(names.size(), 1u);
          ASSERT_OK_AND_ASSIGN(names, store->ListNames("data"));
          EXPECT_EQ(names.size(), 1u);
        }
        ASSERT_OK_AND_ASSIGN(auto next, Append(MakeEnv(store), {100}));
        ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*next));
        seen.push_back(100);
        ASSERT_EQ(values, seen);
      }
    }
  }
}

// Threads that lose a race wait for their turn, so that none needs a third attempt.
TEST(RowUpdate, TurnsOfWriters) {
  constexpr int kThreads = 6;
  constexpr int kUpdates = 10;
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK(Create(env, {1}).status());
  std::vector<std::thread> threads;
  std::vector<Status> results(kThreads);
  std::vector<int> attempts(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto once = [&](TurnKind kind) -> Status {
        ++attempts[t];
        GLAIVE_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(env));
        GLAIVE_ASSIGN_OR_RETURN(WriterTurn turn, dataset->TakeTurn(kind));
        GLAIVE_ASSIGN_OR_RETURN(dataset, dataset->Latest());
        GLAIVE_ASSIGN_OR_RETURN(Values values, ReadValues(*dataset));
        RowUpdate update;
        GLAIVE_ASSIGN_OR_RETURN(update.deleted, FindRows(*dataset, values));
        FragmentWriter writer(env, dataset->schema(), {});
        GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch({values.at(0) + 1})));
        GLAIVE_ASSIGN_OR_RETURN(update.new_fragments, writer.Finish());
        CommitOutcome outcome;
        auto committed = dataset->CommitUpdate(update, &outcome, 0);
        if (outcome != CommitOutcome::kNotCommitted) writer.Keep();
        return committed.status();
      };
      for (int i = 0; i < kUpdates && results[t].ok(); ++i) {
        results[t] = once(TurnKind::kAmongOthers);
        if (KindOf(results[t]) == ErrorKind::kRetryableConflict) {
          results[t] = once(TurnKind::kAlone);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.ToString();
  for (int count : attempts) EXPECT_LE(count, 2 * kUpdates);
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
  ASSERT_OK_AND_ASSIGN(Values values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{1 + kThreads * kUpdates}));
}

}  // namespace
}  // namespace glaive::table
