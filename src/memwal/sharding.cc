#include "memwal/sharding.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "expr/type_name.h"
#include "file/extension.h"
#include "memwal/mem_wal_index.h"

namespace glaive::memwal {
namespace {

using arrow::Type;

constexpr char kBucketField[] = "bucket";
constexpr char kUnsharded[] = "unsharded";
constexpr char kBucket[] = "bucket";
constexpr char kIdentity[] = "identity";
constexpr char kNumBuckets[] = "num_buckets";
constexpr int64_t kMaxBuckets = 1024;

// --- the hash: murmur3 for 32 bits with seed 0, but for what MixBytes does -------------

uint32_t MixKey(uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

uint32_t Mix(uint32_t h, uint32_t k) {
  return std::rotl(h ^ MixKey(k), 13) * 5 + 0xe6546b64u;
}

uint32_t Finish(uint32_t h, uint32_t length) {
  h ^= length;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ h >> 16;
}

uint32_t HashInt(uint32_t value) { return Finish(Mix(0, value), 4); }

uint32_t HashLong(uint64_t value) {
  const uint32_t low = Mix(0, static_cast<uint32_t>(value));
  return Finish(Mix(low, static_cast<uint32_t>(value >> 32)), 8);
}

uint32_t HashBytes(std::string_view bytes) {
  uint32_t h = 0;
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    uint32_t word;
    std::memcpy(&word, bytes.data() + at, 4);
    h = Mix(h, word);
  }
  // Each byte of the tail, with its sign, gets a round of its own.
  for (; at < bytes.size(); ++at) {
    const auto tail = static_cast<int8_t>(bytes[at]);
    h = Mix(h, static_cast<uint32_t>(static_cast<int32_t>(tail)));
  }
  return Finish(h, static_cast<uint32_t>(bytes.size()));
}

uint32_t HashFloat(float value) {
  if (value == 0) return HashInt(0);
  if (std::isnan(value)) return HashInt(0x7fc00000u);
  return HashInt(std::bit_cast<uint32_t>(value));
}

uint32_t HashDouble(double value) {
  if (value == 0) return HashLong(0);
  if (std::isnan(value)) return HashLong(0x7ff8000000000000u);
  return HashLong(std::bit_cast<uint64_t>(value));
}

template <typename Hash>
std::vector<int32_t> BucketEach(const arrow::Array& values, int32_t num_buckets,
                                Hash hash) {
  std::vector<int32_t> buckets(static_cast<size_t>(values.length()));
  const auto count = static_cast<uint32_t>(num_buckets);
  const bool nulls = values.null_count() > 0;
  for (int64_t i = 0; i < values.length(); ++i) {
    if (nulls && values.IsNull(i)) continue;
    buckets[static_cast<size_t>(i)] =
        static_cast<int32_t>((hash(i) & 0x7fffffffu) % count);
  }
  return buckets;
}

template <typename ArrayType>
auto IntHash(const arrow::Array& values) {
  return [&typed = static_cast<const ArrayType&>(values)](int64_t i) {
    return HashInt(static_cast<uint32_t>(static_cast<int32_t>(typed.Value(i))));
  };
}

template <typename ArrayType>
auto LongHash(const arrow::Array& values) {
  return [&typed = static_cast<const ArrayType&>(values)](int64_t i) {
    return HashLong(static_cast<uint64_t>(typed.Value(i)));
  };
}

template <typename ArrayType>
auto TextHash(const arrow::Array& values) {
  return [&typed = static_cast<const ArrayType&>(values)](int64_t i) {
    return HashBytes(typed.GetView(i));
  };
}

bool CanBucket(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::BOOL:
    case Type::INT8:
    case Type::INT16:
    case Type::INT32:
    case Type::INT64:
    case Type::UINT8:
    case Type::UINT16:
    case Type::UINT32:
    case Type::UINT64:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::DATE32:
    case Type::TIME32:
    case Type::TIME64:
    case Type::TIMESTAMP:
    case Type::STRING:
    case Type::LARGE_STRING:
      return true;
    default:
      return false;
  }
}

// As the result type of an identity spec; null for types that cannot be one.
const char* IdentityTypeName(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::INT8:
      return "int8";
    case Type::INT16:
      return "int16";
    case Type::INT32:
      return "int32";
    case Type::INT64:
      return "int64";
    case Type::UINT8:
      return "uint8";
    case Type::UINT16:
      return "uint16";
    case Type::UINT32:
      return "uint32";
    case Type::UINT64:
      return "uint64";
    case Type::STRING:
      return "utf8";
    case Type::LARGE_STRING:
      return "large_utf8";
    case Type::BOOL:
      return "boolean";
    default:
      return nullptr;
  }
}

