// What the public query builders collect.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "db/table.h"
#include "exec/nearest.h"
#include "exec/scan.h"
#include "glaive/glaive.h"

namespace glaive {
namespace db {

struct Projection {
  std::optional<std::vector<std::string>> names;  // wins over expressions
  std::optional<std::vector<std::pair<std::string, std::string>>> expressions;
  bool with_row_id = false;
};

}  // namespace db

struct Query::State {
  std::shared_ptr<db::Table> table;
  db::Projection projection;
  exec::ScanOptions options;
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<bool> use_lsm;
};

struct VectorQuery::State {
  std::shared_ptr<db::Table> table;
  db::Projection projection;
  // What went wrong with the query vectors is told when the query runs.
  Result<std::shared_ptr<arrow::Array>> queries;
  exec::NearestOptions options;
  bool metric_given = false;
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<bool> use_lsm;
};

}  // namespace glaive
