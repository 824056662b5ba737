// Faults at every store operation of a write, damaged manifests, and what operations
// cost.
#include <functional>
#include <set>

#include "format/table.pb.h"
#include "io/counting_store.h"
#include "io/faulting_store.h"
#include "table/names.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

using io::FaultEffect;
using io::FaultPlan;

struct Operation {
  const char* name;
  bool on_new_table;
  std::function<Status(const TableEnv&)> run;
  Values before;
  Values after;
};

std::vector<Operation> Operations() {
  return {
      {"create",
       true,
       [](const TableEnv& env) {
         return Create(env, {1, 2, 3}).status();
       },
       {},
       {1, 2, 3}},
      {"append",
       false,
       [](const TableEnv& env) { return Append(env, {4}).status(); },
       {1, 2, 3},
       {1, 2, 3, 4}},
      {"delete",
       false,
       [](const TableEnv& env) {
         GLAIVE_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(env));
         return dataset->CommitDelete({{0, {1}}}, "a = 2").status();
       },
       {1, 2, 3},
       {1, 3}},
      {"overwrite",
       false,
       [](const TableEnv& env) {
         WriteOptions options;
         options.mode = WriteMode::kOverwrite;
         return WriteValues(env, {9}, options).status();
       },
       {1, 2, 3},
       {9}},
      {"restore",
       false,
       [](const TableEnv& env) {
         GLAIVE_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(env, 1));
         return dataset->Restore().status();
       },
       {1, 2, 3},
       {1, 2, 3}},
  };
}

// After the fault, another process looks at the table, and writes.
void CheckAfterFault(const std::shared_ptr<io::ObjectStore>& store,
                     const Operation& operation, const Status& outcome) {
  const TableEnv env = MakeEnv(store);
  auto opened = Dataset::Open(env);
  Values seen;
  if (opened.ok()) {
    ASSERT_OK_AND_ASSIGN(seen, ReadValues(**opened));
  } else {
    ASSERT_EQ(ErrorKindName(KindOf(opened.status())), "NotFound")
        << opened.status().ToString();
    ASSERT_TRUE(operation.on_new_table);
  }
  if (outcome.ok()) {
    ASSERT_EQ(seen, operation.after) << "an acknowledged version is not there";
  } else {
    ASSERT_TRUE(seen == operation.before || seen == operation.after)
        << "a half-written version is visible";
  }
  ASSERT_OK_AND_ASSIGN(auto next, Append(env, {100}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*next));
  seen.push_back(100);
  ASSERT_EQ(values, seen);
}

