#include "table/clone.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "table/feature_flags.h"
#include "table/fragment_list.h"
#include "table/manifest.h"
#include "table/names.h"
#include "table/snapshot.h"
#include "table/version_directory.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;
using lance::table::Manifest;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Names the source's root as a base and returns its id.
uint32_t AddBase(const std::string& root, const std::optional<std::string>& branch,
                 Manifest* header) {
  uint32_t id = 0;
  for (const auto& base : header->base_paths()) id = std::max(id, base.id() + 1);
  auto* base = header->add_base_paths();
  base->set_id(id);
  if (branch) base->set_name(*branch);
  base->set_is_dataset_root(true);
  base->set_path(root);
  return id;
}

Result<std::string> MoveIndices(std::string_view serialized, uint32_t base) {
  lance::table::IndexSection section;
  if (!section.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    return Corruption("the index section of the manifest does not decode");
  }
  for (auto& index : *section.mutable_indices()) {
    if (!index.has_base_id()) index.set_base_id(base);
  }
  return section.SerializeAsString();
}

}  // namespace

Status CloneManifest(const Dataset& source, const TableEnv& target,
                     const std::optional<std::string>& source_branch,
                     const std::optional<std::string>& branch, CommitOutcome* outcome) {
  *outcome = CommitOutcome::kNotCommitted;
  const auto version = static_cast<uint64_t>(source.version());
  io::ObjectStore& from = *source.env().store;
  io::ObjectStore& to = *target.store;
  GLAIVE_ASSIGN_OR_RETURN(const auto ref, FindVersion(from, version));
  if (!ref) return NotFound("table ", from.root(), " has no version ", version);
  GLAIVE_ASSIGN_OR_RETURN(const ManifestFile manifest, LoadManifest(from, *ref));
  GLAIVE_RETURN_NOT_OK(CheckWriterFlags(*manifest.header));
  GLAIVE_ASSIGN_OR_RETURN(const auto taken, FindNewest(to));
  if (taken) return AlreadyExists("Dataset already exists: ", to.root());

  lance::table::Transaction transaction;
  transaction.set_read_version(version);
  transaction.set_uuid(NewUuid());
  auto* clone = transaction.mutable_clone();
  clone->set_is_shallow(true);
  if (source_branch) clone->set_ref_name(*source_branch);
  clone->set_ref_version(version);
  clone->set_ref_path(from.root());
  if (branch) clone->set_branch_name(*branch);

  Manifest header = *manifest.header;
  const uint32_t base = AddBase(from.root(), source_branch, &header);
  header.clear_branch();
  if (branch) header.set_branch(*branch);
  header.clear_tag();
  header.set_transaction_file(TransactionFileName(version, transaction.uuid()));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  header.mutable_timestamp()->set_seconds(seconds.count());
  header.mutable_timestamp()->set_nanos(static_cast<int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds).count()));
  header.set_reader_feature_flags(header.reader_feature_flags() | kFlagBasePaths);
  header.set_writer_feature_flags(header.writer_feature_flags() | kFlagBasePaths);

  ManifestParts parts;
  std::deque<std::string> owned;
  std::vector<FragmentSummary> summaries;
  for (int i = 0; i < source.num_fragments(); ++i) {
    DataFragment fragment = source.fragment(i);
    if (fragment.id() != static_cast<uint64_t>(source.fragment_id(i))) {
      return Corruption("fragment ", source.fragment_id(i), " of table ", from.root(),
                        " does not decode");
    }
    for (auto& file : *fragment.mutable_files()) {
      if (!file.has_base_id()) file.set_base_id(base);
    }
    if (fragment.has_deletion_file() && !fragment.deletion_file().has_base_id()) {
      fragment.mutable_deletion_file()->set_base_id(base);
    }
    owned.push_back(fragment.SerializeAsString());
    parts.fragments.push_back(owned.back());
    GLAIVE_ASSIGN_OR_RETURN(auto summary, SummarizeFragment(owned.back()));
    summaries.push_back(summary);
  }
  std::string indices;
  if (manifest.index_section) {
    GLAIVE_ASSIGN_OR_RETURN(indices, MoveIndices(*manifest.index_section, base));
    parts.index_section = indices;
  }
  const std::string transaction_bytes = transaction.SerializeAsString();
  parts.header = &header;
  parts.transaction = transaction_bytes;
  GLAIVE_ASSIGN_OR_RETURN(const std::string bytes, SerializeManifest(parts, summaries));

  const std::string transaction_path = TransactionPath(header.transaction_file());
  GLAIVE_RETURN_NOT_OK(
      to.Put(transaction_path, AsBytes(transaction_bytes), /*durable=*/false));
  const std::string path = ManifestPath(version, ref->scheme);
  Status put = to.PutIfAbsent(path, AsBytes(bytes));
  if (!put.ok()) {
    if (KindOf(put) != ErrorKind::kAlreadyExists) {
      auto exists = to.Exists(path);
      if (!exists.ok() || *exists) {
        *outcome = CommitOutcome::kUnknown;
        return put;
      }
    }
    Status ignored = to.Delete(transaction_path);
    static_cast<void>(ignored.ok());
    return put;
  }
  *outcome = CommitOutcome::kCommitted;
  WriteVersionHint(to, version);
  return Status::OK();
}

}  // namespace glaive::table
