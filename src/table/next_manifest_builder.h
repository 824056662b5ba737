// Inside of BuildNextManifest: what the operations share. Not for others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/index_section.h"
#include "table/next_manifest.h"

namespace glaive::table {

class NextManifestBuilder {
 public:
  using DataFragment = lance::table::DataFragment;
  using Transaction = lance::table::Transaction;
  using Fragments = google::protobuf::RepeatedPtrField<DataFragment>;
  using FragmentIds = google::protobuf::RepeatedField<uint64_t>;

  NextManifestBuilder(const Snapshot* current, const Transaction& transaction,
                      const NextManifestOptions& options, const Snapshot* restored)
      : current_(current),
        transaction_(transaction),
        options_(options),
        restored_(restored) {}

  Result<NextManifest> Build();

 private:
  // next_manifest.cc
  Status StartHeader();
  Status Apply();
  Status ApplyOverwrite();
  Status ApplyRestore();
  Status ApplyReserve();
  Status ApplyUpdateBases();
  Status Finish();
  bool HasCoveringIndex() const;
  void RaiseMaxFragmentId(uint64_t id);
  void Keep(const Snapshot* source, int index);
  void KeepAll(const Snapshot* source);
  Status AddOwned(const DataFragment& fragment);

  // next_manifest_rows.cc: operations that add, move and remove rows.
  Status AddNew(const Fragments& fragments);
  Status CheckNew(DataFragment* fragment);
  Status AssignLineage(DataFragment* fragment);
  Status KeepExcept(const Fragments& updated, const FragmentIds& removed);
  Status ApplyUpdate();
  Status ApplyColumnUpdate(DataFragment* fragment);
  Result<std::string> CreatedVersions(const std::vector<uint64_t>& row_ids);
  Status ApplyRewrite();
  Status CheckGroup(const Transaction::RewriteGroup& group, int* first);
  Status FinishRewritten(DataFragment* fragment);

  // next_manifest_columns.cc: operations that change columns and what is known of them.
  Status ApplyMerge();
  Status ApplyProject();
  Status ApplyDataReplacement();
  Status ApplyUpdateConfig();
  Status ApplyCreateIndex();
  Status CheckNewFields(const google::protobuf::RepeatedPtrField<lance::file::Field>&);
  Status KeepFieldIds();

  lance::table::Manifest& header() { return *next_.header; }
  // Ids up to this one may vanish from the table now; they are never given again.
  void RememberFieldId(int32_t id) {
    if (id > vanishing_field_id_) vanishing_field_id_ = id;
  }
  void RememberFieldIds(const DataFragment& fragment);

  const Snapshot* const current_;
  const Transaction& transaction_;
  const NextManifestOptions& options_;
  const Snapshot* const restored_;
  NextManifest next_;
  IndexEditor indices_;
  // Ids given to the new fragments, in the order of the transaction.
  std::vector<uint64_t> new_ids_;
  bool stable_ = false;
  bool mixed_versions_ = false;
  uint64_t version_ = 1;
  int32_t vanishing_field_id_ = -1;
};

}  // namespace glaive::table
