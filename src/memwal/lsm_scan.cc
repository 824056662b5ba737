// Scans and counts over all sources of a snapshot, and searches.
#include <algorithm>
#include <sstream>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include "exec/plan.h"
#include "exec/select_columns.h"
#include "memwal/fresh_schema.h"
#include "memwal/key_predicate.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_sources.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;
using SchemaPtr = std::shared_ptr<arrow::Schema>;

Result<SchemaPtr> WithGeneration(const SchemaPtr& schema) {
  if (schema->GetFieldIndex(kMemtableGen) >= 0) {
    return InvalidInput("Duplicate column name: ", kMemtableGen);
  }
  return schema->AddField(schema->num_fields(),
                          arrow::field(kMemtableGen, arrow::uint64(), false));
}

Result<BatchPtr> AddGeneration(const SchemaPtr& schema, const BatchPtr& batch,
                               uint64_t generation) {
  GLAIVE_ASSIGN_OR_RETURN(
      auto column,
      arrow::MakeArrayFromScalar(arrow::UInt64Scalar(generation), batch->num_rows()));
  arrow::ArrayVector columns = batch->columns();
  columns.push_back(std::move(column));
  return arrow::RecordBatch::Make(schema, batch->num_rows(), std::move(columns));
}

// Named fragments are those of the base: fresh rows are in none.
Result<std::vector<LsmSource>> SourcesOf(const LsmSnapshot& snapshot,
                                         const exec::ScanOptions& scan) {
  GLAIVE_ASSIGN_OR_RETURN(auto sources, LsmSources::All(snapshot));
  if (!scan.fragment_ids.empty()) sources = {sources.back()};
  return sources;
}

// What must be said before the first batch is asked for.
Result<SchemaPtr> Check(const LsmSnapshot& snapshot, const LsmScanOptions& options) {
  const exec::ScanOptions& scan = options.scan;
  if (scan.limit && *scan.limit < 0) {
    return InvalidInput("limit must not be negative, it is ", *scan.limit);
  }
  if (scan.offset < 0) {
    return InvalidInput("offset must not be negative, it is ", scan.offset);
  }
  if (!scan.filter.empty()) {
    const table::Dataset& base = *snapshot.base();
    GLAIVE_RETURN_NOT_OK(
        exec::SnapshotState::Of(base)->Filter(base, scan.filter).status());
  }
  return LsmOutputSchema(snapshot, options);
}

bool NamesMeta(const exec::Selection& select) {
  if (select.with_row_id || select.with_row_address) return true;
  if (!select.columns) return false;
  return std::any_of(select.columns->begin(), select.columns->end(), [](const auto& c) {
    return c.second.find("_row") != std::string::npos;
  });
}

// The rows of a filter that names their keys, by looking these up; null when it is of
// another form or when more is asked for than a look-up tells.
Result<std::shared_ptr<arrow::Table>> ByKey(const LsmSnapshot::Ptr& snapshot,
                                            const LsmScanOptions& options) {
  const exec::ScanOptions& scan = options.scan;
  const KeyColumns& keys = LsmSources::Of(*snapshot).keys;
  if (scan.filter.empty() || options.with_memtable_gen || !scan.fragment_ids.empty() ||
      scan.limit.value_or(0) < 0 || scan.offset < 0 || keys.names.size() != 1 ||
      NamesMeta(scan.select)) {
    return nullptr;
  }
  auto asked = KeysAskedFor(scan.filter, keys.names[0], keys.types[0]);
  if (asked == nullptr) return nullptr;
  const int64_t rows = asked->length();
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field(keys.names[0], keys.types[0])}), rows,
      {std::move(asked)});
  GLAIVE_ASSIGN_OR_RETURN(auto found, LsmLookup(snapshot, *batch, scan.select));
  if (scan.offset == 0 && scan.limit.value_or(found->num_rows()) >= found->num_rows()) {
    return found;
  }
  return found->Slice(std::min(scan.offset, found->num_rows()),
                      scan.limit.value_or(found->num_rows()));
}

// The rows [offset, offset + limit) of all sources one after the other. Each source gives
// no more than what is still wanted.
class Window {
 public:
  explicit Window(const exec::ScanOptions& scan)
      : skip_(scan.offset), left_(scan.limit.value_or(INT64_MAX)) {}

  bool done() const { return left_ <= 0; }
  bool limited() const { return left_ != INT64_MAX; }

