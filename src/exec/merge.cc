#include "exec/merge.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "exec/merge_condition.h"
#include "exec/merge_match.h"
#include "exec/merge_source.h"
#include "exec/merge_write.h"
#include "exec/plan.h"
#include "exec/retry.h"
#include "expr/predicate.h"
#include "format/file.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/mem_wal_entry.h"

namespace glaive::exec {
namespace {

// Memory for source rows before they are spilled: a share of the budget, and no more than
// is worth holding.
constexpr int64_t kMostMemory = int64_t{64} << 20;
constexpr int64_t kBudgetShare = 8;

std::vector<std::string> PrimaryKey(const table::Dataset& dataset) {
  google::protobuf::RepeatedPtrField<lance::file::Field> fields;
  dataset.schema().ToProto(&fields);
  std::vector<std::pair<std::pair<uint32_t, int32_t>, std::string>> keys;
  for (const auto& field : fields) {
    if (!field.unenforced_primary_key() || field.parent_id() >= 0) continue;
    const uint32_t position = field.unenforced_primary_key_position();
    keys.push_back({{position == 0 ? UINT32_MAX : position, field.id()}, field.name()});
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> names;
  for (auto& [order, name] : keys) names.push_back(std::move(name));
  return names;
}

// The name of the column as the table writes it; by case-insensitive match if it is the
// only one.
const file::Field* FindColumn(const file::Schema& schema, const std::string& name) {
  if (const file::Field* exact = schema.FindTopLevel(name)) return exact;
  const std::string path[] = {name};
  const file::Field* found = schema.FindByPath(path);
  return found != nullptr && found->parent_id < 0 ? found : nullptr;
}

Result<std::vector<std::string>> KeyColumns(const table::Dataset& dataset,
                                            const std::vector<std::string>& on) {
  std::vector<std::string> columns = on.empty() ? PrimaryKey(dataset) : on;
  if (columns.empty()) {
    return InvalidInput(
        "Invalid input, a merge insert needs join keys: name the columns in `on`, or "
        "give "
        "the table an unenforced primary key");
  }
  std::vector<std::string> resolved;
  for (const std::string& name : columns) {
    const file::Field* field = FindColumn(dataset.schema(), name);
    if (field == nullptr) {
      if (auto path = file::ParseFieldPath(name);
          path.ok() && path->size() > 1 &&
          dataset.schema().FindByPath(*path) != nullptr) {
        return InvalidInput("Invalid input, Merge insert key column '", name,
                            "' is the member of a struct; keys are whole columns");
      }
      return InvalidInput("Invalid input, Merge insert key column '", name,
                          "' does not exist in schema");
    }
    if (std::find(resolved.begin(), resolved.end(), field->name) == resolved.end()) {
      resolved.push_back(field->name);
    }
  }
  return resolved;
}

// A merge whose options were found to make sense for one snapshot.
struct MergePlan {
  std::vector<std::string> key_columns;
  KeyCodec codec;
  std::vector<int> source_keys;  // columns of the source
  std::unique_ptr<UpdateCondition> condition;
};

Status CheckTombstones(const table::Dataset& dataset, const arrow::Schema& source,
                       const MergeOptions& options) {
  const std::string& name = options.tombstone_column;
  if (name.empty()) return Status::OK();
  const auto field = source.GetFieldByName(name);
  if (field == nullptr || field->type()->id() != arrow::Type::BOOL) {
    return InvalidInput("Invalid input, the source of the merge has no boolean column '",
                        name, "' that says which keys to delete");
  }
  if (dataset.schema().FindTopLevel(name) != nullptr) {
    return InvalidInput("Invalid input, column '", name,
                        "' says which keys to delete, but the table has a column of "
                        "that name");
  }
  if (options.matched != MatchedAction::kUpdate) {
    return InvalidInput(
        "Invalid input, keys to delete go with matched rows that are "
        "updated only");
  }
  return Status::OK();
}

bool SameFields(const std::vector<file::Field>& a, const std::vector<file::Field>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const file::Field& x, const file::Field& y) {
                      return x.id == y.id && x.name == y.name &&
                             x.logical_type == y.logical_type &&
                             SameFields(x.children, y.children);
                    });
}

Status CheckSource(const table::Dataset& dataset, const arrow::Schema& source,
                   const MergeOptions& options) {
  const bool inserts = options.insert_not_matched;
  GLAIVE_RETURN_NOT_OK(CheckTombstones(dataset, source, options));
  if (options.made_for != nullptr &&
      !SameFields(options.made_for->fields(), dataset.schema().fields())) {
    return SchemaMismatch("the columns of table ", dataset.env().store->root(),
                          " changed since the rows to merge were made");
  }
  for (const auto& column : source.fields()) {
    if (!options.tombstone_column.empty() && column->name() == options.tombstone_column) {
      continue;
    }
    const auto shown = dataset.arrow_schema()->GetFieldByName(column->name());
    if (shown == nullptr) {
      return SchemaMismatch("Field '", column->name(), "' not found in target schema");
    }
    if (!shown->type()->Equals(column->type())) {
      return SchemaMismatch("column `", column->name(), "` should have type ",
                            shown->type()->ToString(), " but type was ",
                            column->type()->ToString());
    }
  }
  if (!inserts) return Status::OK();
  for (const auto& field : dataset.schema().fields()) {
    if (field.nullable || source.GetFieldIndex(field.name) >= 0) continue;
    return InvalidInput("Invalid input, Cannot insert rows without column '", field.name,
                        "', which is not nullable: add it to the source, or do not ask "
                        "for inserts");
  }
  return Status::OK();
}

Result<MergePlan> MakePlan(const table::Dataset& dataset, const arrow::Schema& source,
                           const MergeOptions& options) {
  MergePlan plan;
  GLAIVE_ASSIGN_OR_RETURN(plan.key_columns, KeyColumns(dataset, options.on));
  if (options.matched == MatchedAction::kKeep && !options.insert_not_matched &&
      !options.delete_not_in_source) {
    return InvalidInput(
        "Invalid input, The merge insert job is not configured to change the data in any "
        "way");
  }
  arrow::FieldVector fields;
  for (const std::string& name : plan.key_columns) {
    const int index = source.GetFieldIndex(name);
    if (index < 0) {
      return InvalidInput("Invalid input, the source of the merge lacks the key column '",
                          name, "': No field named ", name);
    }
    plan.source_keys.push_back(index);
    fields.push_back(dataset.schema().FindTopLevel(name)->ToArrow());
  }
  GLAIVE_RETURN_NOT_OK(CheckSource(dataset, source, options));
  GLAIVE_ASSIGN_OR_RETURN(plan.codec, KeyCodec::Make(std::move(fields)));
  if (!options.update_condition.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(
        plan.condition, MakeUpdateCondition(dataset, source, options.update_condition));
  }
  if (!options.delete_condition.empty()) {
    // As upstream: over the columns of the table alone.
    GLAIVE_RETURN_NOT_OK(expr::Predicate::Make(options.delete_condition, dataset.schema(),
                                               expr::ExtraColumns())
                             .status());
  }
  return plan;
}

Result<std::unique_ptr<MergeSource>> ReadSource(const table::Dataset& dataset,
                                                const MergePlan& plan,
                                                arrow::RecordBatchReader& stream,
                                                const MergeOptions& options) {
  MergeSource::Limits limits;
  limits.memory_bytes = options.memory_bytes;
  if (limits.memory_bytes <= 0) {
    const int64_t budget = dataset.env().runtime->memory().limit_bytes();
    limits.memory_bytes = std::min(kMostMemory, budget / kBudgetShare);
  }
  limits.in_memory = options.source_in_memory;
  limits.spill_directory = options.spill_directory;
  return MergeSource::Read(stream, plan.source_keys, plan.codec, std::move(limits),
                           options.cancel);
}

Status CheckProgress(const table::Dataset& dataset, const MergeOptions& options) {
  for (size_t i = 0; i < options.compacted_before.size(); ++i) {
    const std::string& shard = options.compacted[i].shard;
    GLAIVE_ASSIGN_OR_RETURN(const uint64_t recorded,
                            table::RecordedGeneration(dataset, shard));
    if (recorded == options.compacted_before[i]) continue;
    return Conflict("generations up to ", recorded, " of a shard of table ",
                    dataset.env().store->root(),
                    " were merged by somebody else meanwhile");
  }
  return Status::OK();
}

enum class Commit : uint8_t { kYes, kNo };

Result<MergeResult> MergeOnce(const table::Dataset& dataset, const MergeSource& source,
                              const MergeOptions& options, Commit commit) {
  GLAIVE_RETURN_NOT_OK(CheckProgress(dataset, options));
  // Made anew for each snapshot: the schema may have changed.
  GLAIVE_ASSIGN_OR_RETURN(const MergePlan plan,
                          MakePlan(dataset, *source.schema(), options));
  GLAIVE_ASSIGN_OR_RETURN(
      const Matches matches,
      FindMatches(dataset, source, plan.key_columns, plan.codec, options));
  MergeResult result;
  result.source_rows = source.num_rows();
  result.spilled_bytes = source.spilled_bytes();
  result.num_passes = source.num_passes();
  result.num_skipped_duplicates = matches.num_repeated;
  table::RowUpdate update;
  MergeWriter writer(dataset, source, options, plan.condition.get());
  GLAIVE_RETURN_NOT_OK(writer.Run(matches, plan.codec, &update, &result));
  if (commit == Commit::kNo) return result;
  if (options.cancel != nullptr) GLAIVE_RETURN_NOT_OK(options.cancel->CheckOnCaller());
  update.compacted = options.compacted;
  table::CommitOutcome outcome = table::CommitOutcome::kNotCommitted;
  auto committed = dataset.CommitUpdate(update, &outcome);
  if (outcome != table::CommitOutcome::kNotCommitted) writer.Keep();
  GLAIVE_ASSIGN_OR_RETURN(result.dataset, std::move(committed));
  return result;
}

const char* MatchedText(const MergeOptions& options) {
  switch (options.matched) {
    case MatchedAction::kUpdate:
      return "UpdateAll";
    case MatchedAction::kDelete:
      return "Delete";
    case MatchedAction::kFail:
      return "Fail";
    case MatchedAction::kKeep:
      break;
  }
  return "DoNothing";
}

// The first line of plans.
std::string Headline(const MergePlan& plan, const MergeOptions& options) {
  std::ostringstream out;
  out << "on=[";
  for (size_t i = 0; i < plan.key_columns.size(); ++i) {
    out << (i > 0 ? ", " : "") << plan.key_columns[i];
  }
  out << "], when_matched=";
  if (options.matched == MatchedAction::kUpdate && plan.condition != nullptr) {
    out << "UpdateIf(" << options.update_condition << ")";
  } else {
    out << MatchedText(options);
  }
  out << ", when_not_matched=" << (options.insert_not_matched ? "InsertAll" : "DoNothing")
      << ", when_not_matched_by_source=";
  if (!options.delete_not_in_source) {
    out << "Keep";
  } else if (options.delete_condition.empty()) {
    out << "Delete";
  } else {
    out << "DeleteIf(" << options.delete_condition << ")";
  }
  return out.str();
}

std::string Steps(const table::Dataset& dataset, const MergePlan& plan,
                  const arrow::Schema& source) {
  std::ostringstream out;
  out << "  HashJoin: build=source, probe=table\n    LanceRead: projection=[";
  for (size_t i = 0; i < plan.key_columns.size(); ++i) {
    out << (i > 0 ? ", " : "") << plan.key_columns[i];
  }
  out << "], num_fragments=" << dataset.num_fragments()
      << ", rows=" << dataset.count_rows() << "\n    Source: columns=[";
  for (int i = 0; i < source.num_fields(); ++i) {
    out << (i > 0 ? ", " : "") << source.field(i)->name();
  }
  out << "]\n";
  return out.str();
}

}  // namespace

