#include "table/conflict.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "file/schema.h"
#include "format/file.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/deletion_vector.h"
#include "table/key_filter.h"
#include "table/mem_wal_entry.h"
#include "table/transaction.h"

namespace glaive::table {
namespace {

using lance::table::Transaction;
using Op = Transaction::OperationCase;

constexpr char kFragmentReuseIndex[] = "__lance_frag_reuse";

bool NamesMemWal(
    const google::protobuf::RepeatedPtrField<lance::table::IndexMetadata>& indices) {
  return std::any_of(indices.begin(), indices.end(),
                     [](const auto& index) { return index.name() == kMemWalIndex; });
}

// Some changes of columns are refused beside an LSM write path: its rows are not seen.
bool AttachesMemWal(const Transaction& transaction) {
  return NamesMemWal(transaction.create_index().new_indices());
}

bool DetachesMemWal(const Transaction& transaction) {
  return NamesMemWal(transaction.create_index().removed_indices());
}

bool Overlap(const std::set<uint64_t>& a, const std::set<uint64_t>& b) {
  return std::any_of(a.begin(), a.end(), [&b](uint64_t id) { return b.count(id) > 0; });
}

std::set<int32_t> IdsOf(
    const google::protobuf::RepeatedPtrField<lance::file::Field>& schema) {
  std::set<int32_t> ids;
  for (const auto& field : schema) ids.insert(field.id());
  return ids;
}

using Fragments = google::protobuf::RepeatedPtrField<lance::table::DataFragment>;

// Field ids that the files of new fragments hold.
std::set<int32_t> WrittenFields(const Fragments& fragments) {
  std::set<int32_t> ids;
  for (const auto& fragment : fragments) {
    for (const auto& file : fragment.files()) {
      for (int32_t id : file.fields()) {
        if (id >= 0) ids.insert(id);
      }
    }
  }
  return ids;
}

// New rows were written for one schema, and another one replaced it. Upstream commits
// them all the same and then reads nulls, or the values of another column, where ids
// changed their meaning.
ConflictKind NewRowsOverSchema(
    const Fragments& fragments, const file::Schema* made_for,
    const google::protobuf::RepeatedPtrField<lance::file::Field>& schema,
    bool preserves_nullability) {
  if (fragments.empty()) return ConflictKind::kNone;
  if (!preserves_nullability || made_for == nullptr) return ConflictKind::kRetryable;
  std::map<int32_t, const lance::file::Field*> by_id;
  for (const auto& field : schema) by_id[field.id()] = &field;
  for (int32_t id : WrittenFields(fragments)) {
    const file::Field* ours = made_for->FindById(id);
    while (ours != nullptr) {
      auto theirs = by_id.find(ours->id);
      if (theirs == by_id.end() || theirs->second->logical_type() != ours->logical_type ||
          theirs->second->parent_id() != ours->parent_id) {
        return ConflictKind::kRetryable;
      }
      ours = ours->parent_id < 0 ? nullptr : made_for->FindById(ours->parent_id);
    }
  }
  for (const auto& [id, field] : by_id) {
    if (!field->nullable() && field->parent_id() < 0 &&
        made_for->FindById(id) == nullptr) {
      return ConflictKind::kRetryable;  // a column that must have values, and ours brings
                                        // none
    }
  }
  return ConflictKind::kNone;
}

ConflictKind CheckAppend(const Transaction& ours, const Transaction& theirs,
                         const ConflictContext& context) {
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kMerge:
      return NewRowsOverSchema(ours.append().fragments(), context.schema,
                               theirs.merge().schema(),
                               theirs.merge().preserves_nullability());
    case Op::kProject:
      return NewRowsOverSchema(ours.append().fragments(), context.schema,
                               theirs.project().schema(),
                               theirs.project().preserves_nullability());
    default:
      return ConflictKind::kNone;
  }
}

bool RewritesColumns(const Transaction& transaction) {
  return transaction.has_update() &&
         transaction.update().update_mode() == Transaction::Update::REWRITE_COLUMNS;
}

// Whether generations of a shard were merged meanwhile that ours follow: what ours found
// in the table is out of date then, deletions of keys that were missing above all. (Where
// ours are not newer, the commit fails on what is recorded.)
bool FollowsCompaction(const Transaction& ours, const Transaction& theirs) {
  for (const auto& mine : ours.update().compacted_sstables()) {
    for (const auto& other : theirs.update().compacted_sstables()) {
      if (mine.shard_id().uuid() == other.shard_id().uuid() &&
          mine.generation() > other.generation()) {
        return true;
      }
    }
  }
  return false;
}

// Of a delete or update.
ConflictKind CheckRowChange(const Transaction& ours, const Transaction& theirs,
                            const ConflictContext& context) {
  auto overlap = [&] {
    return Overlap(ModifiedFragments(ours), ModifiedFragments(theirs));
  };
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kUpdateMemWalState:
      return ours.has_update() ? ConflictKind::kRetryable : ConflictKind::kIncompatible;
    case Op::kMerge:
      return ConflictKind::kRetryable;
    case Op::kProject:
      if (!ours.has_update()) return ConflictKind::kNone;
      if (RewritesColumns(ours)) return ConflictKind::kRetryable;
      return NewRowsOverSchema(ours.update().new_fragments(), context.schema,
                               theirs.project().schema(),
                               theirs.project().preserves_nullability());
    case Op::kRewrite:
    case Op::kDataReplacement:
      return overlap() ? ConflictKind::kRetryable : ConflictKind::kNone;
    case Op::kAppend:
      return ours.update().has_inserted_rows() ? ConflictKind::kRetryable
                                               : ConflictKind::kNone;
    case Op::kDelete:
    case Op::kUpdate:
      if (ours.update().has_inserted_rows() && theirs.has_update() &&
          MayInsertSameKey(ours.update(), theirs.update())) {
        return ConflictKind::kRetryable;
      }
      if (FollowsCompaction(ours, theirs)) return ConflictKind::kRetryable;
      if (!overlap()) return ConflictKind::kNone;
      if (RewritesColumns(ours) || RewritesColumns(theirs)) {
        return ConflictKind::kRetryable;
      }
      return context.rows_known ? ConflictKind::kRebase : ConflictKind::kRetryable;
    default:
      return ConflictKind::kNone;
  }
}

