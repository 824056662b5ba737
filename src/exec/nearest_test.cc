// Exact search against distances computed one by one in double precision.
#include "exec/nearest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <arrow/util/float16.h>

#include "exec/test_table.h"
#include "runtime/cancel.h"

namespace glaive::exec {
namespace {

double Distance(Metric metric, const std::vector<float>& a, const std::vector<float>& b) {
  double l2 = 0, dot = 0, aa = 0, bb = 0;
  for (size_t d = 0; d < a.size(); ++d) {
    const double x = a[d], y = b[d];
    l2 += (x - y) * (x - y);
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  switch (metric) {
    case Metric::kL2:
      return l2;
    case Metric::kDot:
      return 1 - dot;
    default:
      return 1 - dot / std::sqrt(aa * bb);
  }
}

std::shared_ptr<arrow::Array> QueryArray(const std::vector<std::vector<float>>& queries) {
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), values);
  for (const auto& query : queries) {
    EXPECT_OK(lists.Append());
    EXPECT_OK(values->AppendValues(query));
  }
  return lists.Finish().ValueOrDie();
}

struct Expected {
  double distance;
  uint64_t row_id;
  int64_t id;
};

std::vector<Expected> Model(
    const TestTable& table, Metric metric, const std::vector<float>& query,
    const std::function<bool(const ModelRow&)>& filter = nullptr) {
  std::vector<Expected> all;
  for (const ModelRow& row : table.rows) {
    if (!row.vector || (filter && !filter(row))) continue;
    // As the engine stores it, so that ties are ties.
    const double distance = static_cast<float>(Distance(metric, query, *row.vector));
    if (std::isnan(distance)) continue;
    all.push_back({distance, table.RowId(row), row.id});
  }
  std::sort(all.begin(), all.end(), [](const Expected& a, const Expected& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row_id < b.row_id;
  });
  return all;
}

std::vector<float> Floats(const arrow::Table& table, const std::string& column) {
  std::vector<float> values;
  for (const auto& chunk : table.GetColumnByName(column)->chunks()) {
    for (int64_t i = 0; i < chunk->length(); ++i) {
      values.push_back(static_cast<const arrow::FloatArray&>(*chunk).Value(i));
    }
  }
  return values;
}

// `ranked` is the model's full ranking; rows [offset, offset + k) are wanted.
void CheckRanking(const arrow::Table& result, std::vector<Expected> ranked,
                  int64_t offset, int64_t k, bool exact_order) {
  ASSERT_OK(result.ValidateFull());
  const auto begin = std::min(ranked.size(), static_cast<size_t>(offset));
  const auto count = std::min(ranked.size() - begin, static_cast<size_t>(k));
  const auto ids = Ids(result);
  const auto distances = Floats(result, "_distance");
  ASSERT_EQ(ids.size(), count);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_NEAR(distances[i], ranked[begin + i].distance, 1e-5) << i;
    if (exact_order) {
      ASSERT_EQ(ids[i], ranked[begin + i].id) << i;
    }
  }
}

std::vector<float> RandomQuery(std::mt19937_64* random) {
  std::vector<float> query;
  for (int d = 0; d < kDim; ++d)
    query.push_back(static_cast<float>((*random)() % 5) - 2.5F);
  return query;
}

TEST(Nearest, RandomTables) {
  const std::vector<uint64_t> seeds = {1, 2, FreshSeed()};
  for (uint64_t seed : seeds) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    for (bool stable : {false, true}) {
      for (double share : {0.0, 0.3}) {
        const TestTable table = MakeTestTable(seed, {2500, 1, 300}, 700, share, stable);
        for (Metric metric : {Metric::kL2, Metric::kDot, Metric::kCosine}) {
          for (const auto& [k, offset] : std::vector<std::pair<int64_t, int64_t>>{
                   {1, 0}, {10, 0}, {7, 5}, {100000, 0}, {10, 100000}}) {
            const auto query = RandomQuery(&random);
            NearestOptions options;
            options.column = "vector";
            options.queries = QueryArray({query});
            options.metric = metric;
            options.k = k;
            options.offset = offset;
            ASSERT_OK_AND_ASSIGN(auto result, Nearest(table.dataset, options));
            // l2 and dot of these values are exact in float.
            CheckRanking(*result, Model(table, metric, query), offset, k,
                         metric != Metric::kCosine);
          }
        }
      }
    }
  }
}