  // False when the source lies before the window.
  bool Enter(const table::Dataset& source, exec::ScanOptions* scan) {
    scan->offset = 0;
    scan->limit.reset();
    counted_ = scan->filter.empty() && scan->fragment_ids.empty();
    if (counted_) {
      const int64_t rows = source.count_rows();
      if (skip_ >= rows) {
        skip_ -= rows;
        return false;
      }
      scan->offset = skip_;
      skip_ = 0;
      if (limited()) scan->limit = left_;
    } else if (limited()) {
      scan->limit = left_ > INT64_MAX - skip_ ? INT64_MAX : skip_ + left_;
    }
    return true;
  }

  // The part of `batch` that is wanted; null: nothing of it.
  BatchPtr Cut(BatchPtr batch) {
    const int64_t rows = batch->num_rows();
    const int64_t skipped = std::min(skip_, rows);
    skip_ -= skipped;
    const int64_t taken = std::min(left_, rows - skipped);
    if (taken <= 0) return nullptr;
    if (limited()) left_ -= taken;
    return taken == rows ? batch : batch->Slice(skipped, taken);
  }

 private:
  int64_t skip_;
  int64_t left_;
  bool counted_ = false;
};

class LsmReader : public arrow::RecordBatchReader {
 public:
  LsmReader(LsmSnapshot::Ptr snapshot, LsmScanOptions options, SchemaPtr schema)
      : snapshot_(std::move(snapshot)),
        options_(std::move(options)),
        schema_(std::move(schema)),
        window_(options_.scan) {}

  SchemaPtr schema() const override { return schema_; }

  Status ReadNext(BatchPtr* batch) override {
    batch->reset();
    if (closed_) return Closed("the reader of this scan is closed");
    if (!opened_) {
      GLAIVE_ASSIGN_OR_RETURN(sources_, SourcesOf(*snapshot_, options_.scan));
      opened_ = true;
    }
    while (true) {
      if (current_ != nullptr) {
        BatchPtr next;
        if (!window_.done()) GLAIVE_RETURN_NOT_OK(current_->ReadNext(&next));
        if (next == nullptr) {
          current_.reset();
          continue;
        }
        next = window_.Cut(std::move(next));
        if (next == nullptr) continue;
        if (options_.with_memtable_gen) {
          GLAIVE_ASSIGN_OR_RETURN(
              next, AddGeneration(schema_, next, sources_[next_ - 1].generation));
        }
        *batch = std::move(next);
        return Status::OK();
      }
      if (next_ == sources_.size() || window_.done()) return Status::OK();
      exec::ScanOptions scan = options_.scan;
      const auto& source = sources_[next_++].dataset;
      if (!window_.Enter(*source, &scan)) continue;
      GLAIVE_ASSIGN_OR_RETURN(current_, exec::Scan(source, std::move(scan)));
    }
  }

  Status Close() override {
    closed_ = true;
    current_.reset();
    return Status::OK();
  }

 private:
  const LsmSnapshot::Ptr snapshot_;
  const LsmScanOptions options_;
  const SchemaPtr schema_;
  Window window_;
  bool opened_ = false;
  bool closed_ = false;
  std::vector<LsmSource> sources_;
  size_t next_ = 0;
  std::shared_ptr<arrow::RecordBatchReader> current_;
};

}  // namespace

Result<SchemaPtr> LsmOutputSchema(const LsmSnapshot& snapshot,
                                  const LsmScanOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto schema,
                          exec::OutputSchema(*snapshot.base(), options.scan.select));
  if (!options.with_memtable_gen) return schema;
  return WithGeneration(schema);
}

Result<std::shared_ptr<arrow::RecordBatchReader>> LsmScan(LsmSnapshot::Ptr snapshot,
                                                          LsmScanOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(auto found, ByKey(snapshot, options));
  if (found != nullptr) {
    return std::make_shared<arrow::TableBatchReader>(std::move(found));
  }
  if (snapshot->only_base() && !options.with_memtable_gen) {
    return exec::Scan(snapshot->base(), std::move(options.scan));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto schema, Check(*snapshot, options));
  return std::make_shared<LsmReader>(std::move(snapshot), std::move(options),
                                     std::move(schema));
}

