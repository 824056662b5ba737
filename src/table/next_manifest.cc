#include "table/next_manifest.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/feature_flags.h"
#include "table/field_ids.h"
#include "table/next_manifest_builder.h"
#include "table/transaction.h"

namespace glaive::table {
namespace {

using lance::table::Manifest;
using lance::table::Transaction;

constexpr char kLibrary[] = "glaive";
constexpr char kLibraryVersion[] = "0.1.0";

}  // namespace

Result<NextManifest> NextManifestBuilder::Build() {
  GLAIVE_RETURN_NOT_OK(StartHeader());
  GLAIVE_RETURN_NOT_OK(Apply());
  GLAIVE_RETURN_NOT_OK(Finish());
  return std::move(next_);
}

Status NextManifestBuilder::StartHeader() {
  if (current_ == nullptr && transaction_.operation_case() != Transaction::kOverwrite) {
    return InternalError("only an overwrite can create a table");
  }
  const Snapshot* source = restored_ != nullptr ? restored_ : current_;
  if (source != nullptr) {
    next_.header = std::make_unique<Manifest>(*source->header);
    indices_ = IndexEditor(source->index_section);
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
  header().set_transaction_file(
      TransactionFileName(transaction_.read_version(), transaction_.uuid()));
  if (current_ != nullptr) {
    // Never handed out twice, whatever the restored version knew.
    if (current_->header->has_max_fragment_id()) {
      RaiseMaxFragmentId(current_->header->max_fragment_id());
    }
    for (const FragmentSummary& s : current_->fragments->summaries())
      RaiseMaxFragmentId(s.id);
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

void NextManifestBuilder::RaiseMaxFragmentId(uint64_t id) {
  if (!header().has_max_fragment_id() || header().max_fragment_id() < id) {
    header().set_max_fragment_id(static_cast<uint32_t>(id));
  }
}

Status NextManifestBuilder::Apply() {
  switch (transaction_.operation_case()) {
    case Transaction::kAppend:
      KeepAll(current_);
      return AddNew(transaction_.append().fragments());
    case Transaction::kOverwrite:
      return ApplyOverwrite();
    case Transaction::kDelete:
      return KeepExcept(transaction_.delete_().updated_fragments(),
                        transaction_.delete_().deleted_fragment_ids());
    case Transaction::kUpdate:
      return ApplyUpdate();
    case Transaction::kRewrite:
      return ApplyRewrite();
    case Transaction::kMerge:
      return ApplyMerge();
    case Transaction::kProject:
      return ApplyProject();
    case Transaction::kDataReplacement:
      return ApplyDataReplacement();
    case Transaction::kRestore:
      return ApplyRestore();
    case Transaction::kReserveFragments:
      KeepAll(current_);
      return ApplyReserve();
    case Transaction::kUpdateConfig:
      KeepAll(current_);
      return ApplyUpdateConfig();
    case Transaction::kCreateIndex:
      KeepAll(current_);
      return ApplyCreateIndex();
    case Transaction::kUpdateBases:
      KeepAll(current_);
      return ApplyUpdateBases();
    case Transaction::kUpdateMemWalState:
      KeepAll(current_);
      return indices_.RecordCompacted(
          transaction_.update_mem_wal_state().compacted_sstables(), version_);
    default:
      return NotSupported("committing a transaction of kind ",
                          OperationName(transaction_));
  }
}

void NextManifestBuilder::Keep(const Snapshot* source, int index) {
  next_.serialized.push_back(source->fragments->serialized(index));
  next_.summaries.push_back(source->fragments->summary(index));
}

void NextManifestBuilder::KeepAll(const Snapshot* source) {
  if (source == nullptr) return;
  next_.serialized.reserve(source->fragments->size() + 16);
  next_.summaries.reserve(source->fragments->size() + 16);
  for (int i = 0; i < source->fragments->size(); ++i) Keep(source, i);
}

Status NextManifestBuilder::AddOwned(const DataFragment& fragment) {
  next_.owned.push_back(fragment.SerializeAsString());
  const std::string& bytes = next_.owned.back();
  GLAIVE_ASSIGN_OR_RETURN(FragmentSummary summary, SummarizeFragment(bytes));
  next_.serialized.push_back(bytes);
  next_.summaries.push_back(summary);
  return Status::OK();
}

Status NextManifestBuilder::ApplyOverwrite() {
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
  indices_ = IndexEditor();
  if (options_.file_version) next_.file_version = *options_.file_version;
  return AddNew(overwrite.fragments());
}

Status NextManifestBuilder::ApplyRestore() {
  if (restored_ == nullptr) return InternalError("nothing to restore");
  next_.schema_changed = true;
  KeepAll(restored_);
  if (current_ == restored_) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const int32_t max_field_id, MaxFieldId(*current_));
  RememberFieldId(max_field_id);
  return Status::OK();
}

Status NextManifestBuilder::ApplyReserve() {
  const uint64_t count = transaction_.reserve_fragments().num_fragments();
  const uint64_t base = header().has_max_fragment_id() ? header().max_fragment_id() : 0;
  if (base + count >= std::numeric_limits<uint32_t>::max()) {
    return InvalidInput("the table has used up its fragment ids");
  }
  header().set_max_fragment_id(static_cast<uint32_t>(base + count));
  return Status::OK();
}

Status NextManifestBuilder::ApplyUpdateBases() {
  auto* bases = header().mutable_base_paths();
  for (const auto& wanted : transaction_.update_bases().new_bases()) {
    uint32_t next_id = 1;
    for (const auto& base : *bases) {
      next_id = std::max(next_id, base.id() + 1);
      const bool same_name = wanted.has_name() && base.has_name() &&
                             !wanted.name().empty() && base.name() == wanted.name();
      if ((wanted.id() != 0 && base.id() == wanted.id()) || same_name ||
          base.path() == wanted.path()) {
        return InvalidInput("the table already has base path ", base.id(), " '",
                            base.name(), "' at ", base.path());
      }
    }
    if (wanted.path().empty()) return InvalidInput("a base path must not be empty");
    auto* added = bases->Add();
    *added = wanted;
    if (wanted.id() == 0) added->set_id(next_id);
  }
  return Status::OK();
}

bool NextManifestBuilder::HasCoveringIndex() const {
  // Only a manifest that had the flag can have such an index: this build makes none.
  const Snapshot* source = restored_ != nullptr ? restored_ : current_;
  if (!next_.index_section || source == nullptr ||
      !(source->header->writer_feature_flags() & kFlagCoveringIndexFields)) {
    return false;
  }
  lance::table::IndexSection section;
  if (!section.ParseFromString(*next_.index_section)) return true;
  return std::any_of(section.indices().begin(), section.indices().end(),
                     [](const auto& index) { return index.covering_fields_size() > 0; });
}

Status NextManifestBuilder::Finish() {
  GLAIVE_RETURN_NOT_OK(KeepFieldIds());
  next_.index_section = indices_.Serialized();
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
  return Status::OK();
}

NextManifest::NextManifest() = default;
NextManifest::NextManifest(NextManifest&&) noexcept = default;
NextManifest::~NextManifest() = default;

Result<NextManifest> BuildNextManifest(const Snapshot* current,
                                       const Transaction& transaction,
                                       const NextManifestOptions& options,
                                       const Snapshot* restored) {
  return NextManifestBuilder(current, transaction, options, restored).Build();
}

}  // namespace glaive::table