struct Where {
  const char* sql;
  bool (*test)(const ModelRow&);
};

TEST(Nearest, Filters) {
  std::mt19937_64 random(7);
  const Where kWheres[] = {
      {"bucket = 7", [](const ModelRow& r) { return r.bucket == 7; }},
      {"bucket < 40", [](const ModelRow& r) { return r.bucket && *r.bucket < 40; }},
      {"id < 0", [](const ModelRow&) { return false; }},
      {"id >= 0", [](const ModelRow&) { return true; }},
      {"id % 500 = 3", [](const ModelRow& r) { return r.id % 500 == 3; }},
  };
  for (double share : {0.0, 0.2}) {
    const TestTable table = MakeTestTable(8, {20000, 500}, 15000, share);
    for (const Where& where : kWheres) {
      SCOPED_TRACE(where.sql);
      const auto query = RandomQuery(&random);
      NearestOptions options;
      options.queries = QueryArray({query});
      options.filter = where.sql;
      options.k = 20;
      options.offset = 2;
      ASSERT_OK_AND_ASSIGN(auto before, Nearest(table.dataset, options));
      CheckRanking(*before, Model(table, Metric::kL2, query, where.test), 2, 20, true);
      options.prefilter = false;
      ASSERT_OK_AND_ASSIGN(auto after, Nearest(table.dataset, options));
      auto ranked = Model(table, Metric::kL2, query);
      ranked.resize(std::min<size_t>(ranked.size(), 22));
      std::vector<Expected> passing;
      for (const Expected& hit : ranked) {
        for (const ModelRow& row : table.rows) {
          if (row.id == hit.id && where.test(row)) passing.push_back(hit);
        }
      }
      CheckRanking(*after, passing, 2, 20, true);
    }
    NearestOptions options;
    options.queries = QueryArray({RandomQuery(&random)});
    options.filter = "_distance < 9";
    EXPECT_ERROR_KIND(Nearest(table.dataset, options).status(), ErrorKind::kInvalidInput);
    options.prefilter = false;
    ASSERT_OK_AND_ASSIGN(auto result, Nearest(table.dataset, options));
    for (float distance : Floats(*result, "_distance")) EXPECT_LT(distance, 9);
  }
}

TEST(Nearest, DistanceRange) {
  std::mt19937_64 random(9);
  const TestTable table = MakeTestTable(9, {3000}, 1000, 0.1);
  const auto query = RandomQuery(&random);
  const auto ranked = Model(table, Metric::kL2, query);
  const auto low = static_cast<float>(ranked[ranked.size() / 4].distance);
  const auto high = static_cast<float>(ranked[ranked.size() / 2].distance);
  for (const auto& [lower, upper] :
       std::vector<std::pair<std::optional<float>, std::optional<float>>>{
           {low, high},
           {low, std::nullopt},
           {std::nullopt, high},
           {high, low},
           {low, low},
           {0.0F, 0.0F}}) {
    std::vector<Expected> within;
    for (const Expected& hit : ranked) {
      if ((!lower || hit.distance >= *lower) && (!upper || hit.distance < *upper))
        within.push_back(hit);
    }
    NearestOptions options;
    options.queries = QueryArray({query});
    options.lower_bound = lower;
    options.upper_bound = upper;
    options.k = 50;
    ASSERT_OK_AND_ASSIGN(auto result, Nearest(table.dataset, options));
    CheckRanking(*result, within, 0, 50, true);
  }
}

