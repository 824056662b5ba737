// A left join that adds columns.
#include <mutex>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/compute/function.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>

#include "exec/add_columns.h"
#include "exec/plan.h"
#include "exec/scan.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/schema_change.h"

namespace glaive::exec {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// What is joined in, and where its keys are. Thread-safe.
class Joined {
 public:
  static Result<Joined> Read(Runtime& runtime, arrow::RecordBatchReader& data,
                             const std::string& key, CancelToken* cancel) {
    Joined joined(runtime);
    arrow::RecordBatchVector batches;
    while (true) {
      if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
      BatchPtr batch;
      GLAIVE_RETURN_NOT_OK(data.ReadNext(&batch));
      if (batch == nullptr) break;
      if (batch->num_rows() == 0) continue;
      GLAIVE_ASSIGN_OR_RETURN(const int64_t bytes,
                              arrow::util::ReferencedBufferSize(*batch));
      auto reserved = runtime.memory().Reserve(bytes);
      if (!reserved.ok()) return WithContext(reserved, "the data to merge");
      joined.reserved_.bytes += bytes;
      batches.push_back(std::move(batch));
    }
    GLAIVE_ASSIGN_OR_RETURN(auto table,
                            arrow::Table::FromRecordBatches(data.schema(), batches));
    batches.clear();
    GLAIVE_ASSIGN_OR_RETURN(auto whole, table->CombineChunksToBatch());
    const int index = whole->schema()->GetFieldIndex(key);
    joined.num_rows_ = whole->num_rows();
    // The last of several equal keys counts, and look-ups find the first.
    GLAIVE_ASSIGN_OR_RETURN(joined.keys_, Reversed(whole->column(index)));
    GLAIVE_ASSIGN_OR_RETURN(joined.values_, whole->RemoveColumn(index));
    return joined;
  }

  const ArrayPtr& keys() const { return keys_; }
  const BatchPtr& values() const { return values_; }
  int64_t num_rows() const { return num_rows_; }

  // The rows that belong to `keys`, null where there is none.
  Result<ArrayPtr> Find(const ArrayPtr& keys) const {
    GLAIVE_ASSIGN_OR_RETURN(auto lookup, Acquire());
    auto found = lookup->executor->Execute({arrow::Datum(keys)});
    Release(std::move(lookup));
    if (!found.ok()) return InvalidInput("Cannot join: ", found.status().message());
    const auto places = found->make_array();
    const auto last =
        arrow::Datum(arrow::MakeScalar(static_cast<int32_t>(num_rows_ - 1)));
    GLAIVE_ASSIGN_OR_RETURN(auto turned, arrow::compute::Subtract(last, places));
    return turned.make_array();
  }

 private:
  struct Reserved {
    Runtime* runtime;
    int64_t bytes = 0;
    explicit Reserved(Runtime& r) : runtime(&r) {}
    Reserved(Reserved&& other) noexcept
        : runtime(other.runtime), bytes(std::exchange(other.bytes, 0)) {}
    Reserved& operator=(Reserved&&) = delete;
    ~Reserved() {
      if (bytes > 0) runtime->memory().Release(bytes);
    }
  };
  // The executor refers to the options.
  struct Lookup {
    arrow::compute::SetLookupOptions options;
    std::shared_ptr<arrow::compute::FunctionExecutor> executor;
  };
  using LookupPtr = std::unique_ptr<Lookup>;
  struct Idle {
    std::mutex mutex;
    std::vector<LookupPtr> lookups;
  };

  explicit Joined(Runtime& runtime)
      : reserved_(runtime), idle_(std::make_unique<Idle>()) {}

  static Result<ArrayPtr> Reversed(const ArrayPtr& array) {
    arrow::Int64Builder places;
    GLAIVE_RETURN_NOT_OK(places.Reserve(array->length()));
    for (int64_t i = array->length(); i-- > 0;) places.UnsafeAppend(i);
    GLAIVE_ASSIGN_OR_RETURN(auto indices, places.Finish());
    return arrow::compute::Take(*array, *indices);
  }

