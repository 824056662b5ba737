// The fragments of one snapshot: a summary of each, parsed eagerly, and the message, on
// demand.
//
// A table of thousands of fragments is opened and appended to without building a message
// per fragment: the bytes of a manifest stay as they are, and the next manifest copies
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/fork.h"

namespace lance::table {
class DataFragment;
}

namespace glaive::table {

class DeletionVector;
class FragmentReader;

// Bytes that stay where they are as long as `owner` lives.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view view;

  static SharedBytes FromString(std::string text);
};

// What commits and counts need to know of a fragment. Small: tables may have very many.
struct FragmentSummary {
  uint32_t id = 0;
  uint32_t physical_rows = 0;  // 0 in manifests of old writers: unknown
  uint32_t deleted_rows = 0;   // as the manifest says; 0 may mean unknown
  // The serialized message within the bytes of the list.
  uint32_t offset = 0;
  uint32_t length = 0;
  bool has_files : 1 = false;
  bool has_deletion_file : 1 = false;
  bool has_inline_row_ids : 1 = false;
  bool has_spilled_row_ids : 1 = false;
  bool has_spilled_lineage : 1 = false;  // any of the three sequences is in a data file
};

// What the flags of a manifest need to know of all its fragments together.
struct FragmentTraits {
  bool any_deletion_file = false;
  bool any_spilled_lineage = false;
  bool all_have_row_ids = true;

  void Add(const FragmentSummary& summary) {
    any_deletion_file |= summary.has_deletion_file;
    any_spilled_lineage |= summary.has_spilled_lineage;
    all_have_row_ids &= summary.has_inline_row_ids || summary.has_spilled_row_ids;
  }
};

// Corruption when the bytes are not a fragment. `offset` is left alone.
Result<FragmentSummary> SummarizeFragment(std::string_view message);
// The same for loops over very many: false when the bytes are not a fragment.
bool ScanFragment(std::string_view message, FragmentSummary* summary);

// Number and size of the data files, as far as the message says.
struct FragmentFiles {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
Result<FragmentFiles> SummarizeFiles(std::string_view message);

// One fragment together with what was loaded for it; shared by all snapshots that hold
// the very same fragment. Thread-safe.
class FragmentState {
 public:
  explicit FragmentState(std::string serialized);
  ~FragmentState();

  std::string_view serialized() const { return serialized_; }
  // Corruption when the message does not parse; an empty message stands in for it below.
  Status status() const;
  const lance::table::DataFragment& message() const;
  // Identifies this object in caches for the life of the process.
  uint64_t serial() const { return serial_; }
  // Of a view: its reader belongs to the view, not to the runtime's cache.
  bool of_view() const { return of_view_; }
  // A fragment with rows hidden: `deletions` stand in for its deletion file (null: none).
  static std::shared_ptr<FragmentState> ForView(
      std::string serialized, std::shared_ptr<const DeletionVector> deletions);

  // Slots for values that the dataset loads on demand. The reader is held weakly: the
  // runtime's cache owns it, so that memory stays bounded.
  ForkSafeMutex mutex;
  std::shared_ptr<const DeletionVector> deletions;  // guarded by mutex
  bool deletions_loaded = false;                    // guarded by mutex
  std::weak_ptr<const FragmentReader> reader;       // guarded by mutex

 private:
  void Parse() const;
  const std::string serialized_;
  const uint64_t serial_;
  bool of_view_ = false;
  mutable std::once_flag once_;
  mutable std::unique_ptr<lance::table::DataFragment> message_;
  mutable bool parsed_ok_ = false;
};

// Immutable; thread-safe. Sorted by id, ids unique.
class FragmentList {
 public:
  // `summaries` refer to `bytes` by offset. Corruption when ids are not strictly
  // ascending.
  static Result<std::shared_ptr<const FragmentList>> Make(
      SharedBytes bytes, std::vector<FragmentSummary> summaries,
      const FragmentList* previous = nullptr);

  // `of` with other summaries and states; both parallel to its own.
  static std::shared_ptr<const FragmentList> MakeView(
      const FragmentList& of, std::vector<FragmentSummary> summaries,
      std::vector<std::shared_ptr<FragmentState>> states);

  int size() const { return static_cast<int>(summaries_.size()); }
  const FragmentSummary& summary(int index) const { return summaries_[index]; }
  std::span<const FragmentSummary> summaries() const { return summaries_; }
  std::string_view serialized(int index) const {
    const FragmentSummary& s = summaries_[index];
    return bytes_.view.substr(s.offset, s.length);
  }
  FragmentState& state(int index) const { return *shared_state(index); }
  const std::shared_ptr<FragmentState>& shared_state(int index) const;
  // Index of a fragment id, or -1.
  int Find(uint64_t id) const;

  int64_t total_physical_rows() const { return physical_rows_; }
  int64_t total_deleted_rows() const { return deleted_rows_; }
  const FragmentTraits& traits() const { return traits_; }
  size_t memory_bytes() const;

 private:
  FragmentList() = default;
  void BuildStates() const;

  SharedBytes bytes_;
  std::vector<FragmentSummary> summaries_;
  int64_t physical_rows_ = 0;
  int64_t deleted_rows_ = 0;
  FragmentTraits traits_;
  // Built on first use; states of `previous` snapshots are taken over where bytes are
  // equal.
  mutable std::once_flag states_once_;
  mutable std::vector<std::shared_ptr<FragmentState>> states_;
  mutable std::atomic<bool> states_built_{false};
  std::vector<std::shared_ptr<FragmentState>>
      inherited_;  // parallel to summaries_, or empty
};

}  // namespace glaive::table