TEST(Nearest, ManyQueries) {
  std::mt19937_64 random(10);
  for (size_t count : {size_t{2}, size_t{32}, size_t{70}}) {
    const TestTable table = MakeTestTable(10, {4000, 100}, 1500, 0.1);
    std::vector<std::vector<float>> queries;
    for (size_t q = 0; q < count; ++q) queries.push_back(RandomQuery(&random));
    NearestOptions options;
    options.queries = QueryArray(queries);
    options.k = 5;
    options.offset = 1;
    options.select.columns = ColumnList{{"id", "id"}};
    options.select.with_row_id = true;
    ASSERT_OK_AND_ASSIGN(auto result, Nearest(table.dataset, options));
    EXPECT_EQ(result->schema()->field_names(),
              (std::vector<std::string>{"query_index", "id", "_distance", "_rowid"}));
    ASSERT_EQ(result->num_rows(), static_cast<int64_t>(count) * 5);
    for (size_t q = 0; q < count; ++q) {
      const auto part = result->Slice(static_cast<int64_t>(q) * 5, 5);
      CheckRanking(*part, Model(table, Metric::kL2, queries[q]), 1, 5, true);
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(ValueAt<arrow::Int32Array>(*part, "query_index", i),
                  static_cast<int32_t>(q));
      }
    }
  }
}

TEST(Nearest, SelectionsAndEmptyResults) {
  const TestTable table = MakeTestTable(11, {50}, 20, 0);
  NearestOptions options;
  options.queries = QueryArray({std::vector<float>(kDim, 0)});
  ASSERT_OK_AND_ASSIGN(auto whole, Nearest(table.dataset, options));
  EXPECT_EQ(
      whole->schema()->field_names(),
      (std::vector<std::string>{"id", "bucket", "text", "st", "vector", "_distance"}));
  EXPECT_EQ(whole->num_rows(), 10);
  options.select.columns = ColumnList{
      {"_distance", "_distance"}, {"twice", "id * 2"}, {"far", "_distance * 2"}};
  ASSERT_OK_AND_ASSIGN(auto chosen, Nearest(table.dataset, options));
  EXPECT_EQ(chosen->schema()->field_names(),
            (std::vector<std::string>{"_distance", "twice", "far"}));
  const auto near = Floats(*chosen, "_distance");
  const auto far = Floats(*chosen, "far");
  for (size_t i = 0; i < near.size(); ++i) EXPECT_EQ(far[i], near[i] * 2);
  options.filter = "id < 0";
  ASSERT_OK_AND_ASSIGN(auto none, Nearest(table.dataset, options));
  EXPECT_EQ(none->num_rows(), 0);
  EXPECT_TRUE(none->schema()->Equals(*chosen->schema()));
}

// One column per element type; integers that every type holds exactly.
template <typename Builder, typename Convert>
std::shared_ptr<arrow::Array> VectorsAs(const std::vector<std::vector<int>>& rows,
                                        std::shared_ptr<arrow::DataType> type,
                                        Convert convert) {
  auto values = std::make_shared<Builder>(type, arrow::default_memory_pool());
  arrow::FixedSizeListBuilder lists(arrow::default_memory_pool(), values,
                                    static_cast<int32_t>(rows[0].size()));
  for (const auto& row : rows) {
    EXPECT_OK(lists.Append());
    for (int value : row) EXPECT_OK(values->Append(convert(value)));
  }
  return lists.Finish().ValueOrDie();
}

