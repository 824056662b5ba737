// A first program: makes a table, searches it by vector with a filter, deletes, looks at
// the version before.
#include <iostream>

#include <arrow/api.h>
#include <arrow/compute/initialize.h>

#include "db/connection.h"
#include "exec/nearest.h"
#include "exec/scan.h"

namespace {

using glaive::Result;
using glaive::Status;

std::shared_ptr<arrow::DataType> VectorType() {
  return arrow::fixed_size_list(arrow::float32(), 2);
}

Result<std::shared_ptr<arrow::Table>> Animals() {
  arrow::StringBuilder names;
  arrow::Int64Builder legs;
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder vectors(arrow::default_memory_pool(), values, 2);
  struct Animal {
    const char* name;
    int64_t legs;
    float x, y;
  };
  for (const Animal& animal : {Animal{"cat", 4, 0.9f, 0.1f}, Animal{"dog", 4, 0.8f, 0.3f},
                               Animal{"bee", 6, 0.1f, 0.9f}, Animal{"ant", 6, 0, 0.8f}}) {
    ARROW_RETURN_NOT_OK(names.Append(animal.name));
    ARROW_RETURN_NOT_OK(legs.Append(animal.legs));
    ARROW_RETURN_NOT_OK(vectors.Append());
    ARROW_RETURN_NOT_OK(values->Append(animal.x));
    ARROW_RETURN_NOT_OK(values->Append(animal.y));
  }
  ARROW_ASSIGN_OR_RAISE(auto name_array, names.Finish());
  ARROW_ASSIGN_OR_RAISE(auto legs_array, legs.Finish());
  ARROW_ASSIGN_OR_RAISE(auto vector_array, vectors.Finish());
  auto schema = arrow::schema({arrow::field("name", arrow::utf8()),
                               arrow::field("legs", arrow::int64()),
                               arrow::field("vector", VectorType())});
  return arrow::Table::Make(schema, {name_array, legs_array, vector_array});
}

Result<std::shared_ptr<arrow::Array>> Query(float x, float y) {
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder query(arrow::default_memory_pool(), values, 2);
  ARROW_RETURN_NOT_OK(query.Append());
  ARROW_RETURN_NOT_OK(values->AppendValues({x, y}));
  return query.Finish();
}

Status Run(const std::string& folder) {
  ARROW_RETURN_NOT_OK(arrow::compute::Initialize());
  ARROW_ASSIGN_OR_RAISE(auto db, glaive::db::Connection::Open(folder, {}));

  ARROW_ASSIGN_OR_RAISE(auto animals, Animals());
  arrow::TableBatchReader rows(*animals);
  glaive::db::CreateTableOptions options;
  options.mode = glaive::db::CreateMode::kOverwrite;
  ARROW_ASSIGN_OR_RAISE(auto table, db->CreateTable("animals", rows, options));

  glaive::exec::NearestOptions search;
  search.column = "vector";
  search.k = 2;
  search.filter = "legs = 6";
  ARROW_ASSIGN_OR_RAISE(search.queries, Query(0, 1));
  ARROW_ASSIGN_OR_RAISE(auto snapshot, table->Snapshot());
  ARROW_ASSIGN_OR_RAISE(auto nearest, glaive::exec::Nearest(snapshot, search));
  std::cout << nearest->ToString() << "\n";

  ARROW_ASSIGN_OR_RAISE(auto deleted, table->Delete("name = 'bee'"));
  ARROW_ASSIGN_OR_RAISE(snapshot, table->Snapshot());
  std::cout << snapshot->count_rows() << " rows in version " << deleted.version << "\n";
  ARROW_RETURN_NOT_OK(table->Checkout(deleted.version - 1));
  ARROW_ASSIGN_OR_RAISE(snapshot, table->Snapshot());
  std::cout << snapshot->count_rows() << " rows in the version before\n";
  return Status::OK();
}

}  // namespace

int main(int argc, char** argv) {
  Status status = Run(argc > 1 ? argv[1] : "/tmp/glaive-first-cc");
  if (!status.ok()) {
    std::cerr << status.ToString() << "\n";
    return 1;
  }
  return 0;
}
