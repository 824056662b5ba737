// Makes datasets from snapshots; for the files of this folder.
#pragma once

#include <map>
#include <memory>

#include "table/dataset.h"
#include "table/snapshot.h"

namespace glaive::table {

class DatasetBuilder {
 public:
  static Dataset::Ptr Make(TableEnv env, SnapshotPtr snapshot);
  // `readers`: of fragments that no file holds, by index.
  static Dataset::Ptr MakeView(
      TableEnv env, SnapshotPtr snapshot,
      std::map<int, std::shared_ptr<const FragmentReader>> readers = {});
  static const SnapshotPtr& SnapshotOf(const Dataset& dataset);
};

}  // namespace glaive::table
