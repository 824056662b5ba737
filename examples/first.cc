// A first program: makes a table, searches it by vector with a filter, deletes, looks at
// the version before.
#include <iostream>

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include "glaive/glaive.h"

namespace {

glaive::Result<std::shared_ptr<arrow::Table>> Animals() {
  auto schema = arrow::schema(
      {arrow::field("name", arrow::utf8()), arrow::field("legs", arrow::int64()),
       arrow::field("vector", arrow::fixed_size_list(arrow::float32(), 2))});
  ARROW_ASSIGN_OR_RAISE(
      auto rows, arrow::json::ArrayFromJSONString(arrow::struct_(schema->fields()), R"([
    {"name": "cat", "legs": 4, "vector": [0.9, 0.1]},
    {"name": "dog", "legs": 4, "vector": [0.8, 0.3]},
    {"name": "bee", "legs": 6, "vector": [0.1, 0.9]},
    {"name": "ant", "legs": 6, "vector": [0.0, 0.8]}
  ])"));
  ARROW_ASSIGN_OR_RAISE(auto batch, arrow::RecordBatch::FromStructArray(rows));
  return arrow::Table::FromRecordBatches(schema, {batch});
}

glaive::Status Run(const std::string& folder) {
  ARROW_ASSIGN_OR_RAISE(auto db, glaive::Connect(folder));
  ARROW_ASSIGN_OR_RAISE(auto animals, Animals());
  ARROW_ASSIGN_OR_RAISE(
      auto table, db.CreateTable("animals", animals, glaive::CreateMode::kOverwrite));

  ARROW_ASSIGN_OR_RAISE(auto nearest,
                        table.Search({0.0f, 1.0f}).Where("legs = 6").Limit(2).ToTable());
  std::cout << nearest->ToString() << "\n";

  ARROW_ASSIGN_OR_RAISE(auto deleted, table.Delete("name = 'bee'"));
  ARROW_ASSIGN_OR_RAISE(int64_t rows, table.CountRows());
  std::cout << rows << " rows in version " << deleted.version << "\n";

  ARROW_RETURN_NOT_OK(table.Checkout(deleted.version - 1));
  ARROW_ASSIGN_OR_RAISE(rows, table.CountRows());
  std::cout << rows << " rows in the version before\n";
  return glaive::Status::OK();
}

}  // namespace

int main(int argc, char** argv) {
  glaive::Status status = Run(argc > 1 ? argv[1] : "/tmp/glaive-first-cc");
  if (!status.ok()) {
    std::cerr << status.ToString() << "\n";
    return 1;
  }
  return 0;
}
