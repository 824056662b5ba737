#include "exec/nearest.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "exec/fragment_rows.h"
#include "exec/morsel.h"
#include "exec/plan.h"
#include "exec/query_vectors.h"
#include "exec/take.h"
#include "exec/top_k.h"
#include "exec/vector_column.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/memory_reservation.h"

namespace glaive::exec {
namespace {

constexpr int64_t kMorselBytes = int64_t{1} << 20;  // of vectors
constexpr int64_t kFilterRows = 65536;
constexpr int64_t kLeastFilterRows = 8192;
constexpr size_t kTakeRows = 4096;  // vectors copied at once for a sparse filter
// Vectors compared at once: their distances stay in the first-level cache, and with
// several queries they themselves in the second.
constexpr size_t kBlockRows = 1024;
constexpr size_t kBlockBytes = size_t{128} << 10;
constexpr size_t kQueryTile = 32;

// What one thread needs while it searches.
struct Worker {
  std::vector<TopK> best;  // by query
  std::vector<float> distances;
  std::vector<float> sums;
  bool on_caller = false;
};

class Search {
 public:
  Search(const table::Dataset& dataset, const SnapshotState& state,
         const NearestOptions& options, VectorColumn column, QueryVectors queries,
         std::shared_ptr<const BoundColumns> read,
         std::shared_ptr<const FilterPlan> prefilter)
      : dataset_(dataset),
        state_(state),
        options_(options),
        column_(std::move(column)),
        queries_(std::move(queries)),
        read_(std::move(read)),
        prefilter_(std::move(prefilter)),
        num_results_(column_.multi ? 1 : queries_.count()),
        bounds_(num_results_) {
    // Saturating: k and offset may both be huge.
    int64_t top = 0;
    if (__builtin_add_overflow(options.k, options.offset, &top)) top = INT64_MAX;
    top_ = static_cast<size_t>(std::min(top, dataset.count_rows()));
  }

  // The k + offset best rows of each query, in order.
  Result<std::vector<std::vector<Hit>>> Run() {
    std::vector<std::vector<Hit>> results(num_results_);
    if (top_ == 0) return results;
    Runtime& runtime = *dataset_.env().runtime;
    const int threads = std::max(1, runtime.num_threads());
    std::vector<std::unique_ptr<Worker>> workers(static_cast<size_t>(threads));
    GLAIVE_ASSIGN_OR_RETURN(const MorselPlan plan, Cut(threads));
    GLAIVE_ASSIGN_OR_RETURN(const auto for_hits, ReserveForHits(threads));
    GLAIVE_RETURN_NOT_OK(runtime.ParallelForWorker(
        static_cast<int64_t>(plan.tasks.size()),
        [&](int64_t t, int w) -> Status {
          auto& worker = workers[static_cast<size_t>(w)];
          if (worker == nullptr) {
            worker = std::make_unique<Worker>();
            worker->on_caller = w == 0;
            worker->best.assign(num_results_, TopK(top_));
          }
          const MorselTask& task = plan.tasks[static_cast<size_t>(t)];
          for (size_t m = task.begin; m < task.end; ++m) {
            GLAIVE_RETURN_NOT_OK(RunMorsel(plan.morsels[m], worker.get()));
          }
          return Status::OK();
        },
        options_.cancel));
    for (size_t q = 0; q < num_results_; ++q) {
      std::vector<Hit>& hits = results[q];
      for (const auto& worker : workers) {
        if (worker == nullptr) continue;
        const auto& found = worker->best[q].hits();
        hits.insert(hits.end(), found.begin(), found.end());
      }
      std::sort(hits.begin(), hits.end());
      if (hits.size() > top_) hits.resize(top_);
    }
    return results;
  }

 private:
  Result<MorselPlan> Cut(int threads) const {
    MorselOptions cut;
    if (prefilter_ != nullptr) {
      const int64_t share = dataset_.count_rows() / threads + 1;
      cut.max_rows = cut.task_rows = std::clamp(share, kLeastFilterRows, kFilterRows);
      cut.max_bytes = cut.task_bytes = INT64_MAX;
      return CutMorsels(dataset_, *prefilter_->read, cut);
    }
    cut.max_bytes = cut.task_bytes = kMorselBytes;
    return CutMorsels(dataset_, *read_, cut);
  }

  // Each thread keeps its best rows, and the best of all are put together in the end.
  Result<MemoryReservation> ReserveForHits(int threads) const {
    const auto rows = static_cast<double>(dataset_.count_rows());
    const auto top = static_cast<double>(top_);
    const double hits =
        static_cast<double>(num_results_) * (std::min(rows, top * threads) + top);
    constexpr double kMost = 1e18;
    return Reserve(static_cast<int64_t>(std::min(hits * sizeof(Hit), kMost)));
  }

