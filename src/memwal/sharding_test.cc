#include "memwal/sharding.h"

#include <limits>

#include "memwal/mem_wal_index.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using arrow::field;

template <typename Builder, typename T>
std::shared_ptr<arrow::Array> Array(const std::vector<T>& values, bool last_null,
                                    Builder builder) {
  for (const T& value : values) EXPECT_TRUE(builder.Append(value).ok());
  if (last_null) {
    EXPECT_TRUE(builder.AppendNull().ok());
  }
  return builder.Finish().ValueOrDie();
}

template <typename Builder, typename T>
std::shared_ptr<arrow::Array> Array(const std::vector<T>& values,
                                    bool last_null = false) {
  return Array(values, last_null, Builder());
}

std::vector<int32_t> BucketsOf(const std::shared_ptr<arrow::Array>& values, int32_t n) {
  auto buckets = Buckets(*values, n);
  EXPECT_TRUE(buckets.ok()) << buckets.status().ToString();
  return buckets.ok() ? *buckets : std::vector<int32_t>();
}

using V = std::vector<int32_t>;

// The bucket numbers that pylance 14.0.2 computes.
TEST(BucketsTest, Upstream) {
  EXPECT_EQ(BucketsOf(Array<arrow::Int32Builder>(V{1, 2, 3}, true), 8), (V{2, 7, 1, 0}));
  EXPECT_EQ(
      BucketsOf(Array<arrow::StringBuilder>(std::vector<std::string>{"a", "b"}, true), 8),
      (V{1, 5, 0}));
  EXPECT_EQ(
      BucketsOf(Array<arrow::LargeStringBuilder>(std::vector<std::string>{"a", "b"}), 8),
      (V{1, 5}));
  EXPECT_EQ(BucketsOf(Array<arrow::BooleanBuilder>(std::vector<bool>{true, false}), 8),
            (V{2, 6}));
  EXPECT_EQ(BucketsOf(Array<arrow::FloatBuilder>(std::vector<float>{1.25f}), 8), V{0});
  EXPECT_EQ(
      BucketsOf(Array<arrow::DoubleBuilder>(std::vector<double>{1.25, 0.0, -0.0}), 8),
      (V{0, 4, 4}));
  std::vector<int64_t> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(BucketsOf(Array<arrow::Int64Builder>(eight), 4), (V{0, 0, 0, 3, 2, 3, 1, 3}));
  EXPECT_EQ(BucketsOf(Array<arrow::Int64Builder>(eight), 8), (V{4, 4, 4, 3, 6, 7, 1, 3}));
  EXPECT_EQ(BucketsOf(Array<arrow::Int8Builder>(std::vector<int8_t>{1}), 8), V{2});
  EXPECT_EQ(BucketsOf(Array<arrow::UInt64Builder>(std::vector<uint64_t>{1}), 8), V{4});
  EXPECT_EQ(BucketsOf(Array<arrow::Date32Builder>(V{1}), 8), V{2});
  const auto pool = arrow::default_memory_pool();
  EXPECT_EQ(
      BucketsOf(Array(V{1}, false,
                      arrow::Time32Builder(arrow::time32(arrow::TimeUnit::MILLI), pool)),
                8),
      V{2});
  EXPECT_EQ(
      BucketsOf(Array(std::vector<int64_t>{1}, false,
                      arrow::Time64Builder(arrow::time64(arrow::TimeUnit::MICRO), pool)),
                8),
      V{4});
  EXPECT_EQ(BucketsOf(Array(std::vector<int64_t>{1}, false,
                            arrow::TimestampBuilder(
                                arrow::timestamp(arrow::TimeUnit::MICRO), pool)),
                      8),
            V{4});
}

