// Makes a table out of files that are there already: version 1, written at once.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"
#include "table/dataset.h"

namespace glaive::table {

struct ReadyDataset {
  file::Schema schema;
  file::FileVersion file_version = file::kDefaultFileVersion;
  // From FragmentWriter, in order, with their deletion files if any; ids are given from
  // 0.
  std::vector<lance::table::DataFragment> fragments;
  // Serialized IndexSection; empty: no index.
  std::string index_section;
};

// Writes the manifest of version 1 (names of the second kind, no transaction). Durable on
// return. AlreadyExists when there is one.
Status CreateReadyDataset(const TableEnv& env, const ReadyDataset& ready);

}  // namespace glaive::table
