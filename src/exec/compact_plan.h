// What an index says about fragments, for those who rewrite them.
#pragma once

#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::exec {

// By fragment: positions of the indices that cover it, ascending.
Result<std::vector<std::vector<int>>> IndexCoverage(const table::Dataset& dataset);

}  // namespace glaive::exec