// With 2^31 - 1 buckets the bucket is the hash without its sign (but for that value).
TEST(BucketsTest, RawHashes) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const auto hashes = [](std::vector<uint32_t> raw) {
    V out;
    for (uint32_t h : raw) out.push_back(static_cast<int32_t>((h & 0x7fffffffu) % kMost));
    return out;
  };
  EXPECT_EQ(BucketsOf(Array<arrow::Int32Builder>(V{0, 1, 2, 3, -1}), kMost),
            hashes({0x2362F9DE, 0xFBF1402A, 0x40B23B7F, 0x32850971, 0x76293B50}));
  EXPECT_EQ(BucketsOf(Array<arrow::Int64Builder>(
                          std::vector<int64_t>{0, 1, -1, int64_t{1} << 40}),
                      kMost),
            hashes({0x63852AFC, 0x53075D44, 0x627564E8, 0xA9F62F22}));
  EXPECT_EQ(BucketsOf(Array<arrow::StringBuilder>(
                          std::vector<std::string>{"", "a", "abcd", "abcde", "\xC3\xA9"}),
                      kMost),
            hashes({0, 0x2B038801, 0x43ED676A, 0x94015D5C, 0xF6D63F31}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const V nans =
      BucketsOf(Array<arrow::DoubleBuilder>(std::vector<double>{nan, -nan}), kMost);
  EXPECT_EQ(nans[0], nans[1]);
}

TEST(BucketsTest, Refuses) {
  EXPECT_KIND(
      ErrorKind::kInvalidInput,
      Buckets(*Array<arrow::BinaryBuilder>(std::vector<std::string>{"a"}), 8).status());
  EXPECT_KIND(ErrorKind::kInvalidInput,
              Buckets(*Array<arrow::Int32Builder>(V{1}), 0).status());
}

class SpecTest : public ::testing::Test {
 protected:
  SpecTest() {
    schema_ = file::Schema::FromArrow(
                  *arrow::schema(
                      {field("id", arrow::int64()),
                       field("s", arrow::struct_({field("a", arrow::int32())})),
                       field("region", arrow::utf8()),
                       field("vector", arrow::fixed_size_list(arrow::float32(), 2))}))
                  .ValueOrDie();
    const auto a = Array<arrow::Int32Builder>(V{1, 2, 3});
    const auto s = arrow::StructArray::Make({a}, {field("a", arrow::int32())});
    batch_ = arrow::RecordBatch::Make(
        arrow::schema({field("region", arrow::utf8()), field("id", arrow::int64()),
                       field("s", (*s)->type())}),
        3,
        {Array<arrow::StringBuilder>(std::vector<std::string>{"us", "eu", "us"}),
         Array<arrow::Int64Builder>(std::vector<int64_t>{1, 2, 1}), *s});
  }
  lance::table::MemWalIndexDetails Make(ShardingKind kind, const std::string& column,
                                        int64_t buckets = 8) {
    lance::table::MemWalIndexDetails details;
    const Status status = AddShardingSpec(schema_, kind, column, buckets, &details);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return details;
  }
  void Refused(ShardingKind kind, const std::string& column, int64_t buckets,
               const std::string& message) {
    lance::table::MemWalIndexDetails details;
    const Status status = AddShardingSpec(schema_, kind, column, buckets, &details);
    EXPECT_KIND(ErrorKind::kInvalidInput, status);
    EXPECT_EQ(status.message(), message);
  }

  file::Schema schema_;
  std::shared_ptr<arrow::RecordBatch> batch_;
};

TEST_F(SpecTest, AsUpstreamBuildsThem) {
  EXPECT_EQ(Make(ShardingKind::kManual, "").ByteSizeLong(), 0u);
  EXPECT_EQ(Make(ShardingKind::kUnsharded, "").ShortDebugString(),
            "num_shards: 1 sharding_specs { spec_id: 1 fields { field_id: \"bucket\" "
            "transform: \"unsharded\" result_type: \"int32\" } }");
  EXPECT_EQ(Make(ShardingKind::kBucket, "id", 4).ShortDebugString(),
            "num_shards: 4 sharding_specs { spec_id: 1 fields { field_id: \"bucket\" "
            "source_ids: 0 transform: \"bucket\" result_type: \"int32\" parameters { "
            "key: \"num_buckets\" value: \"4\" } } }");
  EXPECT_EQ(Make(ShardingKind::kIdentity, "region").ShortDebugString(),
            "sharding_specs { spec_id: 1 fields { field_id: \"bucket\" source_ids: 3 "
            "transform: \"identity\" result_type: \"utf8\" } }");
  Refused(ShardingKind::kBucket, "id", 0,
          "bucket_sharding: num_buckets must be in [1, 1024], got 0");
  Refused(ShardingKind::kBucket, "id", 1025,
          "bucket_sharding: num_buckets must be in [1, 1024], got 1025");
  Refused(ShardingKind::kBucket, "zz", 1,
          "bucket_sharding: column 'zz' not found on the dataset");
  Refused(ShardingKind::kIdentity, "zz", 1,
          "identity_sharding: column 'zz' not found on the dataset");
  Refused(ShardingKind::kBucket, "vector", 1,
          "bucket_sharding: column 'vector' has type FixedSizeList(2 x Float32), which "
          "cannot be used as a shard key");
}

TEST_F(SpecTest, Evaluates) {
  const auto bucket = Make(ShardingKind::kBucket, "id");
  ASSERT_OK_AND_ASSIGN(const auto buckets,
                       EvaluateSpec(*batch_, bucket.sharding_specs(0), schema_));
  EXPECT_EQ(buckets->schema()->ToString(), "bucket: int32 not null");
  EXPECT_EQ(buckets->column(0)->ToString(), "[\n  4,\n  4,\n  4\n]");
  const auto identity = Make(ShardingKind::kIdentity, "region");
  ASSERT_OK_AND_ASSIGN(const auto regions,
                       EvaluateSpec(*batch_, identity.sharding_specs(0), schema_));
  EXPECT_EQ(regions->schema()->ToString(), "bucket: string");
  EXPECT_TRUE(regions->column(0)->Equals(*batch_->column(0)));
  const auto unsharded = Make(ShardingKind::kUnsharded, "");
  ASSERT_OK_AND_ASSIGN(const auto zeros,
                       EvaluateSpec(*batch_, unsharded.sharding_specs(0), schema_));
  EXPECT_EQ(zeros->column(0)->ToString(), "[\n  0,\n  0,\n  0\n]");
  const auto nested = Make(ShardingKind::kBucket, "s.a");
  ASSERT_OK_AND_ASSIGN(const auto members,
                       EvaluateSpec(*batch_, nested.sharding_specs(0), schema_));
  EXPECT_EQ(members->column(0)->ToString(), "[\n  2,\n  7,\n  1\n]");
}

TEST_F(SpecTest, RefusesInUpstreamsWords) {
  const auto refused = [&](const std::function<void(lance::table::ShardingField*)>& edit,
                           const std::string& message,
                           ErrorKind kind = ErrorKind::kInvalidInput) {
    auto details = Make(ShardingKind::kBucket, "id");
    edit(details.mutable_sharding_specs(0)->mutable_fields(0));
    auto evaluated = EvaluateSpec(*batch_, details.sharding_specs(0), schema_);
    EXPECT_KIND(kind, evaluated.status());
    EXPECT_NE(evaluated.status().message().find(message), std::string::npos)
        << evaluated.status().ToString();
  };
  refused([](auto* f) { f->set_transform("year"); },
          "Unsupported MemWAL sharding transform for field 'bucket': Some(\"year\")");
  refused([](auto* f) { f->clear_transform(); },
          "Unsupported MemWAL sharding transform for field 'bucket': None");
  refused(
      [](auto* f) {
        f->clear_transform();
        f->set_expression("id + 1");
      },
      "computed by an expression", ErrorKind::kNotSupported);
  refused([](auto* f) { f->clear_parameters(); },
          "Bucket sharding field 'bucket' missing 'num_buckets' parameter");
  refused([](auto* f) { (*f->mutable_parameters())["num_buckets"] = "0"; },
          "Bucket sharding field 'bucket' requires positive num_buckets, got 0");
  refused([](auto* f) { (*f->mutable_parameters())["num_buckets"] = "x"; },
          "Bucket sharding field 'bucket' has invalid num_buckets 'x'");
  refused([](auto* f) { f->set_source_ids(0, 99); },
          "MemWAL sharding field 'bucket' source id 99 was not mapped to a batch column");
  refused([](auto* f) { f->clear_source_ids(); },
          "MemWAL sharding field 'bucket' has no source column");
  refused([](auto* f) { f->set_source_ids(0, 4); },
          "Sharding source column 'vector' not found in batch");
}

TEST_F(SpecTest, RoutesAsLanceDb) {
  const auto unsharded = Make(ShardingKind::kUnsharded, "");
  ASSERT_OK_AND_ASSIGN(auto routed, Route(*batch_, unsharded.sharding_specs(0), schema_));
  ASSERT_EQ(routed.size(), 1u);
  EXPECT_EQ(routed[0].shard, ShardId::Derive("unsharded"));
  EXPECT_TRUE(routed[0].rows.empty());

  const auto identity = Make(ShardingKind::kIdentity, "region");
  ASSERT_OK_AND_ASSIGN(routed, Route(*batch_, identity.sharding_specs(0), schema_));
  ASSERT_EQ(routed.size(), 2u);
  EXPECT_EQ(routed[0].shard.ToString(), "e1794536-1200-59f9-8b6e-2da8285e103c");
  EXPECT_EQ(routed[0].rows, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(routed[1].rows, std::vector<int64_t>{1});
  ASSERT_OK_AND_ASSIGN(routed,
                       Route(*batch_->Slice(2, 1), identity.sharding_specs(0), schema_));
  ASSERT_EQ(routed.size(), 1u);
  EXPECT_TRUE(routed[0].rows.empty());

  const auto numbers = Make(ShardingKind::kIdentity, "id");
  ASSERT_OK_AND_ASSIGN(routed, Route(*batch_, numbers.sharding_specs(0), schema_));
  EXPECT_EQ(routed[0].shard.ToString(), "d2e289e0-8bef-529d-9036-907161abc5f8");

  const auto bucket = Make(ShardingKind::kBucket, "s.a");  // 2, 7, 1
  ASSERT_OK_AND_ASSIGN(routed, Route(*batch_, bucket.sharding_specs(0), schema_));
  ASSERT_EQ(routed.size(), 3u);
  EXPECT_EQ(routed[1].shard, ShardId::Derive("bucket-7"));
  EXPECT_EQ(routed[1].rows, std::vector<int64_t>{1});

  ASSERT_OK_AND_ASSIGN(routed,
                       Route(*batch_->Slice(0, 0), bucket.sharding_specs(0), schema_));
  EXPECT_TRUE(routed.empty());
  const auto with_null = arrow::RecordBatch::Make(
      arrow::schema({field("region", arrow::utf8())}), 2,
      {Array<arrow::StringBuilder>(std::vector<std::string>{"us"}, true)});
  auto refused = Route(*with_null, identity.sharding_specs(0), schema_);
  EXPECT_KIND(ErrorKind::kInvalidInput, refused.status());
  EXPECT_NE(refused.status().message().find("null routing values"), std::string::npos);
  EXPECT_KIND(ErrorKind::kInvalidInput, Route(*batch_, ShardingSpec(), schema_).status());
}

TEST_F(SpecTest, KnownShards) {
  const auto shards = [&](ShardingKind kind, const char* column) {
    return memwal::KnownShards(Make(kind, column, 4).sharding_specs(0));
  };
  EXPECT_EQ(shards(ShardingKind::kUnsharded, "").size(), 1u);
  const auto buckets = shards(ShardingKind::kBucket, "id");
  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets[3].ToString(), "1d8d46d4-1ffd-5f6e-9aea-466d5ea76fdb");
  EXPECT_TRUE(shards(ShardingKind::kIdentity, "id").empty());
}

}  // namespace
}  // namespace glaive::memwal