std::set<std::string> ConfigKeys(const Transaction::UpdateConfig& update) {
  std::set<std::string> keys;
  for (const auto& entry : update.config_updates().update_entries())
    keys.insert(entry.key());
  for (const auto& [key, value] : update.upsert_values()) keys.insert(key);
  keys.insert(update.delete_keys().begin(), update.delete_keys().end());
  return keys;
}

std::set<std::string> TableMetadataKeys(const Transaction::UpdateConfig& update) {
  std::set<std::string> keys;
  for (const auto& entry : update.table_metadata_updates().update_entries()) {
    keys.insert(entry.key());
  }
  return keys;
}

std::set<int64_t> TouchedFields(const Transaction::UpdateConfig& update) {
  std::set<int64_t> ids;
  for (const auto& [id, map] : update.field_metadata_updates()) ids.insert(id);
  for (const auto& [id, map] : update.field_metadata()) ids.insert(id);
  return ids;
}

bool TouchesSchemaMetadata(const Transaction::UpdateConfig& update) {
  return update.has_schema_metadata_updates() || !update.schema_metadata().empty();
}

bool TouchesSchema(const Transaction::UpdateConfig& update) {
  return TouchesSchemaMetadata(update) || !TouchedFields(update).empty();
}

template <typename T>
bool Meet(const std::set<T>& a, const std::set<T>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const T& key) { return b.count(key) > 0; });
}

std::set<std::string> ConfigKeys(const Transaction::Overwrite& overwrite) {
  std::set<std::string> keys;
  for (const auto& [key, value] : overwrite.config_upsert_values()) keys.insert(key);
  return keys;
}

ConflictKind CheckOverwrite(const Transaction& ours, const Transaction& theirs) {
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
      return ConflictKind::kRetryable;
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kUpdateConfig:
      return Meet(ConfigKeys(ours.overwrite()), ConfigKeys(theirs.update_config()))
                 ? ConflictKind::kIncompatible
                 : ConflictKind::kNone;
    default:
      return ConflictKind::kNone;
  }
}

