// Opens the reader of one fragment, and its deletion vector, with everything cached.
#pragma once

#include <memory>

#include "base/status.h"
#include "table/dataset.h"
#include "table/fragment_list.h"
#include "table/fragment_reader.h"

namespace glaive::table {

// Null when nothing is deleted. Kept by `state`.
Result<std::shared_ptr<const DeletionVector>> LoadDeletions(const TableEnv& env,
                                                            FragmentState& state,
                                                            int64_t physical_rows);

// Kept by the runtime's cache, found through `state`; that of a view by nobody.
Result<std::shared_ptr<const FragmentReader>> OpenFragmentReader(
    const TableEnv& env, const std::shared_ptr<FragmentState>& state,
    int64_t physical_rows);

}  // namespace glaive::table
