#include "table/next_manifest.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/data_file.h"
#include "table/feature_flags.h"
#include "table/row_ids.h"
#include "table/transaction.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;
using lance::table::Manifest;
using lance::table::Transaction;
using lance::table::UpdateMap;

constexpr char kLibrary[] = "glaive";
constexpr char kLibraryVersion[] = "0.1.0";
constexpr int32_t kTombstone = -2;

template <typename StringMap>
void ApplyUpdateMap(const UpdateMap& update, StringMap* map) {
  if (update.replace()) map->clear();
  for (const auto& entry : update.update_entries()) {
    if (entry.has_value()) {
      (*map)[entry.key()] = entry.value();
    } else {
      map->erase(entry.key());
    }
  }
}

class Builder {
 public:
  Builder(const Snapshot* current, const Transaction& transaction,
          const NextManifestOptions& options, const Snapshot* restored)
      : current_(current),
        transaction_(transaction),
        options_(options),
        restored_(restored) {}

  Result<NextManifest> Build() {
    GLAIVE_RETURN_NOT_OK(StartHeader());
    GLAIVE_RETURN_NOT_OK(Apply());
    Finish();
    return std::move(next_);
  }

 private:
  Manifest& header() { return *next_.header; }

  Status StartHeader() {
    if (current_ == nullptr && transaction_.operation_case() != Transaction::kOverwrite) {
      return InternalError("only an overwrite can create a table");
    }
    const Snapshot* source = restored_ != nullptr ? restored_ : current_;
    if (source != nullptr) {
      next_.header = std::make_unique<Manifest>(*source->header);
      next_.index_section = source->index_section;
      next_.file_version = source->file_version;
    } else {
      next_.header = std::make_unique<Manifest>();
      next_.file_version = options_.file_version.value_or(file::kDefaultFileVersion);
    }
    stable_ = current_ != nullptr ? current_->stable_row_ids() : options_.stable_row_ids;
    version_ = current_ != nullptr ? current_->last_taken_version() + 1 : 1;
    header().set_version(version_);
    header().set_version_aux_data(0);
    header().set_tag(transaction_.tag());
    header().set_transaction_file(TransactionFileNameOf(transaction_));
    if (current_ != nullptr) {
      // Never handed out twice, whatever the restored version knew.
      if (current_->header->has_max_fragment_id()) {
        RaiseMaxFragmentId(current_->header->max_fragment_id());
      }
      for (const FragmentSummary& s : Summaries(current_)) RaiseMaxFragmentId(s.id);
      header().set_next_row_id(
          std::max(header().next_row_id(), current_->header->next_row_id()));
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    header().mutable_timestamp()->set_seconds(seconds.count());
    header().mutable_timestamp()->set_nanos(static_cast<int32_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds).count()));
    auto* writer = header().mutable_writer_version();
    writer->Clear();
    writer->set_library(kLibrary);
    writer->set_version(kLibraryVersion);
    return Status::OK();
  }

  static std::string TransactionFileNameOf(const Transaction& transaction) {
    return TransactionFileName(transaction.read_version(), transaction.uuid());
  }
  static std::span<const FragmentSummary> Summaries(const Snapshot* snapshot) {
    if (snapshot == nullptr) return {};
    return snapshot->fragments->summaries();
  }
  void RaiseMaxFragmentId(uint64_t id) {
    if (!header().has_max_fragment_id() || header().max_fragment_id() < id) {
      header().set_max_fragment_id(static_cast<uint32_t>(id));
    }
  }

  Status Apply() {
    switch (transaction_.operation_case()) {
      case Transaction::kAppend:
        KeepAll(current_);
        return AddNew(transaction_.append().fragments());
      case Transaction::kOverwrite:
        return ApplyOverwrite();
      case Transaction::kDelete:
        return ApplyDelete();
      case Transaction::kUpdate:
        return ApplyUpdate();
      case Transaction::kRestore:
        if (restored_ == nullptr) return InternalError("nothing to restore");
        next_.schema_changed = true;
        KeepAll(restored_);
        return Status::OK();
      case Transaction::kReserveFragments:
        KeepAll(current_);
        return ApplyReserve();
      case Transaction::kUpdateConfig:
        KeepAll(current_);
        return ApplyUpdateConfig();
      case Transaction::kCreateIndex:
        KeepAll(current_);
        return ApplyCreateIndex();
      default:
        return NotSupported("committing a transaction of kind ",
                            OperationName(transaction_));
    }
  }

  void Keep(const Snapshot* source, int index) {
    next_.serialized.push_back(source->fragments->serialized(index));
    next_.summaries.push_back(source->fragments->summary(index));
  }
  void KeepAll(const Snapshot* source) {
    if (source == nullptr) return;
    next_.serialized.reserve(source->fragments->size() + 16);
    next_.summaries.reserve(source->fragments->size() + 16);
    for (int i = 0; i < source->fragments->size(); ++i) Keep(source, i);
  }

  Status AddOwned(const DataFragment& fragment) {
    next_.owned.push_back(fragment.SerializeAsString());
    const std::string& bytes = next_.owned.back();
    GLAIVE_ASSIGN_OR_RETURN(FragmentSummary summary, SummarizeFragment(bytes));
    next_.serialized.push_back(bytes);
    next_.summaries.push_back(summary);
    return Status::OK();
  }

  template <typename Fragments>
  Status AddNew(const Fragments& fragments) {
    for (const DataFragment& incoming : fragments) {
      DataFragment fragment = incoming;
      uint64_t id =
          header().has_max_fragment_id() ? uint64_t{header().max_fragment_id()} + 1 : 0;
      if (id >= std::numeric_limits<uint32_t>::max()) {
        return InvalidInput("the table has used up its fragment ids");
      }
      fragment.set_id(id);
      RaiseMaxFragmentId(id);
      GLAIVE_RETURN_NOT_OK(CheckNew(&fragment));
      GLAIVE_RETURN_NOT_OK(AssignLineage(&fragment));
      GLAIVE_RETURN_NOT_OK(AddOwned(fragment));
    }
    return Status::OK();
  }

  // Rows that brought their ids and the versions they were created at keep them; the
  // others, always the last of the fragment, get new ones.
  Status AssignLineage(DataFragment* fragment) {
    const bool brings_ids =
        fragment->row_id_sequence_case() != DataFragment::ROW_ID_SEQUENCE_NOT_SET;
    if (!stable_) {
      if (!brings_ids) return Status::OK();
      return InvalidInput("a new fragment brings row ids, but the table has none");
    }
    const auto rows = static_cast<int64_t>(fragment->physical_rows());
    int64_t brought = 0;
    if (brings_ids) {
      if (!fragment->has_inline_row_ids()) {
        return NotSupported("new fragments whose row ids lie in their data files");
      }
      GLAIVE_ASSIGN_OR_RETURN(const auto runs,
                              DecodeFirstRowIdRuns(fragment->inline_row_ids(), rows));
      for (const RowIdRun& run : runs) {
        brought += static_cast<int64_t>(run.count);
        if (run.first_id >= header().next_row_id() ||
            run.count > header().next_row_id() - run.first_id) {
          return InvalidInput("a new fragment brings row id ",
                              run.first_id + (run.count - 1),
                              ", which the table never gave to a row");
        }
      }
    }
    const auto fresh = static_cast<uint64_t>(rows - brought);
    const uint64_t first = header().next_row_id();
    if (fresh > std::numeric_limits<uint64_t>::max() - first) {
      return InvalidInput("the table has used up its row ids");
    }
    if (!brings_ids) {
      fragment->set_inline_row_ids(EncodeRowIdRange(first, first + fresh));
    } else if (fresh > 0) {
      // Sequences concatenate.
      fragment->mutable_inline_row_ids()->append(EncodeRowIdRange(first, first + fresh));
    }
    header().set_next_row_id(first + fresh);
    fragment->set_inline_last_updated_at_versions(EncodeRowVersions(rows, version_));
    if (brought == 0) {
      fragment->set_inline_created_at_versions(EncodeRowVersions(rows, version_));
      return Status::OK();
    }
    if (!fragment->has_inline_created_at_versions()) {
      return NotSupported(
          "moved rows that do not bring the versions they were created at");
    }
    GLAIVE_RETURN_NOT_OK(
        DecodeRowVersions(fragment->inline_created_at_versions(), brought).status());
    if (fresh > 0) {
      fragment->mutable_inline_created_at_versions()->append(
          EncodeRowVersions(static_cast<int64_t>(fresh), version_));
    }
    return Status::OK();
  }

  // What upstream checks before it accepts a manifest.
  Status CheckNew(DataFragment* fragment) {
    auto* files = fragment->mutable_files();
    for (int i = files->size() - 1; i >= 0; --i) {
      const auto& fields = files->Get(i).fields();
      if (!fields.empty() && std::all_of(fields.begin(), fields.end(),
                                         [](int32_t f) { return f == kTombstone; })) {
        files->DeleteSubrange(i, 1);
      }
    }
    if (fragment->physical_rows() == 0) {
      return InvalidInput("a new fragment must have rows and say how many");
    }
    for (const auto& file : fragment->files()) {
      if (file.fields().empty()) {
        return InvalidInput("data file ", file.path(), " lists no fields");
      }
      GLAIVE_ASSIGN_OR_RETURN(const file::FileVersion version, DataFileVersionOf(file));
      if (version != next_.file_version) mixed_versions_ = true;
    }
    return Status::OK();
  }

  Status ApplyOverwrite() {
    const auto& overwrite = transaction_.overwrite();
    if (overwrite.initial_bases_size() > 0) {
      return NotSupported("tables whose files lie under several base paths");
    }
    header().mutable_fields()->CopyFrom(overwrite.schema());
    *header().mutable_schema_metadata() = overwrite.schema_metadata();
    for (const auto& [key, value] : overwrite.config_upsert_values()) {
      (*header().mutable_config())[key] = value;
    }
    next_.schema_changed = true;
    next_.index_section.reset();
    if (options_.file_version) next_.file_version = *options_.file_version;
    return AddNew(overwrite.fragments());
  }

  Status ApplyDelete() {
    return KeepExcept(transaction_.delete_().updated_fragments(),
                      transaction_.delete_().deleted_fragment_ids());
  }

  Status ApplyUpdate() {
    const auto& operation = transaction_.update();
    if (operation.update_mode() != Transaction::Update::REWRITE_ROWS) {
      return NotSupported("committing an update that rewrites columns");
    }
    if (operation.compacted_sstables_size() > 0) {
      return NotSupported("committing an update that merges a memory table's log");
    }
    GLAIVE_RETURN_NOT_OK(
        KeepExcept(operation.updated_fragments(), operation.removed_fragment_ids()));
    return AddNew(operation.new_fragments());
  }

  // All fragments, some of them changed, without the removed ones.
  template <typename Fragments, typename Ids>
  Status KeepExcept(const Fragments& updated_fragments, const Ids& removed_ids) {
    std::map<uint64_t, const DataFragment*> updated;
    for (const DataFragment& fragment : updated_fragments) {
      updated[fragment.id()] = &fragment;
    }
    std::set<uint64_t> removed(removed_ids.begin(), removed_ids.end());
    next_.serialized.reserve(current_->fragments->size() + 16);
    next_.summaries.reserve(current_->fragments->size() + 16);
    for (int i = 0; i < current_->fragments->size(); ++i) {
      const uint64_t id = current_->fragments->summary(i).id;
      if (!removed.empty() && removed.erase(id) > 0) continue;
      auto it = updated.empty() ? updated.end() : updated.find(id);
      if (it == updated.end()) {
        Keep(current_, i);
        continue;
      }
      GLAIVE_RETURN_NOT_OK(AddOwned(*it->second));
      updated.erase(it);
    }
    if (!updated.empty() || !removed.empty()) {
      return InvalidInput("the ", OperationName(transaction_), " names fragment ",
                          updated.empty() ? *removed.begin() : updated.begin()->first,
                          ", which the table does not have");
    }
    return Status::OK();
  }

  Status ApplyReserve() {
    const uint64_t count = transaction_.reserve_fragments().num_fragments();
    const uint64_t base = header().has_max_fragment_id() ? header().max_fragment_id() : 0;
    if (base + count >= std::numeric_limits<uint32_t>::max()) {
      return InvalidInput("the table has used up its fragment ids");
    }
    header().set_max_fragment_id(static_cast<uint32_t>(base + count));
    return Status::OK();
  }

  Status ApplyUpdateConfig() {
    const auto& update = transaction_.update_config();
    if (!update.schema_metadata().empty() || !update.field_metadata().empty() ||
        !update.upsert_values().empty() || update.delete_keys_size() > 0) {
      return NotSupported("the deprecated form of UpdateConfig");
    }
    ApplyUpdateMap(update.config_updates(), header().mutable_config());
    ApplyUpdateMap(update.table_metadata_updates(), header().mutable_table_metadata());
    if (update.has_schema_metadata_updates()) {
      next_.schema_changed = true;
      ApplyUpdateMap(update.schema_metadata_updates(),
                     header().mutable_schema_metadata());
    }
    for (const auto& [id, map] : update.field_metadata_updates()) {
      next_.schema_changed = true;
      const int32_t wanted = id;
      auto field = std::find_if(header().mutable_fields()->begin(),
                                header().mutable_fields()->end(),
                                [wanted](const auto& f) { return f.id() == wanted; });
      if (field == header().mutable_fields()->end()) {
        return InvalidInput("the table has no field with id ", id);
      }
      ApplyUpdateMap(map, field->mutable_metadata());
    }
    return Status::OK();
  }

  Status ApplyCreateIndex() {
    lance::table::IndexSection section;
    if (next_.index_section && !section.ParseFromString(*next_.index_section)) {
      return Corruption("the index section of the manifest does not decode");
    }
    std::set<std::string> gone;
    for (const auto& index : transaction_.create_index().removed_indices()) {
      gone.insert(index.uuid().uuid());
    }
    for (const auto& index : transaction_.create_index().new_indices()) {
      gone.insert(index.uuid().uuid());
    }
    auto* indices = section.mutable_indices();
    indices->erase(
        std::remove_if(indices->begin(), indices->end(),
                       [&](const auto& i) { return gone.count(i.uuid().uuid()) > 0; }),
        indices->end());
    for (const auto& index : transaction_.create_index().new_indices())
      *indices->Add() = index;
    next_.index_section.reset();
    if (!indices->empty()) {
      next_.index_section =
          std::make_shared<const std::string>(section.SerializeAsString());
    }
    return Status::OK();
  }

  bool HasCoveringIndex() const {
    // Only a manifest that had the flag can have such an index: this build makes none.
    const Snapshot* source = restored_ != nullptr ? restored_ : current_;
    if (!next_.index_section || source == nullptr ||
        !(source->header->writer_feature_flags() & kFlagCoveringIndexFields)) {
      return false;
    }
    lance::table::IndexSection section;
    if (!section.ParseFromString(*next_.index_section)) return true;
    return std::any_of(
        section.indices().begin(), section.indices().end(),
        [](const auto& index) { return index.covering_fields_size() > 0; });
  }

  void Finish() {
    auto* format = header().mutable_data_format();
    format->set_file_format("lance");
    format->set_version(std::string(file::FileVersionName(next_.file_version)));
    FragmentTraits traits;
    for (const FragmentSummary& summary : next_.summaries) traits.Add(summary);
    RecomputeFlags(&header(), traits, HasCoveringIndex(),
                   current_ != nullptr ? current_->header.get() : nullptr, stable_);
    if (mixed_versions_) {
      header().set_reader_feature_flags(header().reader_feature_flags() |
                                        kFlagMixedFileVersions);
      header().set_writer_feature_flags(header().writer_feature_flags() |
                                        kFlagMixedFileVersions);
    }
  }

  const Snapshot* const current_;
  const Transaction& transaction_;
  const NextManifestOptions& options_;
  const Snapshot* const restored_;
  NextManifest next_;
  bool stable_ = false;
  bool mixed_versions_ = false;
  uint64_t version_ = 1;
};

}  // namespace

NextManifest::NextManifest() = default;
NextManifest::NextManifest(NextManifest&&) noexcept = default;
NextManifest::~NextManifest() = default;

Result<NextManifest> BuildNextManifest(const Snapshot* current,
                                       const Transaction& transaction,
                                       const NextManifestOptions& options,
                                       const Snapshot* restored) {
  return Builder(current, transaction, options, restored).Build();
}

}  // namespace glaive::table
