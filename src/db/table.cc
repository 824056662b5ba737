#include "db/table.h"

#include <algorithm>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "db/coerce.h"
#include "db/environment.h"
#include "db/lsm.h"
#include "db/maintenance.h"
#include "exec/scan.h"
#include "io/object_store.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"

namespace glaive::db {
namespace {

Status PinnedError(const std::string& name) {
  return InvalidInput(
      "Invalid input, table cannot be modified when a specific version is checked out "
      "(table '",
      name, "': call checkout_latest first)");
}

Status ClosedError(const std::string& name) {
  return Closed("Table ", name, " is closed");
}

std::string RefText(const VersionRef& ref) {
  if (const auto* number = std::get_if<int64_t>(&ref)) return std::to_string(*number);
  return std::get<std::string>(ref);
}

}  // namespace

Result<table::Dataset::Ptr> CheckoutRef(const table::Dataset& dataset,
                                        const VersionRef& ref) {
  if (const auto* tag = std::get_if<std::string>(&ref)) return dataset.CheckoutTag(*tag);
  const int64_t version = std::get<int64_t>(ref);
  if (version <= 0) {
    return InvalidInput("Invalid input, version numbers begin at 1, ", version,
                        " is none");
  }
  return dataset.Checkout(version);
}

Table::Table(std::string name, std::string uri, table::Dataset::Ptr dataset,
             ReadConsistency consistency, bool pinned)
    : name_(std::move(name)),
      uri_(std::move(uri)),
      consistency_(consistency),
      dataset_(std::move(dataset)),
      pinned_(pinned),
      last_check_(std::chrono::steady_clock::now()) {
  NoteWarnings(*dataset_);
}

Result<table::Dataset::Ptr> Table::Snapshot() {
  table::Dataset::Ptr current;
  {
    std::lock_guard lock(mutex_);
    if (!dataset_) return ClosedError(name_);
    if (pinned_ || !consistency_) return dataset_;
    const auto now = std::chrono::steady_clock::now();
    if (consistency_->count() > 0 && now - last_check_ < *consistency_) return dataset_;
    last_check_ = now;
    current = dataset_;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto latest, current->Latest());
  NoteWarnings(*latest);
  Advance(latest);
  return latest;
}

Result<table::Dataset::Ptr> Table::LatestForWrite() {
  table::Dataset::Ptr current;
  {
    std::lock_guard lock(mutex_);
    if (!dataset_) return ClosedError(name_);
    if (pinned_) return PinnedError(name_);
    current = dataset_;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto latest, current->Latest());
  NoteWarnings(*latest);
  return latest;
}

void Table::NoteWarnings(const table::Dataset& dataset) {
  for (std::string& warning : dataset.warnings()) {
    std::lock_guard lock(mutex_);
    if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) {
      warnings_.push_back(std::move(warning));
    }
  }
}

std::vector<std::string> Table::TakeWarnings() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> news(warnings_.begin() + static_cast<ptrdiff_t>(told_),
                                warnings_.end());
  told_ = warnings_.size();
  return news;
}

void Table::Advance(const table::Dataset::Ptr& dataset) {
  table::Dataset::Ptr old;  // released outside the lock
  std::lock_guard lock(mutex_);
  if (!dataset_ || pinned_ || dataset->version() <= dataset_->version()) return;
  old = std::exchange(dataset_, dataset);
}

void Table::Wrote(const table::Dataset::Ptr& dataset) {
  Advance(dataset);
  if (maintenance_) NoteWrite(dataset, *maintenance_);
}

bool Table::is_open() const {
  std::lock_guard lock(mutex_);
  return dataset_ != nullptr;
}

bool Table::is_pinned() const {
  std::lock_guard lock(mutex_);
  return pinned_;
}

void Table::Close() {
  table::Dataset::Ptr old;
  std::lock_guard lock(mutex_);
  old = std::move(dataset_);
  dataset_.reset();
}

