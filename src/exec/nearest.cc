#include "exec/nearest.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
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
#include "table/memory_rows.h"

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

// One snapshot of a search, with what was resolved against it.
struct Source {
  std::shared_ptr<const table::Dataset> dataset;
  std::shared_ptr<const SnapshotState> state;
  std::shared_ptr<const OutputPlan> output;
  std::shared_ptr<const BoundColumns> read;
  std::shared_ptr<const FilterPlan> prefilter;   // may be null
  std::shared_ptr<const FilterPlan> postfilter;  // may be null
};

class Search {
 public:
  Search(const std::vector<Source>& sources, const NearestOptions& options,
         VectorColumn column, QueryVectors queries)
      : sources_(sources),
        runtime_(*sources[0].dataset->env().runtime),
        options_(options),
        column_(std::move(column)),
        queries_(std::move(queries)),
        num_results_(column_.multi ? 1 : queries_.count()),
        bounds_(num_results_) {
    for (const Source& source : sources) num_rows_ += source.dataset->count_rows();
    // Saturating: k and offset may both be huge.
    int64_t top = 0;
    if (__builtin_add_overflow(options.k, options.offset, &top)) top = INT64_MAX;
    top_ = static_cast<size_t>(std::min(top, num_rows_));
  }

  // The k + offset best rows of each query, in order.
  Result<std::vector<std::vector<Hit>>> Run() {
    std::vector<std::vector<Hit>> results(num_results_);
    if (top_ == 0) return results;
    const int threads = std::max(1, runtime_.num_threads());
    std::vector<std::unique_ptr<Worker>> workers(static_cast<size_t>(threads));
    std::vector<MorselPlan> plans;
    std::vector<std::pair<size_t, MorselTask>> tasks;  // with the index of their source
    for (size_t s = 0; s < sources_.size(); ++s) {
      GLAIVE_ASSIGN_OR_RETURN(MorselPlan plan, Cut(sources_[s], threads));
      for (const MorselTask& task : plan.tasks) tasks.emplace_back(s, task);
      plans.push_back(std::move(plan));
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto for_hits, ReserveForHits(threads));
    GLAIVE_RETURN_NOT_OK(runtime_.ParallelForWorker(
        static_cast<int64_t>(tasks.size()),
        [&](int64_t t, int w) -> Status {
          auto& worker = workers[static_cast<size_t>(w)];
          if (worker == nullptr) {
            worker = std::make_unique<Worker>();
            worker->on_caller = w == 0;
            worker->best.assign(num_results_, TopK(top_));
          }
          const auto& [s, task] = tasks[static_cast<size_t>(t)];
          for (size_t m = task.begin; m < task.end; ++m) {
            GLAIVE_RETURN_NOT_OK(RunMorsel(s, plans[s].morsels[m], worker.get()));
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
  static Result<MorselPlan> Cut(const Source& source, int threads) {
    MorselOptions cut;
    if (source.prefilter != nullptr) {
      const int64_t share = source.dataset->count_rows() / threads + 1;
      cut.max_rows = cut.task_rows = std::clamp(share, kLeastFilterRows, kFilterRows);
      cut.max_bytes = cut.task_bytes = INT64_MAX;
      return CutMorsels(*source.dataset, *source.prefilter->read, cut);
    }
    cut.max_bytes = cut.task_bytes = kMorselBytes;
    return CutMorsels(*source.dataset, *source.read, cut);
  }

  // Each thread keeps its best rows, and the best of all are put together in the end.
  Result<MemoryReservation> ReserveForHits(int threads) const {
    const auto rows = static_cast<double>(num_rows_);
    const auto top = static_cast<double>(top_);
    const double hits =
        static_cast<double>(num_results_) * (std::min(rows, top * threads) + top);
    constexpr double kMost = 1e18;
    return Reserve(static_cast<int64_t>(std::min(hits * sizeof(Hit), kMost)));
  }

  Result<MemoryReservation> Reserve(int64_t bytes) const {
    return MemoryReservation::Make(runtime_.memory(), bytes, "vector search",
                                   sources_[0].dataset->env().store->root());
  }

  // One comparison of a block with all queries can take long, so that looking between
  // morsels is too seldom.
  Status LookForCancel(const Worker& worker) const {
    if (options_.cancel == nullptr) return Status::OK();
    return worker.on_caller ? options_.cancel->CheckOnCaller() : options_.cancel->Check();
  }

  Status RunMorsel(size_t s, const Morsel& morsel, Worker* worker) {
    const Source& source = sources_[s];
    const FilterPlan* prefilter = source.prefilter.get();
    GLAIVE_ASSIGN_OR_RETURN(const auto working_memory, Reserve(morsel.bytes));
    GLAIVE_ASSIGN_OR_RETURN(
        const auto fragment,
        FragmentRows::Open(*source.dataset, *source.state, morsel.fragment));
    GLAIVE_ASSIGN_OR_RETURN(const RowMask mask,
                            SelectRows(fragment, prefilter, morsel.start, morsel.count));
    if (mask.count == 0) return Status::OK();
    if (IsSelective(mask, morsel.count)) {
      const std::vector<int64_t> offsets = mask.Offsets(morsel.start);
      for (size_t i = 0; i < offsets.size(); i += kTakeRows) {
        const size_t n = std::min(kTakeRows, offsets.size() - i);
        const std::span<const int64_t> some(offsets.data() + i, n);
        GLAIVE_ASSIGN_OR_RETURN(auto batch, fragment.Take(*source.read, some));
        GLAIVE_RETURN_NOT_OK(CompareBatch(
            s, fragment, *batch, [some](size_t r) { return some[r]; },
            [](size_t) { return true; }, worker));
      }
      return Status::OK();
    }
    // In pieces, so that a column that must be decoded stays in cache.
    const int64_t row_bytes = std::max<int64_t>(1, column_.row_bytes());
    const int64_t piece = prefilter == nullptr
                              ? morsel.count
                              : std::max<int64_t>(64, kMorselBytes / row_bytes / 64 * 64);
    for (int64_t start = 0, count = 0; start < morsel.count; start += count) {
      const int64_t first = morsel.start + start;
      count = std::min(
          {piece, morsel.count - start, table::ContiguousRows(*fragment.reader, first)});
      GLAIVE_ASSIGN_OR_RETURN(auto batch, fragment.ReadRange(*source.read, first, count));
      const auto offset_of = [first](size_t r) {
        return first + static_cast<int64_t>(r);
      };
      if (mask.all()) {
        GLAIVE_RETURN_NOT_OK(CompareBatch(
            s, fragment, *batch, offset_of, [](size_t) { return true; }, worker));
      } else {
        const auto* words = mask.words.data();
        const auto skip = static_cast<size_t>(start);
        GLAIVE_RETURN_NOT_OK(CompareBatch(
            s, fragment, *batch, offset_of,
            [words, skip](size_t r) {
              return ((words[(skip + r) / 64] >> ((skip + r) % 64)) & 1) != 0;
            },
            worker));
      }
    }
    return Status::OK();
  }

  template <typename OffsetOf, typename Keep>
  Status CompareBatch(size_t s, const FragmentRows& fragment,
                      const arrow::RecordBatch& batch, const OffsetOf& offset_of,
                      const Keep& keep, Worker* worker) {
    GLAIVE_ASSIGN_OR_RETURN(const VectorBlock block, BlockOf(column_, batch));
    std::span<const uint64_t> row_ids;
    if (sources_[s].dataset->has_stable_row_ids()) {
      GLAIVE_ASSIGN_OR_RETURN(row_ids, fragment.RowIds());
    }
    const auto offer = [&](size_t q, size_t row, float distance) {
      if (options_.lower_bound && !(distance >= *options_.lower_bound)) return;
      if (options_.upper_bound && !(distance < *options_.upper_bound)) return;
      Hit hit;
      hit.distance = distance;
      hit.source = static_cast<int32_t>(s);
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

  const std::vector<Source>& sources_;
  Runtime& runtime_;
  const NearestOptions& options_;
  const VectorColumn column_;
  const QueryVectors queries_;
  const size_t num_results_;
  int64_t num_rows_ = 0;
  size_t top_ = 0;
  std::vector<SharedBound> bounds_;  // by query
};

// The hits of one source, and their places among all.
struct HitGroup {
  const Source* source = nullptr;
  std::vector<RowPlace> places;
  std::vector<float> distances;
  std::vector<int32_t> query_index;
  std::vector<size_t> slots;
};

std::vector<HitGroup> GroupBySource(const std::vector<Source>& sources,
                                    const std::vector<Hit>& hits,
                                    const std::vector<int32_t>& query_index) {
  std::vector<HitGroup> groups(sources.size());
  for (size_t i = 0; i < hits.size(); ++i) {
    HitGroup& group = groups[static_cast<size_t>(hits[i].source)];
    group.source = &sources[static_cast<size_t>(hits[i].source)];
    group.places.push_back({hits[i].fragment, hits[i].offset});
    group.distances.push_back(hits[i].distance);
    if (!query_index.empty()) group.query_index.push_back(query_index[i]);
    group.slots.push_back(i);
  }
  std::erase_if(groups, [](const HitGroup& group) { return group.source == nullptr; });
  return groups;
}

// The rows of a group, with their distances.
Result<TakenRows> TakeGroup(HitGroup* group, const BoundColumns& columns,
                            const MetaNeeds& needs) {
  GLAIVE_ASSIGN_OR_RETURN(
      TakenRows taken, TakeRows(*group->source->dataset, *group->source->state, columns,
                                needs, group->places));
  const auto rows = static_cast<int64_t>(group->places.size());
  taken.meta.distance = std::make_shared<arrow::FloatArray>(
      rows, arrow::Buffer::FromVector(std::move(group->distances)));
  if (!group->query_index.empty()) {
    taken.meta.query_index = std::make_shared<arrow::Int32Array>(
        rows, arrow::Buffer::FromVector(std::move(group->query_index)));
  }
  return taken;
}

// Keeps those of the nearest rows that pass.
Status Postfilter(const std::vector<Source>& sources, std::vector<Hit>* hits) {
  std::vector<bool> passes(hits->size());
  for (HitGroup& group : GroupBySource(sources, *hits, {})) {
    const FilterPlan& filter = *group.source->postfilter;
    GLAIVE_ASSIGN_OR_RETURN(const TakenRows taken,
                            TakeGroup(&group, *filter.read, filter.needs));
    const auto rows = static_cast<int64_t>(group.slots.size());
    GLAIVE_ASSIGN_OR_RETURN(auto input, filter.Input(taken.batch, rows, taken.meta));
    std::vector<uint8_t> keep(group.slots.size() / 8 + 1);
    GLAIVE_RETURN_NOT_OK(filter.predicate->Evaluate(*input, keep.data()).status());
    for (size_t i = 0; i < group.slots.size(); ++i) {
      passes[group.slots[i]] = ((keep[i / 8] >> (i % 8)) & 1) != 0;
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < hits->size(); ++i) {
    if (passes[i]) (*hits)[kept++] = (*hits)[i];
  }
  hits->resize(kept);
  return Status::OK();
}

// The output rows of the hits, in their order.
Result<std::shared_ptr<arrow::Table>> Output(const std::vector<Source>& sources,
                                             const std::vector<Hit>& hits,
                                             const std::vector<int32_t>& query_index) {
  const auto& schema = sources[0].output->schema;
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  std::vector<int64_t> order(hits.size());
  int64_t next = 0;
  for (HitGroup& group : GroupBySource(sources, hits, query_index)) {
    const OutputPlan& plan = *group.source->output;
    GLAIVE_ASSIGN_OR_RETURN(const TakenRows taken,
                            TakeGroup(&group, *plan.read, plan.needs));
    GLAIVE_ASSIGN_OR_RETURN(
        auto batch,
        plan.Assemble(taken.batch, static_cast<int64_t>(group.slots.size()), taken.meta));
    batches.push_back(std::move(batch));
    for (const size_t slot : group.slots) order[slot] = next++;
  }
  if (batches.size() > 1) {
    const arrow::Int64Array indices(next,
                                    arrow::Buffer::Wrap(order.data(), order.size()));
    arrow::ArrayVector columns;
    for (int c = 0; c < schema->num_fields(); ++c) {
      arrow::ArrayVector pieces;
      for (const auto& batch : batches) pieces.push_back(batch->column(c));
      GLAIVE_ASSIGN_OR_RETURN(auto joined, arrow::Concatenate(pieces));
      GLAIVE_ASSIGN_OR_RETURN(
          auto ordered,
          arrow::compute::Take(*joined, indices,
                               arrow::compute::TakeOptions::NoBoundsCheck()));
      columns.push_back(std::move(ordered));
    }
    batches = {arrow::RecordBatch::Make(schema, next, std::move(columns))};
  }
  return arrow::Table::FromRecordBatches(schema, batches);
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
  return NearestOf({std::move(dataset)}, std::move(options));
}

Result<std::shared_ptr<arrow::Table>> NearestOf(
    std::vector<std::shared_ptr<const table::Dataset>> datasets, NearestOptions options) {
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
  const file::Schema& schema = datasets[0]->schema();
  if (options.column.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(const int64_t dimension, QueryDimension(*options.queries));
    GLAIVE_ASSIGN_OR_RETURN(options.column, InferVectorColumn(schema, dimension));
  }
  GLAIVE_ASSIGN_OR_RETURN(VectorColumn column, FindVectorColumn(schema, options.column));
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
  std::vector<Source> sources;
  for (auto& dataset : datasets) {
    Source source;
    source.dataset = std::move(dataset);
    source.state = SnapshotState::Of(*source.dataset);
    GLAIVE_ASSIGN_OR_RETURN(
        source.output,
        source.state->Output(*source.dataset, options.select, search_columns));
    if (!options.filter.empty() && options.prefilter) {
      GLAIVE_ASSIGN_OR_RETURN(source.prefilter,
                              source.state->Filter(*source.dataset, options.filter));
    } else if (!options.filter.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(source.postfilter,
                              source.state->Filter(*source.dataset, options.filter,
                                                   SearchColumns::kOneQuery));
    }
    GLAIVE_ASSIGN_OR_RETURN(source.read,
                            source.state->Columns(*source.dataset, {column.name}));
    sources.push_back(std::move(source));
  }
  Search search(sources, options, std::move(column), std::move(queries));
  GLAIVE_ASSIGN_OR_RETURN(auto found, search.Run());

  std::vector<Hit> hits;
  std::vector<int32_t> query_index;
  for (size_t q = 0; q < found.size(); ++q) {
    if (!options.filter.empty() && !options.prefilter) {
      GLAIVE_RETURN_NOT_OK(Postfilter(sources, &found[q]));
    }
    const auto skip = static_cast<size_t>(options.offset);
    for (size_t i = skip;
         i < found[q].size() && i - skip < static_cast<size_t>(options.k); ++i) {
      hits.push_back(found[q][i]);
      query_index.push_back(static_cast<int32_t>(q));
    }
  }
  if (hits.empty()) return arrow::Table::MakeEmpty(sources[0].output->schema);
  return Output(sources, hits, query_index);
}

}  // namespace glaive::exec