  Result<MemoryReservation> Reserve(int64_t bytes) const {
    return MemoryReservation::Make(dataset_.env().runtime->memory(), bytes,
                                   "vector search", dataset_.env().store->root());
  }

  // One comparison of a block with all queries can take long, so that looking between
  // morsels is too seldom.
  Status LookForCancel(const Worker& worker) const {
    if (options_.cancel == nullptr) return Status::OK();
    return worker.on_caller ? options_.cancel->CheckOnCaller() : options_.cancel->Check();
  }

  Status RunMorsel(const Morsel& morsel, Worker* worker) {
    GLAIVE_ASSIGN_OR_RETURN(const auto working_memory, Reserve(morsel.bytes));
    GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                            FragmentRows::Open(dataset_, state_, morsel.fragment));
    GLAIVE_ASSIGN_OR_RETURN(const RowMask mask, SelectRows(fragment, prefilter_.get(),
                                                           morsel.start, morsel.count));
    if (mask.count == 0) return Status::OK();
    if (IsSelective(mask, morsel.count)) {
      const std::vector<int64_t> offsets = mask.Offsets(morsel.start);
      for (size_t i = 0; i < offsets.size(); i += kTakeRows) {
        const size_t n = std::min(kTakeRows, offsets.size() - i);
        const std::span<const int64_t> some(offsets.data() + i, n);
        GLAIVE_ASSIGN_OR_RETURN(auto batch, fragment.Take(*read_, some));
        GLAIVE_RETURN_NOT_OK(CompareBatch(
            fragment, *batch, [some](size_t r) { return some[r]; },
            [](size_t) { return true; }, worker));
      }
      return Status::OK();
    }
    // In pieces, so that a column that must be decoded stays in cache.
    const int64_t row_bytes = std::max<int64_t>(1, column_.row_bytes());
    const int64_t piece = prefilter_ == nullptr
                              ? morsel.count
                              : std::max<int64_t>(64, kMorselBytes / row_bytes / 64 * 64);
    for (int64_t start = 0; start < morsel.count; start += piece) {
      const int64_t count = std::min(piece, morsel.count - start);
      const int64_t first = morsel.start + start;
      GLAIVE_ASSIGN_OR_RETURN(auto batch, fragment.ReadRange(*read_, first, count));
      const auto offset_of = [first](size_t r) {
        return first + static_cast<int64_t>(r);
      };
      if (mask.all()) {
        GLAIVE_RETURN_NOT_OK(CompareBatch(
            fragment, *batch, offset_of, [](size_t) { return true; }, worker));
      } else {
        const auto* words = mask.words.data();
        const auto skip = static_cast<size_t>(start);
        GLAIVE_RETURN_NOT_OK(CompareBatch(
            fragment, *batch, offset_of,
            [words, skip](size_t r) {
              return ((words[(skip + r) / 64] >> ((skip + r) % 64)) & 1) != 0;
            },
            worker));
      }
    }
    return Status::OK();
  }

  template <typename OffsetOf, typename Keep>
  Status CompareBatch(const FragmentRows& fragment, const arrow::RecordBatch& batch,
                      const OffsetOf& offset_of, const Keep& keep, Worker* worker) {
    GLAIVE_ASSIGN_OR_RETURN(const VectorBlock block, BlockOf(column_, batch));
    std::span<const uint64_t> row_ids;
    if (dataset_.has_stable_row_ids()) {
      GLAIVE_ASSIGN_OR_RETURN(row_ids, fragment.RowIds());
    }
    const auto offer = [&](size_t q, size_t row, float distance) {
      if (options_.lower_bound && !(distance >= *options_.lower_bound)) return;
      if (options_.upper_bound && !(distance < *options_.upper_bound)) return;
      Hit hit;
      hit.distance = distance;
      hit.fragment = fragment.index;
      hit.offset = offset_of(row);
      hit.row_id = row_ids.empty() ? (static_cast<uint64_t>(fragment.id) << 32) |
                                         static_cast<uint64_t>(hit.offset)
                                   : row_ids[static_cast<size_t>(hit.offset)];
      worker->best[q].Push(hit, &bounds_[q]);
    };
    if (column_.multi) {
      return CompareLists(block, keep, worker, offer);
    }
    return CompareVectors(block, keep, worker, offer);
  }