ConflictKind CheckUpdateConfig(const Transaction& ours, const Transaction& theirs) {
  const auto& update = ours.update_config();
  switch (theirs.operation_case()) {
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kOverwrite:
      return TouchesSchema(update) ||
                     Meet(ConfigKeys(update), ConfigKeys(theirs.overwrite()))
                 ? ConflictKind::kIncompatible
                 : ConflictKind::kNone;
    case Op::kRestore:
      return TouchesSchema(update) ? ConflictKind::kIncompatible : ConflictKind::kNone;
    case Op::kMerge:
      return TouchesSchema(update) ? ConflictKind::kRetryable : ConflictKind::kNone;
    case Op::kProject: {
      const std::set<int32_t> left = IdsOf(theirs.project().schema());
      for (int64_t id : TouchedFields(update)) {
        if (left.count(static_cast<int32_t>(id)) == 0) return ConflictKind::kIncompatible;
      }
      return ConflictKind::kNone;
    }
    case Op::kUpdateConfig: {
      const auto& other = theirs.update_config();
      const bool clash =
          Meet(ConfigKeys(update), ConfigKeys(other)) ||
          Meet(TableMetadataKeys(update), TableMetadataKeys(other)) ||
          (TouchesSchemaMetadata(update) && TouchesSchemaMetadata(other)) ||
          Meet(TouchedFields(update), TouchedFields(other));
      return clash ? ConflictKind::kIncompatible : ConflictKind::kNone;
    }
    default:
      return ConflictKind::kNone;
  }
}

bool Covers(const lance::table::IndexMetadata& index, const std::set<uint64_t>& ids) {
  const std::string& bytes = index.fragment_bitmap();
  if (bytes.empty()) return true;  // it does not say
  auto coverage = DeletionVector::ParseBitmap(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, int64_t{1} << 32);
  if (!coverage.ok()) return true;
  return std::any_of(ids.begin(), ids.end(), [&](uint64_t id) {
    return (*coverage)->Contains(static_cast<uint32_t>(id));
  });
}

bool IndexesOneOf(const lance::table::IndexMetadata& index,
                  const std::set<int32_t>& fields) {
  return std::any_of(index.fields().begin(), index.fields().end(),
                     [&](int32_t id) { return fields.count(id) > 0; });
}

std::set<int32_t> ReplacedFields(const Transaction::DataReplacement& replacement) {
  std::set<int32_t> ids;
  for (const auto& group : replacement.replacements()) {
    ids.insert(group.new_file().fields().begin(), group.new_file().fields().end());
  }
  return ids;
}

// Two values of an index made for the same fragments: one of them is old.
bool AnyIndex(const Transaction::CreateIndex& create,
              const std::function<bool(const lance::table::IndexMetadata&)>& matches) {
  return std::any_of(create.new_indices().begin(), create.new_indices().end(), matches);
}

bool IndexSchemaChanged(
    const Transaction::CreateIndex& create, const file::Schema* made_for,
    const google::protobuf::RepeatedPtrField<lance::file::Field>& schema) {
  return AnyIndex(create, [&](const auto& index) {
    return !std::all_of(index.fields().begin(), index.fields().end(), [&](int32_t id) {
      const file::Field* field = made_for == nullptr ? nullptr : made_for->FindById(id);
      return field != nullptr &&
             std::any_of(schema.begin(), schema.end(), [&](const auto& f) {
               return f.id() == id && f.logical_type() == field->logical_type;
             });
    });
  });
}

ConflictKind CheckCreateIndex(const Transaction& ours, const Transaction& theirs,
                              const ConflictContext& context) {
  const auto& create = ours.create_index();
  auto retry_if = [](bool conflict) {
    return conflict ? ConflictKind::kRetryable : ConflictKind::kNone;
  };
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kRewrite: {
      const std::set<uint64_t> rewritten = ModifiedFragments(theirs);
      return retry_if(AnyIndex(create, [&](const auto& index) {
        return index.name() == kFragmentReuseIndex || Covers(index, rewritten);
      }));
    }
    case Op::kCreateIndex:
      return retry_if(AnyIndex(create, [&](const auto& index) {
        auto same = [&](const auto& other) {
          return index.name() == other.name() ||
                 (index.has_uuid() && index.uuid().uuid() == other.uuid().uuid());
        };
        const auto& other = theirs.create_index();
        return std::any_of(other.new_indices().begin(), other.new_indices().end(),
                           same) ||
               std::any_of(other.removed_indices().begin(), other.removed_indices().end(),
                           same);
      }));
    case Op::kDataReplacement: {
      const auto fields = ReplacedFields(theirs.data_replacement());
      return retry_if(AnyIndex(
          create, [&](const auto& index) { return IndexesOneOf(index, fields); }));
    }
    case Op::kUpdate: {
      // Progress gave the entry another uuid, and whoever takes it away names the old.
      if (theirs.update().compacted_sstables_size() > 0 &&
          (AttachesMemWal(ours) || DetachesMemWal(ours))) {
        return ConflictKind::kRetryable;
      }
      if (!RewritesColumns(theirs)) return ConflictKind::kNone;
      const std::set<int32_t> fields(theirs.update().fields_modified().begin(),
                                     theirs.update().fields_modified().end());
      return retry_if(AnyIndex(
          create, [&](const auto& index) { return IndexesOneOf(index, fields); }));
    }
    case Op::kMerge:
      return retry_if(
          IndexSchemaChanged(create, context.schema, theirs.merge().schema()));
    case Op::kProject:
      return retry_if(
          IndexSchemaChanged(create, context.schema, theirs.project().schema()));
    default:
      return ConflictKind::kNone;
  }
}