TEST(Nearest, ElementTypes) {
  std::mt19937_64 random(12);
  std::vector<std::vector<int>> rows(300, std::vector<int>(9));
  for (auto& row : rows) {
    for (int& value : row) value = static_cast<int>(random() % 100);
  }
  std::vector<float> query;
  for (int d = 0; d < 9; ++d) query.push_back(static_cast<float>(random() % 100));
  const auto plain = [](int v) { return v; };
  const std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>> columns = {
      {"f16",
       VectorsAs<arrow::HalfFloatBuilder>(
           rows, arrow::float16(),
           [](int v) { return arrow::util::Float16(static_cast<float>(v)).bits(); })},
      {"f32", VectorsAs<arrow::FloatBuilder>(rows, arrow::float32(), plain)},
      {"f64", VectorsAs<arrow::DoubleBuilder>(rows, arrow::float64(), plain)},
      {"u8", VectorsAs<arrow::UInt8Builder>(rows, arrow::uint8(), plain)},
      {"i8", VectorsAs<arrow::Int8Builder>(rows, arrow::int8(), plain)}};
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, array] : columns) {
    fields.push_back(arrow::field(name, array->type()));
    arrays.push_back(array);
  }
  const auto schema = arrow::schema(fields);
  auto reader = arrow::RecordBatchReader::Make(
                    {arrow::RecordBatch::Make(schema, 300, arrays)}, schema)
                    .ValueOrDie();
  const table::TableEnv env{MakeTestRuntime(), io::MakeMemoryStore()};
  ASSERT_OK_AND_ASSIGN(auto dataset, table::Dataset::Write(env, *reader, {}));
  for (const auto& [name, array] : columns) {
    for (Metric metric : {Metric::kL2, Metric::kDot, Metric::kCosine, Metric::kHamming}) {
      SCOPED_TRACE(name + std::to_string(static_cast<int>(metric)));
      NearestOptions options;
      options.column = name;
      options.queries = QueryArray({query});
      options.metric = metric;
      options.k = 300;
      options.select.columns.emplace();
      options.select.with_row_id = true;
      auto result = Nearest(dataset, options);
      if (metric == Metric::kHamming && name != "u8") {
        EXPECT_ERROR_KIND(result.status(), ErrorKind::kInvalidInput);
        continue;
      }
      ASSERT_OK(result.status());
      const auto ids = UInts(**result, "_rowid");
      const auto distances = Floats(**result, "_distance");
      ASSERT_EQ(ids.size(), 300U);
      EXPECT_TRUE(std::is_sorted(distances.begin(), distances.end()));
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto& row = rows[ids[i]];
        double expected = 0;
        if (metric == Metric::kHamming) {
          for (size_t d = 0; d < 9; ++d) {
            expected += __builtin_popcount(static_cast<unsigned>(row[d]) ^
                                           static_cast<unsigned>(query[d]));
          }
        } else {
          expected = Distance(metric, query, std::vector<float>(row.begin(), row.end()));
        }
        EXPECT_NEAR(distances[i], expected, std::abs(expected) * 1e-5 + 1e-5);
        if (i > 0 && distances[i] == distances[i - 1]) {
          EXPECT_LT(ids[i - 1], ids[i]);
        }
      }
    }
  }
  NearestOptions options;
  options.column = "u8";
  std::vector<float> fraction = query;
  fraction[3] = 1.5F;
  options.queries = QueryArray({fraction});
  EXPECT_ERROR_KIND(Nearest(dataset, options).status(), ErrorKind::kInvalidInput);
}

TEST(Nearest, Multivectors) {
  // As lancedb 0.40.0 answers; the last two rows never appear.
  auto values = std::make_shared<arrow::FloatBuilder>();
  auto vectors = std::make_shared<arrow::FixedSizeListBuilder>(
      arrow::default_memory_pool(), values, 2);
  arrow::ListBuilder lists(arrow::default_memory_pool(), vectors);
  const auto append = [&](const std::vector<std::vector<float>>& row) {
    EXPECT_OK(lists.Append());
    for (const auto& vector : row) {
      EXPECT_OK(vectors->Append());
      EXPECT_OK(values->AppendValues(vector));
    }
  };
  append({{1, 2}, {3, 4}});
  append({{0, 0}});
  EXPECT_OK(lists.AppendNull());
  append({});
  const auto array = lists.Finish().ValueOrDie();
  const auto schema = arrow::schema({arrow::field("mv", array->type())});
  auto reader = arrow::RecordBatchReader::Make(
                    {arrow::RecordBatch::Make(schema, 4, {array})}, schema)
                    .ValueOrDie();
  const table::TableEnv env{MakeTestRuntime(), io::MakeMemoryStore()};
  ASSERT_OK_AND_ASSIGN(auto dataset, table::Dataset::Write(env, *reader, {}));
  struct Case {
    Metric metric;
    std::vector<std::vector<float>> query;
    std::vector<uint64_t> ids;
    std::vector<float> distances;
  };
  const Case kCases[] = {
      {Metric::kL2, {{1, 2}}, {0, 1}, {0, 5}},
      {Metric::kL2, {{1, 2}, {1, 2}}, {0, 1}, {0, 10}},
      {Metric::kCosine, {{1, 2}, {1, 2}}, {0}, {0}},
      {Metric::kDot, {{1, 2}, {1, 2}}, {0, 1}, {-20, 2}},
      {Metric::kL2, {{1, 2}, {3, 2}}, {0, 1}, {4, 18}},
  };
  for (const Case& c : kCases) {
    NearestOptions options;
    options.queries = QueryArray(c.query);
    options.multivector = c.query.size() > 1;
    options.metric = c.metric;
    options.select.with_row_id = true;
    ASSERT_OK_AND_ASSIGN(auto result, Nearest(dataset, options));
    EXPECT_EQ(UInts(*result, "_rowid"), c.ids);
    const auto distances = Floats(*result, "_distance");
    ASSERT_EQ(distances.size(), c.distances.size());
    for (size_t i = 0; i < distances.size(); ++i)
      EXPECT_NEAR(distances[i], c.distances[i], 1e-6);
  }
}

