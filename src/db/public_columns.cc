// The methods of glaive::Table that change columns.
#include <utility>

#include "db/table.h"
#include "glaive/glaive.h"
#include "table/schema_change.h"

namespace glaive {

Result<int64_t> Table::AddColumns(
    const std::vector<std::pair<std::string, std::string>>& expressions) {
  return impl_->AddColumns(expressions);
}

Result<int64_t> Table::AddColumns(const std::shared_ptr<arrow::Schema>& columns) {
  return impl_->AddNullColumns(*columns);
}

Result<int64_t> Table::AlterColumns(const std::vector<ColumnChange>& changes) {
  std::vector<table::ColumnAlteration> alterations;
  for (const ColumnChange& change : changes) {
    alterations.push_back({change.path, change.rename, change.nullable, change.type});
  }
  return impl_->AlterColumns(alterations);
}

Result<int64_t> Table::DropColumns(const std::vector<std::string>& paths) {
  return impl_->DropColumns(paths);
}

}  // namespace glaive