  // A NaN fails every comparison, so it never is offered.
  template <typename Keep, typename Offer>
  Status CompareVectors(const VectorBlock& block, const Keep& keep, Worker* worker,
                        const Offer& offer) {
    const auto rows = static_cast<size_t>(block.num_vectors);
    const size_t num_queries = queries_.count();
    const auto row_bytes = static_cast<size_t>(column_.row_bytes());
    const size_t step = num_queries == 1
                            ? kBlockRows
                            : std::clamp<size_t>(kBlockBytes / row_bytes, 8, kBlockRows);
    worker->distances.resize(step * std::min(num_queries, kQueryTile));
    for (size_t begin = 0; begin < rows; begin += step) {
      const size_t n = std::min(step, rows - begin);
      const uint8_t* vectors = block.data + begin * row_bytes;
      for (size_t first = 0; first < num_queries; first += kQueryTile) {
        GLAIVE_RETURN_NOT_OK(LookForCancel(*worker));
        const size_t tile = std::min(kQueryTile, num_queries - first);
        queries_.ManyToMany(first, tile, vectors, n, worker->distances.data(), step);
        for (size_t q = 0; q < tile; ++q) {
          const float* distances = worker->distances.data() + q * step;
          float bound = bounds_[first + q].value();
          for (size_t i = 0; i < n; ++i) {
            if (!(distances[i] <= bound)) continue;
            const size_t row = begin + i;
            if (!IsValid(block, row) || !keep(row)) continue;
            offer(first + q, row, distances[i]);
            bound = bounds_[first + q].value();
          }
        }
      }
    }
    return Status::OK();
  }

  // Sum over the query vectors of the smallest distance to a vector of the row.
  template <typename Keep, typename Offer>
  Status CompareLists(const VectorBlock& block, const Keep& keep, Worker* worker,
                      const Offer& offer) {
    const auto vectors = static_cast<size_t>(block.num_vectors);
    const size_t num_queries = queries_.count();
    const auto row_bytes = static_cast<size_t>(column_.row_bytes());
    const size_t rows = block.offsets.size() / 2;
    // One query vector at a time: memory does not grow with their number.
    worker->distances.resize(vectors);
    worker->sums.assign(rows, 0.0F);
    for (size_t q = 0; q < num_queries; ++q) {
      GLAIVE_RETURN_NOT_OK(LookForCancel(*worker));
      for (size_t begin = 0; begin < vectors; begin += kBlockRows) {
        const size_t n = std::min(kBlockRows, vectors - begin);
        queries_.OneToMany(q, block.data + begin * row_bytes, n,
                           worker->distances.data() + begin);
      }
      for (size_t row = 0; row < rows; ++row) {
        float least = std::numeric_limits<float>::quiet_NaN();
        for (int64_t v = block.offsets[row * 2]; v < block.offsets[row * 2 + 1]; ++v) {
          const auto i = static_cast<size_t>(v);
          const float distance = worker->distances[i];
          if (std::isnan(distance) || !IsValid(block, i)) continue;
          if (!(least <= distance)) least = distance;
        }
        worker->sums[row] += least;
      }
    }
    for (size_t row = 0; row < rows; ++row) {
      const float distance = worker->sums[row];
      if (distance <= bounds_[0].value() && keep(row)) offer(size_t{0}, row, distance);
    }
    return Status::OK();
  }

  static bool IsValid(const VectorBlock& block, size_t i) {
    if (!block.broken.empty() && block.broken[i]) return false;
    if (block.valid == nullptr) return true;
    const auto bit = static_cast<size_t>(block.valid_offset) + i;
    return ((block.valid[bit / 8] >> (bit % 8)) & 1) != 0;
  }

  const table::Dataset& dataset_;
  const SnapshotState& state_;
  const NearestOptions& options_;
  const VectorColumn column_;
  const QueryVectors queries_;
  const std::shared_ptr<const BoundColumns> read_;
  const std::shared_ptr<const FilterPlan> prefilter_;
  const size_t num_results_;
  size_t top_ = 0;
  std::vector<SharedBound> bounds_;  // by query
};

std::shared_ptr<arrow::Array> DistancesOf(const std::vector<Hit>& hits) {
  std::vector<float> values;
  values.reserve(hits.size());
  for (const Hit& hit : hits) values.push_back(hit.distance);
  return std::make_shared<arrow::FloatArray>(
      static_cast<int64_t>(hits.size()), arrow::Buffer::FromVector(std::move(values)));
}

std::vector<RowPlace> PlacesOf(const std::vector<Hit>& hits) {
  std::vector<RowPlace> places;
  places.reserve(hits.size());
  for (const Hit& hit : hits) places.push_back({hit.fragment, hit.offset});
  return places;
}

// Keeps those of the nearest rows that pass.
Status Postfilter(const table::Dataset& dataset, const SnapshotState& state,
                  const FilterPlan& filter, std::vector<Hit>* hits) {
  if (hits->empty()) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(TakenRows taken, TakeRows(dataset, state, *filter.read,
                                                    filter.needs, PlacesOf(*hits)));
  taken.meta.distance = DistancesOf(*hits);
  const auto rows = static_cast<int64_t>(hits->size());
  GLAIVE_ASSIGN_OR_RETURN(auto input, filter.Input(taken.batch, rows, taken.meta));
  std::vector<uint8_t> keep(hits->size() / 8 + 1);
  GLAIVE_RETURN_NOT_OK(filter.predicate->Evaluate(*input, keep.data()).status());
  size_t kept = 0;
  for (size_t i = 0; i < hits->size(); ++i) {
    if ((keep[i / 8] >> (i % 8)) & 1) (*hits)[kept++] = (*hits)[i];
  }
  hits->resize(kept);
  return Status::OK();
}

}  // namespace

