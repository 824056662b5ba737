// Any text as a predicate: parsed, bound to a schema and evaluated over a small batch.
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "expr/predicate.h"

namespace {

struct Table {
  glaive::file::Schema schema;
  std::shared_ptr<arrow::RecordBatch> batch;
};

Table MakeTable() {
  const std::pair<std::shared_ptr<arrow::Field>, const char*> columns[] = {
      {arrow::field("i", arrow::int32()), "[1, null, -2147483648]"},
      {arrow::field("u", arrow::uint64()), "[1, null, 18446744073709551615]"},
      {arrow::field("f", arrow::float32()), "[1.5, null, NaN]"},
      {arrow::field("h", arrow::float16()), "[1.5, null, NaN]"},
      {arrow::field("s", arrow::utf8()), R"(["a%_", null, "ß"])"},
      {arrow::field("b", arrow::boolean()), "[true, null, false]"},
      {arrow::field("d", arrow::date32()), "[1, null, -1]"},
      {arrow::field("t", arrow::timestamp(arrow::TimeUnit::NANO)), "[1, null, -1]"},
      {arrow::field("m", arrow::decimal128(9, 2)), R"(["1.50", null, "-3.25"])"},
      {arrow::field("l", arrow::list(arrow::int64())), "[[1, 2], null, []]"},
      {arrow::field("st", arrow::struct_({arrow::field("x", arrow::int64())})),
       R"([{"x": 1}, null, {"x": null}])"},
      // JSONB: 1, null, [1].
      {arrow::field("j", arrow::large_binary()),
       R"([" \u0000\u0000\u0000 \u0000\u0000\u0002P\u0001", null, " \u0000\u0000\u0000"])"},
      {arrow::field("y", arrow::binary()), R"(["", null, "ab"])"},
      {arrow::field("n", arrow::time64(arrow::TimeUnit::MICRO)),
       "[1, null, 86399999999]"},
      {arrow::field("r", arrow::duration(arrow::TimeUnit::SECOND)), "[1, null, -1]"},
      {arrow::field("z", arrow::list(arrow::utf8())), R"([["a", null], null, []])"}};
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [field, json] : columns) {
    fields.push_back(field);
    arrays.push_back(arrow::json::ArrayFromJSONString(field->type(), json).ValueOrDie());
  }
  const auto schema = arrow::schema(fields);
  Table table;
  table.schema = glaive::file::Schema::FromArrow(*schema).ValueOrDie();
  for (const auto& [name, type] : glaive::expr::RowMetaColumns()) {
    fields.push_back(arrow::field(name, type));
    arrays.push_back(arrow::json::ArrayFromJSONString(type, "[0, 1, 2]").ValueOrDie());
  }
  table.batch = arrow::RecordBatch::Make(arrow::schema(fields), 3, arrays);
  return table;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Table table = MakeTable();
  const std::string_view sql(reinterpret_cast<const char*>(data), size);
  // Random numbers differ between the two evaluations that are compared below.
  std::string lower(sql);
  for (char& c : lower)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.find("rand") != std::string::npos) return 0;
  if (auto predicate = glaive::expr::Predicate::Make(sql, table.schema); predicate.ok()) {
    uint8_t keep = 0;
    const auto count = (*predicate)->Evaluate(*table.batch, &keep);
    const auto array = (*predicate)->EvaluateToArray(*table.batch);
    // Both ways agree on what is true, and nothing lies beyond the last row.
    if (count.ok() && array.ok()) {
      int64_t trues = 0;
      for (int row = 0; row < 3; ++row) {
        const bool is_true = (*array)->IsValid(row) && (*array)->Value(row);
        if (is_true != (((keep >> row) & 1) != 0)) std::abort();
        trues += is_true ? 1 : 0;
      }
      if (trues != *count || keep > 7) std::abort();
    }
  }
  if (auto scalar = glaive::expr::ScalarExpr::Make(sql, table.schema); scalar.ok()) {
    if (auto value = (*scalar)->Evaluate(*table.batch); value.ok()) {
      if (!(*value)->ValidateFull().ok() || (*value)->length() != 3) std::abort();
    }
  }
  return 0;
}