// The names that lead to the field, from the top.
bool FindPath(const std::vector<file::Field>& fields, int32_t id,
              std::vector<std::string>* path) {
  for (const file::Field& field : fields) {
    path->push_back(field.name);
    if (field.id == id || FindPath(field.children, id, path)) return true;
    path->pop_back();
  }
  return false;
}

Result<std::shared_ptr<arrow::Array>> SourceColumn(
    const arrow::RecordBatch& batch, const lance::table::ShardingField& field,
    const file::Schema& schema) {
  if (field.source_ids().empty()) {
    return InvalidInput("MemWAL sharding field '", field.field_id(),
                        "' has no source column");
  }
  const int32_t id = field.source_ids(0);
  std::vector<std::string> path;
  if (!FindPath(schema.fields(), id, &path)) {
    return InvalidInput("MemWAL sharding field '", field.field_id(), "' source id ", id,
                        " was not mapped to a batch column");
  }
  std::shared_ptr<arrow::Array> column = batch.GetColumnByName(path[0]);
  for (size_t i = 1; i < path.size() && column != nullptr; ++i) {
    if (column->type_id() != Type::STRUCT) {
      column = nullptr;
      break;
    }
    const auto& parent = static_cast<const arrow::StructArray&>(*column);
    const int member = parent.struct_type()->GetFieldIndex(path[i]);
    if (member < 0) {
      column = nullptr;
      break;
    }
    // With the nulls of the parent.
    GLAIVE_ASSIGN_OR_RETURN(column, parent.GetFlattenedField(member));
  }
  if (column == nullptr) {
    return InvalidInput("Sharding source column '", file::FormatFieldPath(path),
                        "' not found in batch");
  }
  return file::StorageArray(column);
}

Result<int32_t> NumBuckets(const lance::table::ShardingField& field) {
  const auto found = field.parameters().find(kNumBuckets);
  if (found == field.parameters().end()) {
    return InvalidInput("Bucket sharding field '", field.field_id(),
                        "' missing 'num_buckets' parameter");
  }
  const std::string& text = found->second;
  int32_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end) {
    return InvalidInput("Bucket sharding field '", field.field_id(),
                        "' has invalid num_buckets '", text.substr(0, 64),
                        "': it is no 32-bit number");
  }
  if (count <= 0) {
    return InvalidInput("Bucket sharding field '", field.field_id(),
                        "' requires positive num_buckets, got ", count);
  }
  return count;
}

Status UnknownTransform(const lance::table::ShardingField& field) {
  if (field.has_expression() && !field.has_transform()) {
    return NotSupported("MemWAL sharding field '", field.field_id(),
                        "' is computed by an expression, which is not supported");
  }
  return InvalidInput("Unsupported MemWAL sharding transform for field '",
                      field.field_id(), "': ",
                      field.has_transform() ? "Some(\"" + field.transform() + "\")"
                                            : std::string("None"));
}