Result<Metric> ParseMetric(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  if (lower == "l2" || lower == "euclidean") return Metric::kL2;
  if (lower == "cosine") return Metric::kCosine;
  if (lower == "dot") return Metric::kDot;
  if (lower == "hamming") return Metric::kHamming;
  return InvalidInput("Invalid distance type '", name,
                      "'.  Must be one of l2, cosine, dot, or hamming");
}

Result<std::shared_ptr<arrow::Table>> Nearest(
    std::shared_ptr<const table::Dataset> dataset, NearestOptions options) {
  if (options.k <= 0) {
    return InvalidInput(
        "Limit is required for ANN/KNN queries: k must be positive, it is ", options.k);
  }
  if (options.offset < 0)
    return InvalidInput("offset must not be negative, it is ", options.offset);
  if (options.queries == nullptr) return InvalidInput("the search has no query vector");
  if (options.cancel != nullptr) GLAIVE_RETURN_NOT_OK(options.cancel->CheckOnCaller());
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  const auto state = SnapshotState::Of(*dataset);
  if (options.column.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(const int64_t dimension, QueryDimension(*options.queries));
    GLAIVE_ASSIGN_OR_RETURN(options.column,
                            InferVectorColumn(dataset->schema(), dimension));
  }
  GLAIVE_ASSIGN_OR_RETURN(VectorColumn column,
                          FindVectorColumn(dataset->schema(), options.column));
  if (options.multivector && !column.multi) {
    return InvalidInput(
        "column '", column.name,
        "' holds one vector per row, "
        "so a query of several vectors cannot be compared with it as a whole");
  }
  GLAIVE_ASSIGN_OR_RETURN(QueryVectors queries,
                          QueryVectors::Make(column, *options.queries, options.metric));
  const bool many = !column.multi && queries.count() > 1;
  const auto search_columns =
      many ? SearchColumns::kManyQueries : SearchColumns::kOneQuery;
  GLAIVE_ASSIGN_OR_RETURN(auto output,
                          state->Output(*dataset, options.select, search_columns));
  std::shared_ptr<const FilterPlan> prefilter;
  std::shared_ptr<const FilterPlan> postfilter;
  if (!options.filter.empty() && options.prefilter) {
    GLAIVE_ASSIGN_OR_RETURN(prefilter, state->Filter(*dataset, options.filter));
  } else if (!options.filter.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(
        postfilter, state->Filter(*dataset, options.filter, SearchColumns::kOneQuery));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto read, state->Columns(*dataset, {column.name}));
  Search search(*dataset, *state, options, std::move(column), std::move(queries),
                std::move(read), std::move(prefilter));
  GLAIVE_ASSIGN_OR_RETURN(auto found, search.Run());

  std::vector<Hit> hits;
  std::vector<int32_t> query_index;
  for (size_t q = 0; q < found.size(); ++q) {
    if (postfilter != nullptr) {
      GLAIVE_RETURN_NOT_OK(Postfilter(*dataset, *state, *postfilter, &found[q]));
    }
    const auto skip = static_cast<size_t>(options.offset);
    for (size_t i = skip;
         i < found[q].size() && i - skip < static_cast<size_t>(options.k); ++i) {
      hits.push_back(found[q][i]);
      query_index.push_back(static_cast<int32_t>(q));
    }
  }
  if (hits.empty()) return arrow::Table::MakeEmpty(output->schema);
  GLAIVE_ASSIGN_OR_RETURN(TakenRows taken, TakeRows(*dataset, *state, *output->read,
                                                    output->needs, PlacesOf(hits)));
  const auto rows = static_cast<int64_t>(hits.size());
  taken.meta.distance = DistancesOf(hits);
  taken.meta.query_index = std::make_shared<arrow::Int32Array>(
      rows, arrow::Buffer::FromVector(std::move(query_index)));
  GLAIVE_ASSIGN_OR_RETURN(auto batch, output->Assemble(taken.batch, rows, taken.meta));
  return arrow::Table::FromRecordBatches(output->schema, {std::move(batch)});
}

}  // namespace glaive::exec