Result<MergeResult> MergeInsert(table::Dataset::Ptr dataset,
                                std::shared_ptr<arrow::RecordBatchReader> source,
                                const MergeOptions& options) {
  if (options.cancel != nullptr) GLAIVE_RETURN_NOT_OK(options.cancel->CheckOnCaller());
  std::unique_ptr<MergeSource> rows;
  {
    GLAIVE_ASSIGN_OR_RETURN(const MergePlan plan,
                            MakePlan(*dataset, *source->schema(), options));
    GLAIVE_ASSIGN_OR_RETURN(rows, ReadSource(*dataset, plan, *source, options));
  }
  source.reset();
  return RunWithRetries(
      std::move(dataset), options.retry, "merge insert", options.cancel,
      [&](const table::Dataset::Ptr& snapshot, int attempt) -> Result<MergeResult> {
        GLAIVE_ASSIGN_OR_RETURN(MergeResult result,
                                MergeOnce(*snapshot, *rows, options, Commit::kYes));
        result.num_attempts = attempt;
        return result;
      });
}

Result<std::string> ExplainMerge(const table::Dataset& dataset,
                                 const arrow::Schema& source,
                                 const MergeOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const MergePlan plan, MakePlan(dataset, source, options));
  return "MergeInsert: " + Headline(plan, options) + "\n" + Steps(dataset, plan, source);
}

