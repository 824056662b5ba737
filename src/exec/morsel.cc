#include "exec/morsel.h"

#include <algorithm>
#include <limits>

#include "format/table.pb.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"

namespace glaive::exec {
namespace {

// Fragments below this are one morsel, unless their rows are huge; nothing about their
// pages is asked.
constexpr int64_t kSmallFragmentRows = 256;
constexpr int64_t kSmallFragmentBytes = int64_t{4} << 20;
// Pages are put together up to this size; larger ones are worth a cut of their own.
constexpr int64_t kSmallPageBytes = int64_t{256} << 10;
// What each morsel costs beside its rows, in the measure of `task_rows`.
constexpr int64_t kMorselOverheadRows = 512;

class Cutter {
 public:
  Cutter(const table::Dataset& dataset, const BoundColumns& widest,
         const MorselOptions& options)
      : dataset_(dataset), widest_(widest), options_(options) {}

  Result<MorselPlan> Run() {
    int64_t skip = options_.skip_rows;
    int64_t left = options_.take_rows.value_or(INT64_MAX);
    const int count = options_.fragments ? static_cast<int>(options_.fragments->size())
                                         : dataset_.num_fragments();
    for (int i = 0; i < count && left > 0; ++i) {
      const int fragment =
          options_.fragments ? (*options_.fragments)[static_cast<size_t>(i)] : i;
      const int64_t live = dataset_.live_rows(fragment);
      if (live == 0) continue;
      if (skip >= live) {
        skip -= live;
        continue;
      }
      const int64_t physical = dataset_.physical_rows(fragment);
      int64_t begin = 0;
      int64_t end = physical;
      const int64_t taken = std::min(left, live - skip);
      if (skip > 0 || taken < live - skip) {
        GLAIVE_ASSIGN_OR_RETURN(auto deletions, dataset_.deletions(fragment));
        const auto place = [&](int64_t n) {
          return deletions == nullptr ? n : deletions->SelectLive(n, physical);
        };
        begin = place(skip);
        end = taken < live - skip ? place(skip + taken) : physical;
      }
      skip = 0;
      left -= taken;
      GLAIVE_RETURN_NOT_OK(CutFragment(fragment, begin, end));
    }
    CloseTask();
    return std::move(plan_);
  }

 private:
  Status CutFragment(int fragment, int64_t begin, int64_t end) {
    if (begin >= end) return Status::OK();
    if (widest_.empty() ||
        (end - begin <= std::min(kSmallFragmentRows, options_.max_rows) &&
         (end - begin == 1 ||
          SmallFiles(dataset_.fragment(fragment), kSmallFragmentBytes)))) {
      if (options_.exact) return CutExactly(fragment, begin, end, 1);
      for (int64_t start = begin; start < end; start += options_.max_rows) {
        Add({fragment, start, std::min(options_.max_rows, end - start)}, 1);
      }
      return Status::OK();
    }
    GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset_.OpenFragment(fragment));
    GLAIVE_ASSIGN_OR_RETURN(auto projection, widest_.Bind(dataset_, fragment, *reader));
    GLAIVE_ASSIGN_OR_RETURN(const std::vector<int64_t> pages,
                            reader->ScanBoundaries(*projection));
    const int64_t row_bytes = std::max<int64_t>(1, reader->EstimateRowBytes(*projection));
    const int64_t most =
        std::clamp<int64_t>(options_.max_bytes / row_bytes, 1, options_.max_rows);
    if (options_.exact && most == options_.max_rows) {
      return CutExactly(fragment, begin, end, row_bytes);
    }
    int64_t start = begin;
    for (size_t p = 0; p <= pages.size() && start < end; ++p) {
      const int64_t stop = p < pages.size() ? std::min(pages[p], end) : end;
      if (stop <= start) continue;
      const bool last = stop == end;
      // Where the next page would end: join it when both are small.
      if (!last && (stop - start) * row_bytes < kSmallPageBytes && p + 1 < pages.size() &&
          pages[p + 1] - start <= most) {
        continue;
      }
      // Equal pieces rather than a full one and a crumb.
      const int64_t pieces = (stop - start + most - 1) / most;
      const int64_t piece = (stop - start + pieces - 1) / pieces;
      for (; start < stop; start += piece) {
        Add({fragment, start, std::min(piece, stop - start)}, row_bytes);
      }
      start = stop;
    }
    return Status::OK();
  }

  Status CutExactly(int fragment, int64_t begin, int64_t end, int64_t row_bytes) {
    GLAIVE_ASSIGN_OR_RETURN(auto deletions, dataset_.deletions(fragment));
    const int64_t physical = dataset_.physical_rows(fragment);
    int64_t live =
        deletions == nullptr ? begin : begin - deletions->CountInRange(0, begin);
    for (int64_t start = begin; start < end;) {
      live += std::min(options_.max_rows, physical);
      const int64_t stop = std::min(
          end, deletions == nullptr ? live : deletions->SelectLive(live, physical));
      Add({fragment, start, stop - start}, row_bytes);
      start = stop;
    }
    return Status::OK();
  }

  void Add(Morsel morsel, int64_t row_bytes) {
    // Estimates come from files: they may be anything.
    if (__builtin_mul_overflow(morsel.count, row_bytes, &morsel.bytes)) {
      morsel.bytes = std::numeric_limits<int64_t>::max() / 4;
    }
    plan_.morsels.push_back(morsel);
    rows_ += morsel.count + kMorselOverheadRows;
    bytes_ = std::min(bytes_, options_.task_bytes) +
             std::min(morsel.bytes, options_.task_bytes);
    if (rows_ >= options_.task_rows || bytes_ >= options_.task_bytes) CloseTask();
  }

  void CloseTask() {
    const size_t begin = plan_.tasks.empty() ? 0 : plan_.tasks.back().end;
    if (plan_.morsels.size() > begin)
      plan_.tasks.push_back({begin, plan_.morsels.size()});
    rows_ = 0;
    bytes_ = 0;
  }

  const table::Dataset& dataset_;
  const BoundColumns& widest_;
  const MorselOptions& options_;
  MorselPlan plan_;
  int64_t rows_ = 0;  // of the open task
  int64_t bytes_ = 0;
};

}  // namespace

bool SmallFiles(const lance::table::DataFragment& fragment, int64_t most) {
  int64_t bytes = 0;
  for (const auto& file : fragment.files()) {
    const auto size = static_cast<int64_t>(file.file_size_bytes());
    if (size <= 0 || size > most) return false;
    bytes += size;
  }
  return bytes <= most;
}

Result<MorselPlan> CutMorsels(const table::Dataset& dataset, const BoundColumns& widest,
                              const MorselOptions& options) {
  return Cutter(dataset, widest, options).Run();
}

}  // namespace glaive::exec
