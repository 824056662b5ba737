// The methods of a table handle that change columns and metadata.
#include <algorithm>
#include <utility>

#include "db/table.h"
#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "table/metadata_change.h"

namespace glaive::db {
namespace {

constexpr char kInputs[] = "computed_column.inputs";  // a JSON list of names

// InvalidInput when a column whose values are computed from others reads the field at
// `path`, which shall be renamed, cast or dropped, and stays itself.
Status CheckNotRead(const table::Dataset& dataset, const std::string& path,
                    std::span<const std::string> dropped) {
  for (const file::Field& field : dataset.schema().fields()) {
    const auto inputs = field.metadata.find(kInputs);
    if (inputs == field.metadata.end() ||
        inputs->second.find('"' + path + '"') == std::string::npos ||
        std::find(dropped.begin(), dropped.end(), field.name) != dropped.end()) {
      continue;
    }
    return InvalidInput("column '", path, "' is read by computed column '", field.name,
                        "'; drop that column first");
  }
  return Status::OK();
}

}  // namespace

Result<int64_t> Table::Change(const DatasetChange& change) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(auto changed, change(std::move(latest)));
  Wrote(changed);
  return changed->version();
}

Result<int64_t> Table::AddColumns(
    const std::vector<std::pair<std::string, std::string>>& expressions,
    CancelToken* cancel) {
  return Change([&](table::Dataset::Ptr latest) {
    exec::ColumnChangeOptions options;
    options.cancel = cancel;
    return exec::AddColumns(std::move(latest), expressions, options);
  });
}

Result<int64_t> Table::AddNullColumns(const arrow::Schema& columns) {
  return Change([&](table::Dataset::Ptr latest) {
    return exec::AddNullColumns(std::move(latest), columns);
  });
}

Result<int64_t> Table::MergeColumns(arrow::RecordBatchReader& data,
                                    const std::string& left_on,
                                    const std::string& right_on, CancelToken* cancel) {
  return Change([&](table::Dataset::Ptr latest) {
    exec::ColumnChangeOptions options;
    options.cancel = cancel;
    return exec::MergeColumns(std::move(latest), data, left_on, right_on, options);
  });
}

Result<int64_t> Table::AlterColumns(std::span<const table::ColumnAlteration> alterations,
                                    CancelToken* cancel) {
  return Change([&](table::Dataset::Ptr latest) -> Result<table::Dataset::Ptr> {
    for (const table::ColumnAlteration& change : alterations) {
      if (!change.rename && change.type == nullptr) continue;
      GLAIVE_RETURN_NOT_OK(CheckNotRead(*latest, change.path, {}));
    }
    exec::ColumnChangeOptions options;
    options.cancel = cancel;
    return exec::AlterColumns(std::move(latest), alterations, options);
  });
}

Result<int64_t> Table::DropColumns(std::span<const std::string> paths) {
  return Change([&](table::Dataset::Ptr latest) -> Result<table::Dataset::Ptr> {
    for (const std::string& path : paths) {
      GLAIVE_RETURN_NOT_OK(CheckNotRead(*latest, path, paths));
    }
    return exec::DropColumns(std::move(latest), paths);
  });
}

Result<int64_t> Table::UpdateFieldMetadata(
    std::span<const table::FieldMapUpdate> updates) {
  return Change([&](table::Dataset::Ptr latest) {
    return table::UpdateFieldMetadata(*latest, updates);
  });
}

Result<int64_t> Table::SetUnenforcedPrimaryKey(std::span<const std::string> columns) {
  return Change([&](table::Dataset::Ptr latest) {
    return table::SetUnenforcedPrimaryKey(*latest, columns);
  });
}

}  // namespace glaive::db