Result<std::string> AnalyzeMerge(table::Dataset::Ptr dataset,
                                 std::shared_ptr<arrow::RecordBatchReader> source,
                                 const MergeOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  GLAIVE_ASSIGN_OR_RETURN(const MergePlan plan,
                          MakePlan(*dataset, *source->schema(), options));
  GLAIVE_ASSIGN_OR_RETURN(const auto rows, ReadSource(*dataset, plan, *source, options));
  GLAIVE_ASSIGN_OR_RETURN(const MergeResult result,
                          MergeOnce(*dataset, *rows, options, Commit::kNo));
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
          .count();
  std::ostringstream out;
  out << "MergeInsert: elapsed=" << ms << "ms, " << Headline(plan, options)
      << ", metrics=[source_rows=" << result.source_rows
      << ", bytes_written=" << result.bytes_written
      << ", num_deleted_rows=" << result.num_deleted_rows
      << ", num_files_written=" << result.num_files_written
      << ", num_inserted_rows=" << result.num_inserted_rows
      << ", num_skipped_duplicates=" << result.num_skipped_duplicates
      << ", num_updated_rows=" << result.num_updated_rows
      << ", passes=" << result.num_passes << ", spilled_bytes=" << result.spilled_bytes
      << "]\n"
      << Steps(*dataset, plan, *source->schema());
  return out.str();
}

}  // namespace glaive::exec