TEST(Nearest, ManySmallFragments) {
  std::mt19937_64 random(13);
  const TestTable table = MakeTestTable(13, {300}, 1, 0.1);
  const auto query = RandomQuery(&random);
  NearestOptions options;
  options.queries = QueryArray({query});
  ASSERT_OK_AND_ASSIGN(auto result, Nearest(table.dataset, options));
  CheckRanking(*result, Model(table, Metric::kL2, query), 0, 10, true);
}

TEST(Nearest, RefusesBadInput) {
  const TestTable table = MakeTestTable(14, {10}, 10, 0);
  const auto search = [&](const std::function<void(NearestOptions*)>& change) {
    NearestOptions options;
    options.queries = QueryArray({std::vector<float>(kDim, 0)});
    change(&options);
    return Nearest(table.dataset, options).status();
  };
  EXPECT_OK(search([](auto*) {}));
  for (const auto& change : std::vector<std::function<void(NearestOptions*)>>{
           [](auto* o) { o->k = 0; },
           [](auto* o) { o->k = -1; },
           [](auto* o) { o->offset = -1; },
           [](auto* o) { o->column = "nope"; },
           [](auto* o) { o->column = "id"; },
           [](auto* o) { o->column = "st.nope"; },
           [](auto* o) { o->metric = Metric::kHamming; },
           [](auto* o) { o->queries = QueryArray({std::vector<float>(kDim + 1, 0)}); },
           [](auto* o) { o->queries = QueryArray({std::vector<float>{}}); },
           [](auto* o) { o->queries = QueryArray({}); },
           [](auto* o) { o->queries = nullptr; },
           [](auto* o) {
             std::vector<float> nan(kDim, 0);
             nan[2] = std::numeric_limits<float>::quiet_NaN();
             o->queries = QueryArray({nan});
           },
           [](auto* o) { o->multivector = true; },
           [](auto* o) { o->filter = "nope"; },
           [](auto* o) {
             o->select.columns = ColumnList{{"x", "nope"}};
           },
           [](auto* o) {
             arrow::StringBuilder text;
             EXPECT_OK(text.Append("x"));
             o->queries = text.Finish().ValueOrDie();
           },
       }) {
    EXPECT_ERROR_KIND(search(change), ErrorKind::kInvalidInput);
  }
  EXPECT_EQ(ParseMetric("L2").ValueOrDie(), Metric::kL2);
  EXPECT_EQ(ParseMetric("Euclidean").ValueOrDie(), Metric::kL2);
  EXPECT_EQ(ParseMetric("COSINE").ValueOrDie(), Metric::kCosine);
  const Status unknown = ParseMetric("foo").status();
  EXPECT_ERROR_KIND(unknown, ErrorKind::kInvalidInput);
  EXPECT_NE(unknown.message().find("l2, cosine, dot, or hamming"), std::string::npos);
}