ConflictKind CheckRewrite(const Transaction& ours, const Transaction& theirs) {
  const std::set<uint64_t> rewritten = ModifiedFragments(ours);
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kMerge:
      return ConflictKind::kRetryable;
    case Op::kDelete:
    case Op::kUpdate:
    case Op::kRewrite:
    case Op::kDataReplacement:
      return Overlap(rewritten, ModifiedFragments(theirs)) ? ConflictKind::kRetryable
                                                           : ConflictKind::kNone;
    case Op::kCreateIndex:
      return AnyIndex(theirs.create_index(),
                      [&](const auto& index) {
                        return index.name() == kFragmentReuseIndex ||
                               Covers(index, rewritten);
                      })
                 ? ConflictKind::kRetryable
                 : ConflictKind::kNone;
    default:
      return ConflictKind::kNone;
  }
}

ConflictKind CheckMerge(const Transaction& theirs) {
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::kProject:
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kAppend:
    case Op::kDelete:
    case Op::kUpdate:
    case Op::kRewrite:
    case Op::kMerge:
    case Op::kDataReplacement:
      return ConflictKind::kRetryable;
    case Op::kUpdateConfig:
      return TouchesSchema(theirs.update_config()) ? ConflictKind::kRetryable
                                                   : ConflictKind::kNone;
    case Op::kCreateIndex:
      return AttachesMemWal(theirs) ? ConflictKind::kRetryable : ConflictKind::kNone;
    default:
      return ConflictKind::kNone;
  }
}

ConflictKind CheckProject(const Transaction& ours, const Transaction& theirs) {
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kProject:
    case Op::kMerge:
      return ConflictKind::kRetryable;
    case Op::kAppend:
    case Op::kUpdate:
    case Op::kDataReplacement:
      // A column that became non-null may have got nulls.
      return ours.project().preserves_nullability() ? ConflictKind::kNone
                                                    : ConflictKind::kRetryable;
    case Op::kCreateIndex:
      return !ours.project().preserves_nullability() && AttachesMemWal(theirs)
                 ? ConflictKind::kRetryable
                 : ConflictKind::kNone;
    case Op::kUpdateConfig:
      // Ours holds the metadata of fields as it was. Upstream lets theirs be lost.
      return TouchedFields(theirs.update_config()).empty() ? ConflictKind::kNone
                                                           : ConflictKind::kRetryable;
    default:
      return ConflictKind::kNone;
  }
}