TEST(DatasetFaults, EveryOperationOfEveryWrite) {
  for (const Operation& operation : Operations()) {
    for (FaultEffect effect :
         {FaultEffect::kNotDone, FaultEffect::kDone, FaultEffect::kTorn}) {
      for (bool crash : {false, true}) {
        for (int64_t at = 0;; ++at) {
          SCOPED_TRACE(std::string(operation.name) + ", effect " +
                       std::to_string(static_cast<int>(effect)) +
                       (crash ? ", crash" : "") + ", operation " + std::to_string(at));
          auto store = io::MakeMemoryStore();
          if (!operation.on_new_table)
            ASSERT_OK(Create(MakeEnv(store), {1, 2, 3}).status());
          auto injector = std::make_shared<io::FaultInjector>();
          const TableEnv env = MakeEnv(io::MakeFaultingStore(store, injector));
          FaultPlan plan;
          plan.fail_at = at;
          plan.effect = effect;
          plan.crash = crash;
          injector->Arm(plan);
          const Status outcome = operation.run(env);
          if (!injector->fired()) {
            ASSERT_OK(outcome);
            break;
          }
          ASSERT_LT(at, 200);
          // No store publishes half a manifest: it is linked or put in one piece.
          bool torn = false;
          auto names = store->ListNames("_versions");
          ASSERT_OK(names.status());
          for (const auto& name : *names) {
            if (!ParseManifestName(name)) continue;
            auto bytes = store->Get("_versions/" + name);
            torn |= io::Text(*bytes).substr((*bytes)->size() - 4) != "LANC";
          }
          if (torn) continue;
          CheckAfterFault(store, operation, outcome);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// A write that fails without effect leaves no files that nobody knows of.
TEST(DatasetFaults, NoLitterAfterAnError) {
  for (int64_t at = 0;; ++at) {
    auto store = io::MakeMemoryStore();
    ASSERT_OK(Create(MakeEnv(store), {1, 2, 3}).status());
    auto injector = std::make_shared<io::FaultInjector>();
    const TableEnv env = MakeEnv(io::MakeFaultingStore(store, injector));
    injector->Arm({.fail_at = at, .only = {}, .effect = FaultEffect::kNotDone});
    const Status outcome = Append(env, {4}).status();
    if (!injector->fired()) break;
    ASSERT_OK_AND_ASSIGN(auto data, store->ListNames("data"));
    EXPECT_EQ(data.size(), outcome.ok() ? 2u : 1u) << "operation " << at;
  }
}

// Every byte of a manifest flipped: a typed error, or a table of the same rows or with
// the changed detail; never a crash, never rows that no version had.
TEST(DatasetDamage, EveryByteOfAManifest) {
  auto store = io::MakeMemoryStore();
  const TableEnv env = MakeEnv(store);
  WriteOptions options;
  options.stable_row_ids = true;
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env, {1, 2, 3, 4, 5}, options));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {2}));
  const std::string path = ManifestPath(2, NamingScheme::kV2);
  ASSERT_OK_AND_ASSIGN(auto buffer, store->Get(path));
  const std::string bytes = io::Text(buffer);
  int refused = 0, read = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int flip : {0x01, 0x10, 0x80}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ASSERT_OK(store->Put(path, io::Bytes(damaged)));
      const TableEnv fresh = MakeEnv(store);
      auto opened = Dataset::Open(fresh, 2);
      Result<std::vector<Row>> rows =
          opened.ok() ? (*opened)->schema().FindTopLevel("a") == nullptr ||
                                (*opened)->schema().FindTopLevel("s") == nullptr ||
                                (*opened)->arrow_schema()->field(0)->type()->id() !=
                                    arrow::Type::INT64 ||
                                (*opened)->arrow_schema()->field(1)->type()->id() !=
                                    arrow::Type::STRING
                            ? Result<std::vector<Row>>(Corruption("another schema"))
                            : ReadRows(**opened)
                      : opened.status();
      if (rows.ok()) {
        ++read;
        Values values;
        for (const Row& row : *rows) values.push_back(row.value);
        // A flip may clear the flag that says rows are deleted, but not invent rows.
        EXPECT_TRUE(values == (Values{1, 3, 4, 5}) || values == (Values{1, 2, 3, 4, 5}) ||
                    values.empty())
            << "byte " << i;
      } else {
        ++refused;
        const ErrorKind kind = KindOf(rows.status());
        EXPECT_TRUE(kind == ErrorKind::kCorruption || kind == ErrorKind::kNotFound ||
                    kind == ErrorKind::kNotSupported || kind == ErrorKind::kInvalidInput)
            << "byte " << i << ": " << rows.status().ToString();
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(read, 0);
}

TEST(DatasetCosts, OfOpeningAndAppending) {
  auto counters = std::make_shared<io::StoreCounters>();
  auto store = io::MakeCountingStore(io::MakeMemoryStore(), counters);
  const TableEnv env = MakeEnv(store);
  ASSERT_OK(Create(env, {0}).status());
  ASSERT_OK(Append(env, {1}).status());
  counters->Reset();
  ASSERT_OK_AND_ASSIGN(auto dataset, Append(env, {2}));
  using io::StoreOp;
  // One data file, the transaction file, the manifest, the hint; nothing is listed or
  // read back.
  EXPECT_EQ(counters->count(StoreOp::kFinish), 1);
  EXPECT_EQ(counters->count(StoreOp::kPutIfAbsent), 1);
  EXPECT_EQ(counters->count(StoreOp::kPut), 2);
  EXPECT_EQ(counters->count(StoreOp::kList), 0);
  EXPECT_EQ(counters->count(StoreOp::kGet), 2);  // the hint, before and at the commit
  EXPECT_EQ(counters->count(StoreOp::kOpen), 0);
  counters->Reset();
  ASSERT_OK_AND_ASSIGN(auto latest, dataset->Latest());
  EXPECT_EQ(latest, dataset);
  EXPECT_EQ(counters->total(), 3);
  counters->Reset();
  ASSERT_OK(Dataset::Open(env).status());
  EXPECT_EQ(counters->total(), 3);
  // Cold: hint, its manifest, the next one, two names of the other scheme.
  counters->Reset();
  ASSERT_OK(Dataset::Open(MakeEnv(store)).status());
  EXPECT_EQ(counters->count(StoreOp::kList), 0);
  EXPECT_EQ(counters->count(StoreOp::kGet), 2);
  EXPECT_LE(counters->total(), 7);
}

}  // namespace
}  // namespace glaive::table