// The value as LanceDB appends it to "identity-".
template <typename T>
std::string NumberBytes(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

Result<std::string> IdentityBytes(const arrow::Array& values, int64_t i) {
  switch (values.type_id()) {
#define GLAIVE_NUMBER(ID, Name) \
  case Type::ID:                \
    return NumberBytes(static_cast<const arrow::Name##Array&>(values).Value(i))
    GLAIVE_NUMBER(INT8, Int8);
    GLAIVE_NUMBER(INT16, Int16);
    GLAIVE_NUMBER(INT32, Int32);
    GLAIVE_NUMBER(INT64, Int64);
    GLAIVE_NUMBER(UINT8, UInt8);
    GLAIVE_NUMBER(UINT16, UInt16);
    GLAIVE_NUMBER(UINT32, UInt32);
    GLAIVE_NUMBER(UINT64, UInt64);
#undef GLAIVE_NUMBER
    case Type::BOOL:
      return std::string(
          1, static_cast<const arrow::BooleanArray&>(values).Value(i) ? '\1' : '\0');
    case Type::STRING:
      return static_cast<const arrow::StringArray&>(values).GetString(i);
    case Type::LARGE_STRING:
      return static_cast<const arrow::LargeStringArray&>(values).GetString(i);
    default:
      return InvalidInput("identity sharding does not support columns of type ",
                          expr::TypeName(*values.type()));
  }
}

std::string BucketName(int64_t bucket) { return "bucket-" + std::to_string(bucket); }

// Groups rows by `group[row]`, numbered in the order of their first rows.
std::vector<ShardRows> Group(const std::vector<size_t>& group,
                             const std::vector<ShardId>& shards) {
  std::vector<ShardRows> out(shards.size());
  for (size_t g = 0; g < shards.size(); ++g) out[g].shard = shards[g];
  if (out.size() == 1) return out;
  for (size_t row = 0; row < group.size(); ++row) {
    out[group[row]].rows.push_back(static_cast<int64_t>(row));
  }
  return out;
}

}  // namespace

Status AddShardingSpec(const file::Schema& schema, ShardingKind kind,
                       const std::string& column, int64_t num_buckets,
                       lance::table::MemWalIndexDetails* details) {
  if (kind == ShardingKind::kManual) return Status::OK();
  ShardingSpec* spec = details->add_sharding_specs();
  spec->set_spec_id(1);
  lance::table::ShardingField* field = spec->add_fields();
  field->set_field_id(kBucketField);
  if (kind == ShardingKind::kUnsharded) {
    field->set_transform(kUnsharded);
    field->set_result_type("int32");
    details->set_num_shards(1);
    return Status::OK();
  }
  const bool bucket = kind == ShardingKind::kBucket;
  const char* what = bucket ? "bucket_sharding: " : "identity_sharding: ";
  if (bucket && (num_buckets < 1 || num_buckets > kMaxBuckets)) {
    return InvalidInput(what, "num_buckets must be in [1, ", kMaxBuckets, "], got ",
                        num_buckets);
  }
  const file::Field* source = schema.FindTopLevel(column);
  if (source == nullptr) {
    auto path = file::ParseFieldPath(column);
    if (path.ok()) source = schema.FindByPath(*path);
  }
  if (source == nullptr) {
    return InvalidInput(what, "column '", column, "' not found on the dataset");
  }
  const char* name = IdentityTypeName(*source->type);
  if (bucket ? !CanBucket(*source->type) : name == nullptr) {
    return InvalidInput(what, "column '", column, "' has type ",
                        expr::TypeName(*source->type),
                        ", which cannot be used as a shard key");
  }
  field->add_source_ids(source->id);
  field->set_transform(bucket ? kBucket : kIdentity);
  field->set_result_type(bucket ? "int32" : name);
  if (bucket) {
    (*field->mutable_parameters())[kNumBuckets] = std::to_string(num_buckets);
    details->set_num_shards(static_cast<uint32_t>(num_buckets));
  }
  return Status::OK();
}

Result<std::vector<int32_t>> Buckets(const arrow::Array& values, int32_t num_buckets) {
  if (num_buckets <= 0) {
    return InvalidInput("bucket sharding requires positive num_buckets, got ",
                        num_buckets);
  }
  const auto each = [&](auto hash) { return BucketEach(values, num_buckets, hash); };
  switch (values.type_id()) {
    case Type::BOOL:
      return each(IntHash<arrow::BooleanArray>(values));
    case Type::INT8:
      return each(IntHash<arrow::Int8Array>(values));
    case Type::INT16:
      return each(IntHash<arrow::Int16Array>(values));
    case Type::INT32:
      return each(IntHash<arrow::Int32Array>(values));
    case Type::UINT8:
      return each(IntHash<arrow::UInt8Array>(values));
    case Type::UINT16:
      return each(IntHash<arrow::UInt16Array>(values));
    case Type::UINT32:
      return each(IntHash<arrow::UInt32Array>(values));
    case Type::DATE32:
      return each(IntHash<arrow::Date32Array>(values));
    case Type::TIME32:
      return each(IntHash<arrow::Time32Array>(values));
    case Type::INT64:
      return each(LongHash<arrow::Int64Array>(values));
    case Type::UINT64:
      return each(LongHash<arrow::UInt64Array>(values));
    case Type::TIME64:
      return each(LongHash<arrow::Time64Array>(values));
    case Type::TIMESTAMP:
      return each(LongHash<arrow::TimestampArray>(values));
    case Type::FLOAT:
      return each([&](int64_t i) {
        return HashFloat(static_cast<const arrow::FloatArray&>(values).Value(i));
      });
    case Type::DOUBLE:
      return each([&](int64_t i) {
        return HashDouble(static_cast<const arrow::DoubleArray&>(values).Value(i));
      });
    case Type::STRING:
      return each(TextHash<arrow::StringArray>(values));
    case Type::LARGE_STRING:
      return each(TextHash<arrow::LargeStringArray>(values));
    default:
      return InvalidInput("Unsupported bucket sharding column type: ",
                          expr::TypeName(*values.type()));
  }
}

Result<std::shared_ptr<arrow::RecordBatch>> EvaluateSpec(const arrow::RecordBatch& batch,
                                                         const ShardingSpec& spec,
                                                         const file::Schema& schema) {
  if (spec.fields().empty()) {
    return InvalidInput("the sharding spec ", spec.spec_id(), " has no fields");
  }
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  for (const auto& field : spec.fields()) {
    std::shared_ptr<arrow::Array> column;
    const bool identity = field.transform() == kIdentity;
    if (identity) {
      GLAIVE_ASSIGN_OR_RETURN(column, SourceColumn(batch, field, schema));
    } else {
      std::vector<int32_t> buckets(static_cast<size_t>(batch.num_rows()));
      if (field.transform() == kBucket) {
        GLAIVE_ASSIGN_OR_RETURN(const int32_t count, NumBuckets(field));
        GLAIVE_ASSIGN_OR_RETURN(const auto source, SourceColumn(batch, field, schema));
        GLAIVE_ASSIGN_OR_RETURN(buckets, Buckets(*source, count));
      } else if (field.transform() != kUnsharded) {
        return UnknownTransform(field);
      }
      column = std::make_shared<arrow::Int32Array>(
          batch.num_rows(), arrow::Buffer::FromVector(std::move(buckets)));
    }
    fields.push_back(arrow::field(field.field_id(), column->type(), identity));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch.num_rows(),
                                  std::move(columns));
}

Result<std::vector<ShardRows>> Route(const arrow::RecordBatch& batch,
                                     const ShardingSpec& spec,
                                     const file::Schema& schema) {
  if (spec.fields().empty()) {
    return InvalidInput("the table has no sharding spec: name the shard");
  }
  if (batch.num_rows() == 0) return std::vector<ShardRows>();
  const auto& field = spec.fields(0);
  if (field.transform() == kUnsharded) {
    return std::vector<ShardRows>{{ShardId::Derive(kUnsharded), {}}};
  }
  std::vector<size_t> group(static_cast<size_t>(batch.num_rows()));
  std::vector<ShardId> shards;
  if (field.transform() == kBucket) {
    GLAIVE_ASSIGN_OR_RETURN(const int32_t count, NumBuckets(field));
    GLAIVE_ASSIGN_OR_RETURN(const auto source, SourceColumn(batch, field, schema));
    GLAIVE_ASSIGN_OR_RETURN(const auto buckets, Buckets(*source, count));
    std::unordered_map<int32_t, size_t> known;
    for (size_t row = 0; row < group.size(); ++row) {
      const auto [it, is_new] = known.emplace(buckets[row], shards.size());
      if (is_new) shards.push_back(ShardId::Derive(BucketName(buckets[row])));
      group[row] = it->second;
    }
    return Group(group, shards);
  }
  if (field.transform() != kIdentity) return UnknownTransform(field);
  GLAIVE_ASSIGN_OR_RETURN(const auto source, SourceColumn(batch, field, schema));
  if (source->null_count() > 0) {
    return InvalidInput("identity sharding does not support null routing values");
  }
  std::unordered_map<std::string, size_t> known;
  for (size_t row = 0; row < group.size(); ++row) {
    GLAIVE_ASSIGN_OR_RETURN(std::string value,
                            IdentityBytes(*source, static_cast<int64_t>(row)));
    const auto [it, is_new] = known.emplace(std::move(value), shards.size());
    if (is_new) shards.push_back(ShardId::Derive("identity-" + it->first));
    group[row] = it->second;
  }
  return Group(group, shards);
}

bool RowsMayMove(const ShardingSpec& spec, const std::vector<int32_t>& key_ids) {
  if (spec.fields().empty()) return false;
  const auto& sources = spec.fields(0).source_ids();
  return std::any_of(sources.begin(), sources.end(), [&](int32_t id) {
    return std::find(key_ids.begin(), key_ids.end(), id) == key_ids.end();
  });
}

std::vector<ShardId> KnownShards(const ShardingSpec& spec) {
  std::vector<ShardId> shards;
  if (spec.fields().empty()) return shards;
  const auto& field = spec.fields(0);
  if (field.transform() == kUnsharded) shards.push_back(ShardId::Derive(kUnsharded));
  if (field.transform() != kBucket) return shards;
  const auto count = NumBuckets(field);
  if (!count.ok() || *count > kMaxBuckets) return shards;
  for (int32_t bucket = 0; bucket < *count; ++bucket) {
    shards.push_back(ShardId::Derive(BucketName(bucket)));
  }
  return shards;
}

}  // namespace glaive::memwal