ConflictKind CheckDataReplacement(const Transaction& ours, const Transaction& theirs) {
  const std::set<uint64_t> fragments = ModifiedFragments(ours);
  const std::set<int32_t> fields = ReplacedFields(ours.data_replacement());
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kMerge:
      return ConflictKind::kRetryable;
    case Op::kProject: {
      if (!theirs.project().preserves_nullability()) return ConflictKind::kRetryable;
      const std::set<int32_t> left = IdsOf(theirs.project().schema());
      return std::includes(left.begin(), left.end(), fields.begin(), fields.end())
                 ? ConflictKind::kNone
                 : ConflictKind::kRetryable;
    }
    case Op::kRewrite:
      return Overlap(fragments, ModifiedFragments(theirs)) ? ConflictKind::kRetryable
                                                           : ConflictKind::kNone;
    case Op::kDelete:
    case Op::kUpdate: {
      const auto& removed = theirs.has_update() ? theirs.update().removed_fragment_ids()
                                                : theirs.delete_().deleted_fragment_ids();
      const std::set<uint64_t> gone(removed.begin(), removed.end());
      if (Overlap(fragments, gone)) return ConflictKind::kIncompatible;
      return RewritesColumns(theirs) && Overlap(fragments, ModifiedFragments(theirs))
                 ? ConflictKind::kRetryable
                 : ConflictKind::kNone;
    }
    case Op::kDataReplacement:
      return Overlap(fragments, ModifiedFragments(theirs)) &&
                     Meet(fields, ReplacedFields(theirs.data_replacement()))
                 ? ConflictKind::kRetryable
                 : ConflictKind::kNone;
    case Op::kCreateIndex:
      return AnyIndex(theirs.create_index(),
                      [&](const auto& index) { return IndexesOneOf(index, fields); })
                 ? ConflictKind::kRetryable
                 : ConflictKind::kNone;
    default:
      return ConflictKind::kNone;
  }
}

ConflictKind CheckUpdateBases(const Transaction& ours, const Transaction& theirs) {
  if (theirs.operation_case() == Op::OPERATION_NOT_SET)
    return ConflictKind::kIncompatible;
  for (const auto& a : ours.update_bases().new_bases()) {
    for (const auto& b : theirs.update_bases().new_bases()) {
      if ((a.id() != 0 && a.id() == b.id()) || a.path() == b.path() ||
          (!a.name().empty() && a.name() == b.name())) {
        return ConflictKind::kIncompatible;
      }
    }
  }
  return ConflictKind::kNone;
}

ConflictKind IncompatibleWith(const Transaction& theirs, std::set<Op> operations) {
  operations.insert(Op::OPERATION_NOT_SET);
  return operations.count(theirs.operation_case()) > 0 ? ConflictKind::kIncompatible
                                                       : ConflictKind::kNone;
}

}  // namespace

ConflictKind CheckConflict(const Transaction& ours, const Transaction& theirs,
                           const ConflictContext& context) {
  switch (ours.operation_case()) {
    case Op::kAppend:
      return CheckAppend(ours, theirs, context);
    case Op::kDelete:
    case Op::kUpdate:
      return CheckRowChange(ours, theirs, context);
    case Op::kOverwrite:
      return CheckOverwrite(ours, theirs);
    case Op::kUpdateConfig:
      return CheckUpdateConfig(ours, theirs);
    case Op::kCreateIndex:
      return CheckCreateIndex(ours, theirs, context);
    case Op::kRewrite:
      return CheckRewrite(ours, theirs);
    case Op::kMerge:
      return CheckMerge(theirs);
    case Op::kProject:
      return CheckProject(ours, theirs);
    case Op::kDataReplacement:
      return CheckDataReplacement(ours, theirs);
    case Op::kUpdateBases:
      return CheckUpdateBases(ours, theirs);
    case Op::kRestore:
      return IncompatibleWith(theirs, {Op::kUpdateMemWalState});
    case Op::kReserveFragments:
      return IncompatibleWith(theirs, {Op::kOverwrite, Op::kRestore});
    case Op::kClone:
      return IncompatibleWith(theirs, {});
    case Op::kUpdateMemWalState:
      // What it records is checked against the version that it lands on. Rows that were
      // taken away again as a whole are no progress.
      return IncompatibleWith(theirs, {Op::kOverwrite, Op::kRestore});
    default:
      // Nothing is known of its needs: whatever came between, run it again.
      return ConflictKind::kRetryable;
  }
}

Status RetryableError(const Transaction& ours, const Transaction& theirs,
                      uint64_t version) {
  return RetryableConflict(
      "Retryable commit conflict for version ", version, ": This ", OperationName(ours),
      " transaction was preempted by concurrent transaction ", OperationName(theirs),
      " at version ", version, ". Please retry.");
}

Status IncompatibleError(const Transaction& ours, const Transaction& theirs,
                         uint64_t version) {
  return Conflict("Incompatible transaction: This ", OperationName(ours),
                  " transaction is incompatible with concurrent transaction ",
                  OperationName(theirs), " at version ", version, ".");
}

}  // namespace glaive::table
