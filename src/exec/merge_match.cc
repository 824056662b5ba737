#include "exec/merge_match.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <arrow/record_batch.h>

#include "exec/key_zones.h"
#include "exec/selected_rows.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"

namespace glaive::exec {
namespace {

void SetBit(std::vector<uint64_t>* bits, int64_t row) {
  (*bits)[static_cast<size_t>(row >> 6)] |= uint64_t{1} << (row & 63);
}

std::vector<uint64_t> Bits(int64_t rows) {
  return std::vector<uint64_t>(static_cast<size_t>((rows + 63) / 64));
}

class Matcher {
 public:
  Matcher(const table::Dataset& dataset, const MergeSource& source, const KeyCodec& codec,
          const MergeOptions& options)
      : dataset_(dataset),
        source_(source),
        codec_(codec),
        options_(options),
        state_(SnapshotState::Of(dataset)),
        zones_(dataset, codec) {}

  Result<Matches> Run(const std::vector<std::string>& key_columns) {
    std::vector<std::string> paths;
    for (const std::string& name : key_columns) {
      const std::string path[] = {name};
      paths.push_back(file::FormatFieldPath(path));
    }
    GLAIVE_ASSIGN_OR_RETURN(keys_, state_->Columns(dataset_, paths));
    MorselOptions cut;
    cut.max_rows = 65536;
    GLAIVE_ASSIGN_OR_RETURN(plan_, CutMorsels(dataset_, *keys_, cut));
    result_.source_matched = Bits(source_.num_rows());
    if (options_.duplicates == SourceDuplicates::kFirstSeen) {
      result_.source_repeated = Bits(source_.num_rows());
    }
    if (options_.delete_not_in_source) target_matched_.resize(plan_.morsels.size());
    for (int pass = 0; pass < source_.num_passes(); ++pass) {
      if (options_.cancel != nullptr) {
        GLAIVE_RETURN_NOT_OK(options_.cancel->CheckOnCaller());
      }
      GLAIVE_RETURN_NOT_OK(RunPass(pass));
    }
    SortPairs();
    if (options_.delete_not_in_source) GLAIVE_RETURN_NOT_OK(FindNotInSource());
    return std::move(result_);
  }

 private:
  Status RunPass(int pass) {
    GLAIVE_ASSIGN_OR_RETURN(const auto table, source_.LoadPass(pass));
    table->Build(options_.duplicates == SourceDuplicates::kFirstSeen);
    for (uint32_t entry : table->repeated()) {
      SetBit(&result_.source_repeated, table->row(entry));
      ++result_.num_repeated;
    }
    if (table->size() == 0) return Status::OK();
    std::vector<std::vector<Match>> found(plan_.tasks.size());
    std::atomic<int64_t> failed_row{-1};
    Status status = dataset_.env().runtime->ParallelFor(
        static_cast<int64_t>(plan_.tasks.size()),
        [&](int64_t t) -> Status {
          const auto task = static_cast<size_t>(t);
          return ForEachSelection(
              dataset_, *state_, /*filter=*/nullptr, plan_, plan_.tasks[task],
              [&](size_t m, const FragmentRows& fragment, const RowMask& live) {
                return ProbeMorsel(m, fragment, live, table.get(), &found[task],
                                   &failed_row);
              });
        },
        options_.cancel);
    if (failed_row >= 0) return MatchError(failed_row);
    GLAIVE_RETURN_NOT_OK(status);
    for (const auto& part : found) {
      result_.pairs.insert(result_.pairs.end(), part.begin(), part.end());
    }
    const std::vector<uint8_t>& matched = table->matched();
    for (uint32_t head = 0; head < matched.size(); ++head) {
      if (matched[head] == 0) continue;
      for (uint32_t e = head; e != KeyTable::kNone; e = table->next(e)) {
        SetBit(&result_.source_matched, table->row(e));
      }
    }
    return Status::OK();
  }

  // `failed_row`: set to the source row that must not match, or not twice.
  Status ProbeMorsel(size_t m, const FragmentRows& fragment, const RowMask& live,
                     KeyTable* table, std::vector<Match>* found,
                     std::atomic<int64_t>* failed_row) {
    const Morsel& morsel = plan_.morsels[m];
    const KeyZone zone = zones_.Of(morsel);
    if (!zone.MayHold(*table)) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(auto batch,
                            fragment.ReadRange(*keys_, morsel.start, morsel.count));
    GLAIVE_ASSIGN_OR_RETURN(const KeyBatch keys, codec_.Decode(batch->columns()));
    if (!zone.known) zones_.Remember(morsel, keys);
    const bool pairs = options_.matched == MatchedAction::kUpdate ||
                       options_.matched == MatchedAction::kDelete;
    std::vector<uint64_t>* target =
        options_.delete_not_in_source ? &target_matched_[m] : nullptr;
    const auto hit = [&](int64_t i, uint32_t head) -> Status {
      table->MarkMatched(head);
      if (target != nullptr) {
        if (target->empty()) *target = Bits(morsel.count);
        SetBit(target, i);
      }
      if (options_.matched == MatchedAction::kFail) {
        *failed_row = table->row(head);
        return InvalidInput("a row matched");
      }
      if (!pairs) return Status::OK();
      if (table->next(head) != KeyTable::kNone && options_.update_condition.empty()) {
        *failed_row = table->row(head);
        return InvalidInput("two source rows match");
      }
      for (uint32_t e = head; e != KeyTable::kNone; e = table->next(e)) {
        found->push_back(
            {table->row(e), morsel.fragment, static_cast<uint32_t>(morsel.start + i)});
      }
      return Status::OK();
    };
    return table->Probe(keys, live.all() ? nullptr : live.words.data(), hit);
  }

