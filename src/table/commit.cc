#include "table/commit.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "table/backoff.h"
#include "table/bases.h"
#include "table/cleanup.h"
#include "table/conflict.h"
#include "table/feature_flags.h"
#include "table/manifest.h"
#include "table/row_deletions.h"
#include "table/transaction.h"
#include "table/unsynced_files.h"

namespace glaive::table {
namespace {

using lance::table::Transaction;
using Clock = std::chrono::steady_clock;
using TransactionPtr = std::shared_ptr<const Transaction>;

constexpr auto kMaxBackoffUnit = std::chrono::milliseconds(100);
constexpr int kMaxBackoffSlots = 64;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Waits a random number of slots out of a window that doubles; a slot is a bit more than
// what one attempt takes, so that two writers who pick different slots do not meet again.
void BackOff(int attempt, Clock::duration first_attempt) {
  const auto unit =
      std::min<Clock::duration>(first_attempt + first_attempt / 10, kMaxBackoffUnit);
  const int window = std::min(1 << std::min(attempt, 16), kMaxBackoffSlots);
  PauseAtRandom(unit, window);
}

class Committer {
 public:
  Committer(const TableEnv& env, SnapshotPtr read, Transaction transaction,
            const CommitOptions& options, CommitOutcome* outcome)
      : env_(env),
        store_(*env.store),
        state_(StateOf(env)),
        read_(std::move(read)),
        transaction_(std::move(transaction)),
        options_(options),
        outcome_(outcome) {}

  Result<SnapshotPtr> Run() {
    *outcome_ = CommitOutcome::kNotCommitted;
    if (transaction_.uuid().empty()) transaction_.set_uuid(NewUuid());
    std::lock_guard lock(state_->commit_mutex);
    auto committed = read_ == nullptr ? Create() : CommitNext();
    if (!committed.ok() && *outcome_ == CommitOutcome::kNotCommitted &&
        !written_transaction_.empty()) {
      Status ignored = store_.Delete(written_transaction_);
      static_cast<void>(ignored.ok());
    }
    return committed;
  }

