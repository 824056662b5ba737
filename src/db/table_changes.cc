// Table methods that change rows in place.
#include <utility>

#include "db/table.h"
#include "exec/update.h"

namespace glaive::db {

Result<UpdateOutcome> Table::Update(const exec::UpdateOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(auto result, exec::Update(std::move(latest), options));
  Advance(result.dataset);
  return UpdateOutcome{result.num_updated_rows, result.dataset->version()};
}

}  // namespace glaive::db