Result<std::shared_ptr<arrow::Table>> LsmScanToTable(LsmSnapshot::Ptr snapshot,
                                                     LsmScanOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(auto found, ByKey(snapshot, options));
  if (found != nullptr) return found;
  if (snapshot->only_base() && !options.with_memtable_gen) {
    return exec::ScanToTable(snapshot->base(), std::move(options.scan));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto schema, Check(*snapshot, options));
  GLAIVE_ASSIGN_OR_RETURN(const auto sources, SourcesOf(*snapshot, options.scan));
  Window window(options.scan);
  std::vector<BatchPtr> batches;
  for (const LsmSource& source : sources) {
    if (window.done()) break;
    exec::ScanOptions scan = options.scan;
    if (!window.Enter(*source.dataset, &scan)) continue;
    GLAIVE_ASSIGN_OR_RETURN(auto rows,
                            exec::ScanToTable(source.dataset, std::move(scan)));
    arrow::TableBatchReader reader(*rows);
    while (true) {
      BatchPtr batch;
      GLAIVE_RETURN_NOT_OK(reader.ReadNext(&batch));
      if (batch == nullptr) break;
      batch = window.Cut(std::move(batch));
      if (batch == nullptr) continue;
      if (options.with_memtable_gen) {
        GLAIVE_ASSIGN_OR_RETURN(batch, AddGeneration(schema, batch, source.generation));
      }
      batches.push_back(std::move(batch));
    }
  }
  return arrow::Table::FromRecordBatches(schema, batches);
}

Result<int64_t> LsmCountRows(LsmSnapshot::Ptr snapshot, const std::string& filter,
                             CancelToken* cancel) {
  LsmScanOptions by_key;
  by_key.scan.filter = filter;
  GLAIVE_ASSIGN_OR_RETURN(by_key.scan.select,
                          exec::SelectColumns(snapshot->base()->schema(),
                                              LsmSources::Of(*snapshot).keys.names));
  GLAIVE_ASSIGN_OR_RETURN(const auto found, ByKey(snapshot, by_key));
  if (found != nullptr) return found->num_rows();
  GLAIVE_ASSIGN_OR_RETURN(const auto sources, LsmSources::All(*snapshot));
  int64_t rows = 0;
  for (const LsmSource& source : sources) {
    GLAIVE_ASSIGN_OR_RETURN(const int64_t count,
                            exec::CountRows(*source.dataset, filter, cancel));
    rows += count;
  }
  return rows;
}

Result<std::shared_ptr<arrow::Table>> LsmNearest(LsmSnapshot::Ptr snapshot,
                                                 exec::NearestOptions options) {
  if (snapshot->only_base()) return exec::Nearest(snapshot->base(), std::move(options));
  GLAIVE_ASSIGN_OR_RETURN(const auto sources, LsmSources::All(*snapshot));
  // The base comes first where distances are equal, then older before fresher rows.
  std::vector<std::shared_ptr<const table::Dataset>> datasets;
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    datasets.push_back(source->dataset);
  }
  return exec::NearestOf(std::move(datasets), std::move(options));
}

std::string ExplainLsmScan(const LsmSnapshot& snapshot, const LsmScanOptions& options) {
  const auto sources = SourcesOf(snapshot, options.scan);
  if (!sources.ok()) return "Error: " + sources.status().message();
  std::ostringstream out;
  int depth = 0;
  const auto indent = [&] { return std::string(static_cast<size_t>(depth) * 2, ' '); };
  if (options.scan.limit || options.scan.offset > 0) {
    out << "GlobalLimitExec: skip=" << options.scan.offset << ", fetch="
        << (options.scan.limit ? std::to_string(*options.scan.limit) : "None") << "\n";
    ++depth;
  }
  out << indent() << "LsmUnionExec: sources=" << sources->size()
      << ", newest_first=true\n";
  ++depth;
  exec::ScanOptions scan = options.scan;
  scan.limit.reset();
  scan.offset = 0;
  for (const LsmSource& source : *sources) {
    out << indent();
    if (source.generation == 0) {
      out << "Base: version=" << source.dataset->version();
    } else {
      out << (source.in_memory ? "Memtable" : "Generation")
          << ": shard=" << source.shard.ToString()
          << ", generation=" << source.generation;
    }
    int64_t physical = 0;
    for (int f = 0; f < source.dataset->num_fragments(); ++f) {
      physical += source.dataset->physical_rows(f);
    }
    out << ", live_rows=" << source.dataset->count_rows()
        << ", hidden_rows=" << physical - source.dataset->count_rows() << "\n";
    std::istringstream lines(exec::ExplainScan(*source.dataset, scan));
    for (std::string line; std::getline(lines, line);) {
      out << indent() << "  " << line << "\n";
    }
  }
  return out.str();
}

}  // namespace glaive::memwal