 private:
  Result<SnapshotPtr> CommitNext() {
    checked_ = read_->version();
    const auto start = Clock::now();
    Clock::duration first_attempt{};
    for (int attempt = 0;; ++attempt) {
      GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr newest, NewestSnapshot(env_, *state_));
      if (newest == nullptr) return TableNotFound(store_);
      GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr mine, CatchUp(newest));
      if (mine) return mine;
      bool collided = false;
      GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr committed, Attempt(newest, &collided));
      if (!collided) return committed;
      if (attempt == 0) first_attempt = Clock::now() - start;
      if (attempt >= options_.max_retries) {
        return TooManyRetries("Too many concurrent writers. Attempted ",
                              options_.max_retries, " retries.");
      }
      BackOff(attempt, first_attempt);
    }
  }

  Result<SnapshotPtr> Create() {
    GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr existing, NewestSnapshot(env_, *state_));
    if (existing) return DatasetAlreadyExists(store_);
    bool collided = false;
    GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr created, Attempt(nullptr, &collided));
    if (collided) return DatasetAlreadyExists(store_);
    return created;
  }

  // Checks ours against every version that was committed since. Returns the snapshot when
  // one of them turns out to be ours (a put whose answer was lost), null otherwise.
  Result<SnapshotPtr> CatchUp(const SnapshotPtr& newest) {
    GLAIVE_RETURN_NOT_OK(CheckSameTable(*newest));
    const ConflictContext context{&read_->schema->schema,
                                  options_.deleted_rows != nullptr};
    bool merge = false;
    const bool behind = checked_ < newest->version();
    while (checked_ < newest->version()) {
      const uint64_t version = checked_ + 1;
      GLAIVE_ASSIGN_OR_RETURN(TransactionPtr theirs, TransactionOf(version));
      if (theirs == nullptr) {
        checked_ = version;
        continue;
      }
      if (theirs->uuid() == transaction_.uuid()) {
        *outcome_ = CommitOutcome::kCommitted;
        if (version == newest->version()) return newest;
        return LoadSnapshot(env_, {version, newest->ref.scheme}, newest.get());
      }
      switch (CheckConflict(transaction_, *theirs, context)) {
        case ConflictKind::kNone:
          break;
        case ConflictKind::kRebase:
          merge = true;
          break;
        case ConflictKind::kRetryable:
          return RetryableError(transaction_, *theirs, version);
        case ConflictKind::kIncompatible:
          return IncompatibleError(transaction_, *theirs, version);
      }
      last_theirs_ = std::move(theirs);
      checked_ = version;
    }
    merge_ |= merge;
    if (behind && options_.deleted_rows != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(
          const bool rebased,
          RebaseRowDeletions(env_, *options_.deleted_rows, *read_, *newest, merge_,
                             &transaction_, options_.deletion_files, options_.unsynced));
      if (!rebased) return RetryableError(transaction_, *last_theirs_, newest->version());
    }
    return SnapshotPtr();
  }

  // The version that ours was made on must still be what it was: a table that was dropped
  // and made anew under the same name has nothing to do with ours.
  Status CheckSameTable(const Snapshot& newest) {
    bool same = newest.version() >= read_->version();
    if (newest.version() == read_->version()) {
      same = newest.header->transaction_file() == read_->header->transaction_file() &&
             newest.identity == read_->identity;
    } else if (same && checked_ == read_->version()) {
      auto identity = IdentifyManifest(store_, read_->path);
      if (KindOf(identity.status()) == ErrorKind::kNotFound) return VersionGone(checked_);
      GLAIVE_RETURN_NOT_OK(identity.status());
      same = *identity == read_->identity;
    }
    if (same) return Status::OK();
    return Conflict("table ", store_.root(), " was dropped and made anew since version ",
                    read_->version(), " was opened: open it again");
  }

  // Cleaned up, or a gap in the numbers: what it did cannot be known.
  Status VersionGone(uint64_t version) {
    return RetryableConflict("version ", version, " of table ", store_.root(),
                             " is gone, so this ", OperationName(transaction_),
                             " transaction cannot be checked against it. Please retry.");
  }

  // Null for a version whose manifest is torn: nobody has ever read it.
  Result<TransactionPtr> TransactionOf(uint64_t version) {
    {
      std::lock_guard lock(state_->mutex);
      for (const auto& [known, transaction] : state_->recent) {
        if (known == version) return transaction;
      }
    }
    auto manifest = LoadManifest(store_, {version, read_->ref.scheme});
    if (!manifest.ok()) {
      if (KindOf(manifest.status()) == ErrorKind::kNotFound) return VersionGone(version);
      GLAIVE_ASSIGN_OR_RETURN(const bool torn,
                              ManifestIsTorn(store_, {version, read_->ref.scheme}));
      if (torn) return TransactionPtr();
      return manifest.status();
    }
    return ReadTransaction(store_, *manifest);
  }

  // Builds and puts the manifest after `newest`. Sets `collided` when somebody was
  // faster.
  Result<SnapshotPtr> Attempt(const SnapshotPtr& newest, bool* collided) {
    SnapshotPtr restored;
    if (newest) {
      GLAIVE_RETURN_NOT_OK(CheckWriterFlags(*newest->header));
      if (transaction_.has_restore()) {
        GLAIVE_ASSIGN_OR_RETURN(restored, LoadRestored(*newest));
      }
    }
    GLAIVE_ASSIGN_OR_RETURN(
        NextManifest next,
        BuildNextManifest(newest.get(), transaction_, options_.manifest, restored.get()));
    const std::string transaction_bytes = transaction_.SerializeAsString();
    ManifestParts parts;
    parts.header = next.header.get();
    parts.fragments = std::move(next.serialized);
    if (next.index_section) parts.index_section = *next.index_section;
    parts.transaction = transaction_bytes;
    GLAIVE_ASSIGN_OR_RETURN(std::string bytes, SerializeManifest(parts, next.summaries));

    auto snapshot = std::make_shared<Snapshot>();
    snapshot->ref = {next.header->version(),
                     newest ? newest->ref.scheme : options_.scheme};
    snapshot->path = ManifestPath(snapshot->ref.version, snapshot->ref.scheme);
    snapshot->file_version = next.file_version;
    snapshot->index_section = std::move(next.index_section);
    if (next.schema_changed || !newest) {
      GLAIVE_ASSIGN_OR_RETURN(snapshot->schema, MakeTableSchema(*next.header));
    } else {
      snapshot->schema = newest->schema;
    }
    const SharedBytes shared_bytes = SharedBytes::FromString(std::move(bytes));
    GLAIVE_ASSIGN_OR_RETURN(
        snapshot->fragments,
        FragmentList::Make(shared_bytes, std::move(next.summaries),
                           newest ? newest->fragments.get() : nullptr));
    GLAIVE_ASSIGN_OR_RETURN(snapshot->bases, Bases::Make(env_, *next.header));
    snapshot->header = std::move(next.header);

    // The manifest's bytes reach the disk together with the files that it names. Its name
    // comes last.
    const std::span<const uint8_t> manifest = AsBytes(shared_bytes.view);
    GLAIVE_ASSIGN_OR_RETURN(
        const auto prepared,
        store_.PreparePutIfAbsent(snapshot->path, io::ByteParts(&manifest, 1)));
    GLAIVE_RETURN_NOT_OK(
        FinishUnsynced(env_, transaction_,
                       {[&] { return prepared->Sync(); },
                        [&] { return WriteTransactionFile(transaction_bytes); }}));
    Status put = prepared->Publish();
    if (!put.ok()) {
      if (KindOf(put) == ErrorKind::kAlreadyExists) {
        *collided = true;
        return SnapshotPtr();
      }
      return AfterFailedPut(*snapshot, put);
    }
    *outcome_ = CommitOutcome::kCommitted;
    WriteVersionHint(store_, snapshot->version());
    return Acknowledge(std::move(snapshot));
  }

  Result<SnapshotPtr> LoadRestored(const Snapshot& newest) {
    const uint64_t version = transaction_.restore().version();
    if (version == read_->version()) return read_;
    GLAIVE_ASSIGN_OR_RETURN(auto found, FindVersion(store_, version));
    if (!found) {
      return NotFound("table ", store_.root(), " has no version ", version,
                      " to restore");
    }
    return LoadSnapshot(env_, *found, &newest);
  }

  // The manifest holds the transaction as well, so this file need not be durable: it
  // serves readers that know no inline transactions.
  Status WriteTransactionFile(const std::string& bytes) {
    const std::string path = TransactionPath(
        TransactionFileName(transaction_.read_version(), transaction_.uuid()));
    if (path == written_transaction_) return Status::OK();
    GLAIVE_RETURN_NOT_OK(store_.Put(path, AsBytes(bytes), /*durable=*/false));
    if (!written_transaction_.empty()) {
      Status ignored = store_.Delete(written_transaction_);
      static_cast<void>(ignored.ok());
    }
    written_transaction_ = path;
    return Status::OK();
  }

  // The put failed, which does not tell whether the manifest is there.
  Result<SnapshotPtr> AfterFailedPut(const Snapshot& snapshot, const Status& put) {
    auto exists = store_.Exists(snapshot.path);
    if (exists.ok() && !*exists) return put;
    *outcome_ = CommitOutcome::kUnknown;
    if (exists.ok()) {
      auto manifest = LoadManifest(store_, snapshot.ref);
      if (manifest.ok()) {
        auto theirs = ReadTransaction(store_, *manifest);
        if (theirs.ok() && (*theirs)->uuid() != transaction_.uuid()) {
          *outcome_ = CommitOutcome::kNotCommitted;
        }
      }
    }
    if (*outcome_ == CommitOutcome::kNotCommitted) return put;
    return WithContext(put, "version " + std::to_string(snapshot.version()) +
                                " of table " + store_.root() +
                                " may have been committed, look before you try again");
  }

  Result<SnapshotPtr> Acknowledge(std::shared_ptr<Snapshot> snapshot) {
    // The commit stands, so no error may hide it: without an identity the snapshot only
    // is not remembered.
    auto identity = IdentifyManifest(store_, snapshot->path);
    if (identity.ok()) {
      snapshot->identity = *identity;
      Publish(env_, *state_, snapshot,
              std::make_shared<const Transaction>(std::move(transaction_)));
    }
    return SnapshotPtr(std::move(snapshot));
  }

  const TableEnv& env_;
  io::ObjectStore& store_;
  const std::shared_ptr<TableState> state_;
  const SnapshotPtr read_;
  Transaction transaction_;
  const CommitOptions& options_;
  CommitOutcome* const outcome_;
  uint64_t checked_ = 0;
  bool merge_ = false;
  TransactionPtr last_theirs_;
  std::string written_transaction_;
};

}  // namespace

Result<SnapshotPtr> CommitTransaction(const TableEnv& env, SnapshotPtr read,
                                      Transaction transaction,
                                      const CommitOptions& options,
                                      CommitOutcome* outcome) {
  auto committed =
      Committer(env, std::move(read), std::move(transaction), options, outcome).Run();
  if (committed.ok()) CleanUpAfterCommit(env, *(*committed)->header);
  return committed;
}

Status DatasetAlreadyExists(const io::ObjectStore& store) {
  return AlreadyExists("Dataset already exists: ", store.root());
}

}  // namespace glaive::table