Result<int64_t> Table::Add(std::shared_ptr<arrow::RecordBatchReader> data,
                           const AddOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  table::WriteOptions write;
  write.progress = options.progress;
  write.cancel = options.cancel;
  table::Dataset::Ptr written;
  if (options.overwrite) {
    write.mode = table::WriteMode::kOverwrite;
    GLAIVE_RETURN_NOT_OK(ApplyNewTableOptions(options.storage_options, &write));
    GLAIVE_ASSIGN_OR_RETURN(written, table::Dataset::Write(latest->env(), *data, write));
    // The new version has no LSM write path: what its writers hold is of the old table.
    memwal::WriterRegistry::Instance().AbortAll(latest->env().store->root());
  } else {
    GLAIVE_ASSIGN_OR_RETURN(const auto lsm, memwal::ReadDetails(*latest));
    if (lsm != nullptr) {
      LsmWriteOptions lsm_options = LsmOptions(options.cancel);
      lsm_options.count = false;
      GLAIVE_ASSIGN_OR_RETURN(const auto outcome,
                              LsmUpsert(latest, std::move(data), lsm_options));
      if (options.progress) options.progress(outcome.num_rows);
      Advance(latest);
      return latest->version();
    }
    write.mode = table::WriteMode::kAppend;
    GLAIVE_ASSIGN_OR_RETURN(
        auto rows,
        CoerceToSchema(std::move(data), latest->arrow_schema(), /*reject_nan=*/true));
    GLAIVE_ASSIGN_OR_RETURN(written, table::Dataset::Write(latest->env(), *rows, write));
  }
  Wrote(written);
  return written->version();
}

Result<DeleteOutcome> Table::Delete(const std::string& predicate, CancelToken* cancel) {
  if (predicate.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidInput(
        "Invalid input, the predicate of a delete must not be empty; "
        "\"true\" deletes all rows");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(const auto lsm, memwal::ReadDetails(*latest));
  if (lsm != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(const auto outcome,
                            LsmDelete(latest, predicate, LsmOptions(cancel)));
    Advance(latest);
    return DeleteOutcome{outcome.num_deleted_rows, latest->version()};
  }
  GLAIVE_ASSIGN_OR_RETURN(auto result, exec::Delete(latest, predicate, cancel));
  Wrote(result.dataset);
  return DeleteOutcome{result.num_deleted_rows, result.dataset->version()};
}

Status Table::Checkout(const VersionRef& ref) {
  table::Dataset::Ptr current;
  {
    std::lock_guard lock(mutex_);
    if (!dataset_) return ClosedError(name_);
    current = dataset_;
  }
  auto found = CheckoutRef(*current, ref);
  if (!found.ok()) {
    if (KindOf(found.status()) != ErrorKind::kNotFound) return found.status();
    return NotFound("Version ", RefText(ref),
                    " no longer exists. Was it cleaned up? (table '", name_, "')");
  }
  table::Dataset::Ptr old;
  std::lock_guard lock(mutex_);
  if (!dataset_) return ClosedError(name_);
  old = std::exchange(dataset_, std::move(*found));
  pinned_ = true;
  return Status::OK();
}

Status Table::CheckoutLatest() {
  table::Dataset::Ptr current;
  {
    std::lock_guard lock(mutex_);
    if (!dataset_) return ClosedError(name_);
    current = dataset_;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto latest, current->Latest());
  NoteWarnings(*latest);
  table::Dataset::Ptr old;
  std::lock_guard lock(mutex_);
  if (!dataset_) return ClosedError(name_);
  pinned_ = false;
  last_check_ = std::chrono::steady_clock::now();
  // Another thread may have moved on to a newer version in the meantime.
  if (dataset_->version() < latest->version() || dataset_ == current) {
    old = std::exchange(dataset_, std::move(latest));
  }
  return Status::OK();
}

Result<int64_t> Table::Restore(const std::optional<VersionRef>& ref) {
  table::Dataset::Ptr source;
  {
    std::lock_guard lock(mutex_);
    if (!dataset_) return ClosedError(name_);
    if (!ref && !pinned_) {
      return InvalidInput(
          "Invalid input, you must run checkout before running restore (table '", name_,
          "')");
    }
    source = dataset_;
  }
  if (ref) {
    auto found = CheckoutRef(*source, *ref);
    if (!found.ok() && KindOf(found.status()) == ErrorKind::kNotFound) {
      return NotFound("Version ", RefText(*ref),
                      " no longer exists. Was it cleaned up? (table '", name_, "')");
    }
    GLAIVE_ASSIGN_OR_RETURN(source, std::move(found));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto restored, source->Restore());
  const int64_t version = restored->version();
  table::Dataset::Ptr old;
  std::lock_guard lock(mutex_);
  if (!dataset_) return ClosedError(name_);
  if (pinned_ || dataset_->version() < version)
    old = std::exchange(dataset_, std::move(restored));
  pinned_ = false;
  return version;
}

}  // namespace glaive::db
