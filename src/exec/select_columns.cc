#include "exec/select_columns.h"

#include <set>
#include <string_view>
#include <utility>

namespace glaive::exec {

Result<Selection> SelectColumns(const file::Schema& schema,
                                const std::vector<std::string>& names) {
  Selection selection;
  selection.columns.emplace();
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      return InvalidInput("Invalid input, duplicate column name: ", name);
    }
    std::string expression = name;
    if (schema.FindTopLevel(name)) expression = file::FormatFieldPath(std::vector{name});
    selection.columns->emplace_back(name, std::move(expression));
  }
  return selection;
}

}  // namespace glaive::exec