  // The table of keys is built once per thread, not once per batch.
  Result<LookupPtr> Acquire() const {
    {
      std::lock_guard lock(idle_->mutex);
      if (!idle_->lookups.empty()) {
        auto lookup = std::move(idle_->lookups.back());
        idle_->lookups.pop_back();
        return lookup;
      }
    }
    auto lookup = std::make_unique<Lookup>();
    lookup->options = arrow::compute::SetLookupOptions(
        arrow::Datum(keys_), arrow::compute::SetLookupOptions::MATCH);
    const std::vector<arrow::TypeHolder> types = {keys_->type()};
    GLAIVE_ASSIGN_OR_RETURN(lookup->executor, arrow::compute::GetFunctionExecutor(
                                                  "index_in", types, &lookup->options));
    return lookup;
  }
  void Release(LookupPtr lookup) const {
    std::lock_guard lock(idle_->mutex);
    idle_->lookups.push_back(std::move(lookup));
  }

  Reserved reserved_;
  ArrayPtr keys_;
  BatchPtr values_;
  int64_t num_rows_ = 0;
  std::unique_ptr<Idle> idle_;
};

Status CheckColumns(const table::Dataset& dataset, const arrow::Schema& data,
                    const std::string& left_on, const std::string& right_on) {
  if (dataset.schema().FindTopLevel(left_on) == nullptr && left_on != kRowId &&
      left_on != kRowAddress) {
    return InvalidInput("Column ", left_on, " does not exist in the left side dataset");
  }
  if (data.GetFieldIndex(right_on) < 0) {
    return InvalidInput("Column ", right_on, " does not exist in the right side dataset");
  }
  for (const std::string& name : data.field_names()) {
    if (name != right_on && dataset.schema().FindTopLevel(name) != nullptr) {
      return InvalidInput("Column ", name, " exists in both sides of the dataset");
    }
  }
  if (data.num_fields() < 2) {
    return InvalidInput("the data to merge has no column besides the key '", right_on,
                        "'");
  }
  return Status::OK();
}

}  // namespace

Result<table::Dataset::Ptr> MergeColumns(table::Dataset::Ptr dataset,
                                         arrow::RecordBatchReader& data,
                                         const std::string& left_on,
                                         const std::string& right_on,
                                         const ColumnChangeOptions& options) {
  GLAIVE_RETURN_NOT_OK(CheckColumns(*dataset, *data.schema(), left_on, right_on));
  GLAIVE_ASSIGN_OR_RETURN(const Joined joined, Joined::Read(*dataset->env().runtime, data,
                                                            right_on, options.cancel));
  const auto change =
      [&](const table::Dataset::Ptr& latest) -> Result<table::Dataset::Ptr> {
    GLAIVE_RETURN_NOT_OK(CheckColumns(*latest, *data.schema(), left_on, right_on));
    Selection select;
    const std::vector<std::string> path = {left_on};
    select.columns = {{left_on, file::FormatFieldPath(path)}};
    GLAIVE_ASSIGN_OR_RETURN(auto plan,
                            SnapshotState::Of(*latest)->Output(*latest, select));
    const auto& key_type = plan->schema->field(0)->type();
    if (!key_type->Equals(*joined.keys()->type())) {
      return InvalidInput("Index column type mismatch: expected ",
                          joined.keys()->type()->ToString(), ", got ",
                          key_type->ToString());
    }
    if (joined.num_rows() == 0 && latest->count_rows() > 0) {
      return InvalidInput("the data to merge has no rows");
    }
    GLAIVE_ASSIGN_OR_RETURN(const int32_t first_id, table::NextFieldId(*latest));
    GLAIVE_ASSIGN_OR_RETURN(
        auto prepared,
        table::AddFields(latest->schema(), *joined.values()->schema(), first_id));
    const auto values_schema = joined.values()->schema();
    const auto join = [&](const BatchPtr& live) -> Result<BatchPtr> {
      GLAIVE_ASSIGN_OR_RETURN(auto places, joined.Find(live->column(0)));
      GLAIVE_ASSIGN_OR_RETURN(auto taken, arrow::compute::Take(joined.values(), places));
      return taken.record_batch();
    };
    ColumnFiles files(latest, std::move(prepared.added), options);
    GLAIVE_RETURN_NOT_OK(ComputeColumns(&files, *plan, join, nullptr, options));
    return files.Commit(prepared.schema);
  };
  return ChangeWithRetries(std::move(dataset), "merge", options.cancel, change);
}

}  // namespace glaive::exec
