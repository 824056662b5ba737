#include "table/index_section.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "io/object_store.h"
#include "table/dataset.h"
#include "table/deletion_vector.h"

namespace glaive::table {
namespace {

using lance::table::IndexMetadata;
using lance::table::Transaction;

constexpr int64_t kAllFragmentIds = int64_t{1} << 32;

// Indices of the system that cover no column.
bool IsSystem(const IndexMetadata& index) {
  return index.name() == "__lance_frag_reuse" || index.name() == "__lance_mem_wal";
}

bool HasType(const IndexMetadata& index, std::string_view name) {
  const std::string& url = index.index_details().type_url();
  return std::string_view(url).substr(url.rfind('.') + 1) == name;
}

// Whether the entries stay right for rows that move and keep their stable id. B-trees
// since version 1 hold addresses, zone maps and bloom filters describe places.
bool HoldsRowIds(const IndexMetadata& index) {
  if (HasType(index, "BTreeIndexDetails")) return index.index_version() == 0;
  return HasType(index, "BitmapIndexDetails") ||
         HasType(index, "LabelListIndexDetails") ||
         HasType(index, "InvertedIndexDetails") || HasType(index, "NGramIndexDetails") ||
         HasType(index, "VectorIndexDetails");
}

// Upstream extends fewer kinds over rows that an update moved.
bool FollowsMovedRows(const IndexMetadata& index) {
  return HoldsRowIds(index) && !HasType(index, "InvertedIndexDetails") &&
         !HasType(index, "NGramIndexDetails");
}

// Fragments that an index covers; null when it does not say.
Result<std::shared_ptr<const DeletionVector>> Coverage(const IndexMetadata& index) {
  const std::string& bytes = index.fragment_bitmap();
  if (bytes.empty()) return std::shared_ptr<const DeletionVector>();
  auto parsed = DeletionVector::ParseBitmap(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, kAllFragmentIds);
  if (!parsed.ok()) {
    return Corruption("the fragment bitmap of index ", index.name(),
                      " does not decode: ", parsed.status().message());
  }
  return parsed;
}

void SetCoverage(const DeletionVector& coverage, IndexMetadata* index) {
  const std::vector<uint8_t> bytes = coverage.ToBitmap();
  index->set_fragment_bitmap(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool ContainsAll(const DeletionVector& set, std::span<const uint32_t> ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](uint32_t id) { return set.Contains(id); });
}

bool Shares(const google::protobuf::RepeatedField<int32_t>& fields,
            std::span<const int32_t> others) {
  return std::any_of(fields.begin(), fields.end(), [&](int32_t id) {
    return std::find(others.begin(), others.end(), id) != others.end();
  });
}

}  // namespace

Result<lance::table::IndexSection> ReadIndexSection(const Dataset& dataset) {
  lance::table::IndexSection section;
  const auto bytes = dataset.index_section();
  if (bytes != nullptr && !section.ParseFromString(*bytes)) {
    return Corruption("the index section of version ", dataset.version(), " of table '",
                      dataset.env().store->root(), "' does not decode");
  }
  return section;
}

Status IndexEditor::Load() {
  if (section_) return Status::OK();
  section_.emplace();
  if (serialized_ && !section_->ParseFromString(*serialized_)) {
    return Corruption("the index section of the manifest does not decode");
  }
  return Status::OK();
}

void IndexEditor::RemoveIf(const std::function<bool(const IndexMetadata&)>& predicate) {
  auto* indices = section_->mutable_indices();
  const int before = indices->size();
  indices->erase(std::remove_if(indices->begin(), indices->end(), predicate),
                 indices->end());
  changed_ |= indices->size() != before;
}

Status IndexEditor::Create(const Transaction::CreateIndex& operation) {
  GLAIVE_RETURN_NOT_OK(Load());
  std::set<std::string> gone;
  for (const auto& index : operation.removed_indices()) gone.insert(index.uuid().uuid());
  for (const auto& index : operation.new_indices()) gone.insert(index.uuid().uuid());
  RemoveIf([&](const auto& index) { return gone.count(index.uuid().uuid()) > 0; });
  for (const auto& index : operation.new_indices()) {
    *section_->add_indices() = index;
    changed_ = true;
  }
  return Status::OK();
}

Status IndexEditor::KeepColumns(
    const google::protobuf::RepeatedPtrField<lance::file::Field>& schema) {
  if (!serialized_) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Load());
  std::set<int32_t> known;
  for (const auto& field : schema) known.insert(field.id());
  RemoveIf([&](const IndexMetadata& index) {
    return !IsSystem(index) &&
           std::any_of(index.fields().begin(), index.fields().end(),
                       [&](int32_t id) { return known.count(id) == 0; });
  });
  return Status::OK();
}

