#include "table/conflict.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "file/schema.h"
#include "format/file.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/key_filter.h"
#include "table/transaction.h"

namespace glaive::table {
namespace {

using lance::table::Transaction;
using Op = Transaction::OperationCase;

constexpr char kFragmentReuseIndex[] = "__lance_frag_reuse";

bool Overlap(const std::set<uint64_t>& a, const std::set<uint64_t>& b) {
  return std::any_of(a.begin(), a.end(), [&b](uint64_t id) { return b.count(id) > 0; });
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

ConflictKind CheckCreateIndex(const Transaction& ours, const Transaction& theirs,
                              const ConflictContext& context) {
  const auto& create = ours.create_index();
  switch (theirs.operation_case()) {
    case Op::kOverwrite:
    case Op::kRestore:
    case Op::kUpdateMemWalState:
    case Op::OPERATION_NOT_SET:
      return ConflictKind::kIncompatible;
    case Op::kRewrite:
      // Whether the bitmaps meet the rewritten fragments is not looked at: run it again.
      return ConflictKind::kRetryable;
    case Op::kCreateIndex:
      for (const auto& index : create.new_indices()) {
        for (const auto& other : theirs.create_index().new_indices()) {
          if (index.name() == other.name() || index.name() == kFragmentReuseIndex) {
            return ConflictKind::kRetryable;
          }
        }
      }
      return ConflictKind::kNone;
    case Op::kDataReplacement:
      for (const auto& group : theirs.data_replacement().replacements()) {
        for (int32_t field : group.new_file().fields()) {
          for (const auto& index : create.new_indices()) {
            if (std::count(index.fields().begin(), index.fields().end(), field) > 0) {
              return ConflictKind::kRetryable;
            }
          }
        }
      }
      return ConflictKind::kNone;
    case Op::kMerge:
    case Op::kProject: {
      const auto& schema = theirs.operation_case() == Op::kMerge
                               ? theirs.merge().schema()
                               : theirs.project().schema();
      for (const auto& index : create.new_indices()) {
        for (int32_t id : index.fields()) {
          const file::Field* field =
              context.schema == nullptr ? nullptr : context.schema->FindById(id);
          const bool kept =
              field != nullptr &&
              std::any_of(schema.begin(), schema.end(), [&](const auto& f) {
                return f.id() == id && f.logical_type() == field->logical_type;
              });
          if (!kept) return ConflictKind::kRetryable;
        }
      }
      return ConflictKind::kNone;
    }
    default:
      return ConflictKind::kNone;
  }
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
    case Op::kRestore:
      return theirs.operation_case() == Op::kUpdateMemWalState ||
                     theirs.operation_case() == Op::OPERATION_NOT_SET
                 ? ConflictKind::kIncompatible
                 : ConflictKind::kNone;
    case Op::kReserveFragments:
      return theirs.operation_case() == Op::kOverwrite ||
                     theirs.operation_case() == Op::kRestore ||
                     theirs.operation_case() == Op::OPERATION_NOT_SET
                 ? ConflictKind::kIncompatible
                 : ConflictKind::kNone;
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