  Status MatchError(int64_t row) const {
    if (options_.matched != MatchedAction::kFail) return AmbiguousError(source_, row);
    GLAIVE_ASSIGN_OR_RETURN(const std::string key, source_.DescribeKey(row));
    return InvalidInput(
        "Merge insert failed: found matching row in the table for the source's key (",
        key, "), which this merge does not allow");
  }

  void SortPairs() {
    const auto before = [](const Match& a, const Match& b) {
      if (a.source != b.source) return a.source < b.source;
      if (a.fragment != b.fragment) return a.fragment < b.fragment;
      return a.offset < b.offset;
    };
    auto& pairs = result_.pairs;
    if (std::is_sorted(pairs.begin(), pairs.end(), before)) return;
    // Long lists are brought near their place first, one bucket per source row.
    constexpr size_t kManyPairs = 65536;
    if (pairs.size() > kManyPairs &&
        static_cast<size_t>(source_.num_rows()) <= pairs.size() * 4) {
      std::vector<size_t> at(static_cast<size_t>(source_.num_rows()) + 1);
      for (const Match& pair : pairs) ++at[static_cast<size_t>(pair.source) + 1];
      for (size_t i = 1; i < at.size(); ++i) at[i] += at[i - 1];
      std::vector<Match> sorted(pairs.size());
      for (const Match& pair : pairs)
        sorted[at[static_cast<size_t>(pair.source)]++] = pair;
      pairs = std::move(sorted);
      if (std::is_sorted(pairs.begin(), pairs.end(), before)) return;
    }
    std::sort(pairs.begin(), pairs.end(), before);
  }

  Status FindNotInSource() {
    SnapshotState::FilterPtr filter;
    if (!options_.delete_condition.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(filter,
                              state_->Filter(dataset_, options_.delete_condition));
    }
    std::vector<FoundRows> rows(plan_.morsels.size());
    GLAIVE_RETURN_NOT_OK(dataset_.env().runtime->ParallelFor(
        static_cast<int64_t>(plan_.tasks.size()),
        [&](int64_t t) -> Status {
          return ForEachSelection(
              dataset_, *state_, filter.get(), plan_, plan_.tasks[static_cast<size_t>(t)],
              [&](size_t m, const FragmentRows&, const RowMask& mask) -> Status {
                const Morsel& morsel = plan_.morsels[m];
                rows[m] = {morsel.fragment, morsel.start, morsel.count, {}};
                for (int64_t i = 0; i < morsel.count; ++i) {
                  if (!mask.all() &&
                      ((mask.words[static_cast<size_t>(i >> 6)] >> (i & 63)) & 1) == 0) {
                    continue;
                  }
                  if (Matches::Get(target_matched_[m], i)) continue;
                  rows[m].offsets.push_back(static_cast<uint32_t>(morsel.start + i));
                }
                return Status::OK();
              });
        },
        options_.cancel));
    std::erase_if(rows, [](const FoundRows& range) { return range.offsets.empty(); });
    result_.not_in_source = std::move(rows);
    return Status::OK();
  }

  const table::Dataset& dataset_;
  const MergeSource& source_;
  const KeyCodec& codec_;
  const MergeOptions& options_;
  const std::shared_ptr<const SnapshotState> state_;
  const KeyZones zones_;
  std::shared_ptr<const BoundColumns> keys_;
  MorselPlan plan_;
  Matches result_;
  std::vector<std::vector<uint64_t>> target_matched_;  // by morsel; empty: none
};

}  // namespace

Result<Matches> FindMatches(const table::Dataset& dataset, const MergeSource& source,
                            const std::vector<std::string>& key_columns,
                            const KeyCodec& codec, const MergeOptions& options) {
  return Matcher(dataset, source, codec, options).Run(key_columns);
}

Status AmbiguousError(const MergeSource& source, int64_t row) {
  GLAIVE_ASSIGN_OR_RETURN(const std::string key, source.DescribeKey(row));
  return InvalidInput(
      "Invalid input, Ambiguous merge insert: several source rows match one row of the "
      "table on (",
      key, "); give each key once, or keep the first of each");
}

}  // namespace glaive::exec