Status IndexEditor::Uncover(std::span<const int32_t> fields,
                            std::span<const uint32_t> fragments) {
  if (!serialized_ || fields.empty() || fragments.empty()) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Load());
  std::set<std::string> unknown;
  for (IndexMetadata& index : *section_->mutable_indices()) {
    if (IsSystem(index) || !Shares(index.fields(), fields)) continue;
    GLAIVE_ASSIGN_OR_RETURN(const auto coverage, Coverage(index));
    if (!coverage) {
      // It may hold old values of these rows, and nobody could tell.
      unknown.insert(index.uuid().uuid());
      continue;
    }
    if (!coverage->Intersects(fragments)) continue;
    SetCoverage(*coverage->Without(fragments), &index);
    changed_ = true;
  }
  RemoveIf([&](const auto& index) { return unknown.count(index.uuid().uuid()) > 0; });
  return Status::OK();
}

Status IndexEditor::CoverMovedRows(std::span<const int32_t> changed,
                                   std::span<const uint32_t> sources,
                                   std::span<const uint32_t> moved) {
  if (!serialized_ || moved.empty() || sources.empty()) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Load());
  for (IndexMetadata& index : *section_->mutable_indices()) {
    if (IsSystem(index) || !FollowsMovedRows(index) || Shares(index.fields(), changed)) {
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto coverage, Coverage(index));
    if (!coverage || !ContainsAll(*coverage, sources)) continue;
    SetCoverage(*coverage->Union(moved), &index);
    changed_ = true;
  }
  return Status::OK();
}

Status IndexEditor::Rewrite(const Transaction::Rewrite& operation,
                            std::span<const RewrittenGroup> groups, bool stable_row_ids) {
  if (!serialized_) return Status::OK();
  GLAIVE_RETURN_NOT_OK(Load());
  std::set<std::string> unknown;
  for (IndexMetadata& index : *section_->mutable_indices()) {
    if (IsSystem(index)) continue;
    const Transaction::RewrittenIndex* rewritten = nullptr;
    for (const auto& candidate : operation.rewritten_indices()) {
      if (candidate.old_id().uuid() == index.uuid().uuid()) rewritten = &candidate;
    }
    const bool follows = rewritten != nullptr || (stable_row_ids && HoldsRowIds(index));
    GLAIVE_ASSIGN_OR_RETURN(auto coverage, Coverage(index));
    if (!coverage && rewritten == nullptr) {
      if (!follows) unknown.insert(index.uuid().uuid());
      continue;
    }
    if (rewritten != nullptr) {
      *index.mutable_uuid() = rewritten->new_id();
      *index.mutable_index_details() = rewritten->new_index_details();
      index.set_index_version(static_cast<int32_t>(rewritten->new_index_version()));
      *index.mutable_files() = rewritten->new_index_files();
      index.clear_base_id();
      changed_ = true;
    }
    if (!follows || !coverage) continue;
    for (const RewrittenGroup& group : groups) {
      if (ContainsAll(*coverage, group.old_ids)) {
        coverage = coverage->Without(group.old_ids)->Union(group.new_ids);
        changed_ = true;
      } else if (rewritten != nullptr && coverage->Intersects(group.old_ids)) {
        return InvalidInput("a rewrite must not mix fragments that index ", index.name(),
                            " covers with others");
      }
    }
    SetCoverage(*coverage, &index);
  }
  RemoveIf([&](const auto& index) { return unknown.count(index.uuid().uuid()) > 0; });
  return Status::OK();
}

std::shared_ptr<const std::string> IndexEditor::Serialized() {
  if (!changed_) return serialized_;
  if (section_->indices_size() == 0) return nullptr;
  return std::make_shared<const std::string>(section_->SerializeAsString());
}

}  // namespace glaive::table