TEST(Nearest, InfersTheColumn) {
  const auto fsl = [](int n) { return arrow::fixed_size_list(arrow::float32(), n); };
  const auto schema = [](const arrow::FieldVector& fields) {
    return file::Schema::FromArrow(*arrow::schema(fields)).ValueOrDie();
  };
  const auto one =
      schema({arrow::field("a", arrow::int64()),
              arrow::field("s", arrow::struct_({arrow::field("v", fsl(3))}))});
  EXPECT_EQ(InferVectorColumn(one, 3).ValueOrDie(), "s.v");
  EXPECT_EQ(InferVectorColumn(one, std::nullopt).ValueOrDie(), "s.v");
  const auto two = schema({arrow::field("u", fsl(2)), arrow::field("v", fsl(3))});
  EXPECT_EQ(InferVectorColumn(two, 2).ValueOrDie(), "u");
  const Status several = InferVectorColumn(two, std::nullopt).status();
  EXPECT_ERROR_KIND(several, ErrorKind::kInvalidInput);
  EXPECT_NE(several.message().find("u, v"), std::string::npos);
  EXPECT_ERROR_KIND(
      InferVectorColumn(schema({arrow::field("a", arrow::int64())}), 2).status(),
      ErrorKind::kInvalidInput);
  EXPECT_EQ(
      InferVectorColumn(schema({arrow::field("m", arrow::list(fsl(4)))}), 4).ValueOrDie(),
      "m");
}

TEST(Nearest, LooksForCancelWithinABatchOfQueries) {
  // One morsel and one thread: between morsels nobody would look.
  const TestTable table = MakeTestTable(18, {2000}, 2000, 0, false, MakeTestRuntime(1));
  std::vector<std::vector<float>> queries(640, std::vector<float>(kDim, 0.5F));
  NearestOptions options;
  options.queries = QueryArray(queries);
  options.column = "vector";
  options.k = 1;
  int looks = 0;
  CancelToken cancel;
  cancel.set_caller_hook(
      [&] { return ++looks > 12 ? Cancelled("the caller had enough") : Status::OK(); });
  options.cancel = &cancel;
  const Status stopped = Nearest(table.dataset, options).status();
  EXPECT_ERROR_KIND(stopped, ErrorKind::kCancelled);
  EXPECT_EQ(looks, 13);
}

TEST(Nearest, WorkingMemoryIsChargedToTheBudget) {
  const TestTable table = MakeTestTable(19, {2000}, 500, 0);
  MemoryBudget& memory = table.env.runtime->memory();
  NearestOptions options;
  options.queries = QueryArray({std::vector<float>(kDim, 0.5F)});
  options.column = "vector";
  options.k = 2000;
  ASSERT_OK_AND_ASSIGN(const auto expected, Nearest(table.dataset, options));
  EXPECT_EQ(memory.used_bytes(), 0);
  // Room for ten rows, not for two thousand.
  const int64_t held = memory.limit_bytes() - (int64_t{64} << 10);
  ASSERT_OK(memory.Reserve(held));
  const Status refused = Nearest(table.dataset, options).status();
  EXPECT_ERROR_KIND(refused, ErrorKind::kResourceExhausted);
  EXPECT_NE(refused.message().find(table.env.store->root()), std::string::npos);
  options.k = 10;
  ASSERT_OK(Nearest(table.dataset, options).status());
  EXPECT_EQ(memory.used_bytes(), held);
  memory.Release(held);
  options.k = 2000;
  ASSERT_OK_AND_ASSIGN(const auto again, Nearest(table.dataset, options));
  EXPECT_EQ(Ids(*again), Ids(*expected));
}

TEST(Nearest, Explain) {
  const TestTable table = MakeTestTable(15, {10}, 10, 0);
  NearestOptions options;
  options.filter = "id = 1";
  const std::string text = ExplainNearest(*table.dataset, options);
  for (const char* token :
       {"KNNVectorDistance: metric=l2", "full_filter=id = Int64(1)", "LanceRead"}) {
    EXPECT_NE(text.find(token), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace glaive::exec
