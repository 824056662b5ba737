// glaive::Query and glaive::VectorQuery: the executor's options behind the public
// builders.
#include "db/public_query.h"

#include <arrow/api.h>

#include "db/read_source.h"
#include "db/search.h"
#include "exec/nearest.h"
#include "exec/scan.h"
#include "exec/select_columns.h"
#include "glaive/glaive.h"
#include "runtime/cancel.h"

namespace glaive {
namespace {

std::unique_ptr<CancelToken> MakeToken(std::optional<std::chrono::nanoseconds> timeout) {
  if (!timeout) return std::make_unique<CancelToken>();
  return std::make_unique<CancelToken>(*timeout);
}

Status CheckRows(const char* what, int64_t rows, int64_t least) {
  if (rows >= least) return Status::OK();
  return InvalidInput("Invalid input, ", what, " must be at least ", least, ", it is ",
                      rows);
}

Result<exec::Selection> Bind(const table::Dataset& dataset,
                             const db::Projection& projection) {
  exec::Selection selection;
  if (projection.names) {
    GLAIVE_ASSIGN_OR_RETURN(selection,
                            exec::SelectColumns(dataset.schema(), *projection.names));
  } else {
    selection.columns = projection.expressions;
  }
  selection.with_row_id = projection.with_row_id;
  return selection;
}

// A stream with the token that it watches.
class OwningReader : public arrow::RecordBatchReader {
 public:
  OwningReader(std::unique_ptr<CancelToken> token,
               std::shared_ptr<arrow::RecordBatchReader> stream)
      : token_(std::move(token)), stream_(std::move(stream)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return stream_->schema(); }
  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    return stream_->ReadNext(out);
  }

 private:
  std::unique_ptr<CancelToken> token_;  // outlives the stream
  std::shared_ptr<arrow::RecordBatchReader> stream_;
};

struct BoundScan {
  db::ReadSource source;
  exec::ScanOptions options;
};

Result<BoundScan> BindScan(const Query::State& state) {
  GLAIVE_RETURN_NOT_OK(CheckRows("the offset", state.options.offset, 0));
  GLAIVE_RETURN_NOT_OK(CheckRows("the limit", state.options.limit.value_or(0), 0));
  GLAIVE_RETURN_NOT_OK(CheckRows("the batch size", state.options.batch_rows, 1));
  BoundScan out;
  GLAIVE_ASSIGN_OR_RETURN(out.source, state.table->Source(state.use_lsm));
  out.options = state.options;
  GLAIVE_ASSIGN_OR_RETURN(out.options.select, Bind(*out.source.base, state.projection));
  return out;
}

struct BoundSearch {
  db::ReadSource source;
  exec::NearestOptions options;
};

Result<BoundSearch> BindSearch(const VectorQuery::State& state) {
  GLAIVE_RETURN_NOT_OK(CheckRows("the offset", state.options.offset, 0));
  GLAIVE_RETURN_NOT_OK(CheckRows("the limit", state.options.k, 1));
  BoundSearch out;
  GLAIVE_ASSIGN_OR_RETURN(out.source, state.table->Source(state.use_lsm));
  out.options = state.options;
  out.options.metric_of_index = !state.metric_given;
  GLAIVE_ASSIGN_OR_RETURN(out.options.queries, state.queries);
  GLAIVE_ASSIGN_OR_RETURN(out.options.select, Bind(*out.source.base, state.projection));
  GLAIVE_RETURN_NOT_OK(db::ResolveSearch(*out.source.base, &out.options));
  return out;
}

void SetNames(db::Projection* projection, std::vector<std::string> names) {
  projection->expressions.reset();
  projection->names = std::move(names);
}

void SetExpressions(db::Projection* projection,
                    std::vector<std::pair<std::string, std::string>> expressions) {
  projection->names.reset();
  projection->expressions = std::move(expressions);
}

exec::Metric ToMetric(Distance distance) {
  switch (distance) {
    case Distance::kL2:
      return exec::Metric::kL2;
    case Distance::kCosine:
      return exec::Metric::kCosine;
    case Distance::kDot:
      return exec::Metric::kDot;
    case Distance::kHamming:
      return exec::Metric::kHamming;
  }
  return exec::Metric::kL2;
}

}  // namespace

Query::Query(std::shared_ptr<State> state) : state_(std::move(state)) {}

Query& Query::Select(std::vector<std::string> columns) {
  SetNames(&state_->projection, std::move(columns));
  return *this;
}

Query& Query::SelectAs(std::vector<std::pair<std::string, std::string>> columns) {
  SetExpressions(&state_->projection, std::move(columns));
  return *this;
}

Query& Query::Where(std::string predicate) {
  state_->options.filter = std::move(predicate);
  return *this;
}

Query& Query::Limit(int64_t rows) {
  state_->options.limit = rows;
  return *this;
}

Query& Query::Offset(int64_t rows) {
  state_->options.offset = rows;
  return *this;
}

Query& Query::WithRowId(bool on) {
  state_->projection.with_row_id = on;
  return *this;
}

Query& Query::BatchRows(int64_t rows) {
  state_->options.batch_rows = rows;
  return *this;
}

Query& Query::Timeout(std::chrono::nanoseconds timeout) {
  state_->timeout = timeout;
  return *this;
}

Query& Query::UseLsm(bool on) {
  state_->use_lsm = on;
  return *this;
}

Result<std::shared_ptr<arrow::Table>> Query::ToTable() const {
  auto token = MakeToken(state_->timeout);
  GLAIVE_ASSIGN_OR_RETURN(auto bound, BindScan(*state_));
  bound.options.cancel = token.get();
  return db::ScanToTable(bound.source, std::move(bound.options));
}

Result<std::shared_ptr<arrow::RecordBatchReader>> Query::ToReader() const {
  auto token = MakeToken(state_->timeout);
  GLAIVE_ASSIGN_OR_RETURN(auto bound, BindScan(*state_));
  bound.options.cancel = token.get();
  GLAIVE_ASSIGN_OR_RETURN(auto stream, db::Scan(bound.source, std::move(bound.options)));
  return std::make_shared<OwningReader>(std::move(token), std::move(stream));
}

Result<std::string> Query::Explain() const {
  GLAIVE_ASSIGN_OR_RETURN(auto bound, BindScan(*state_));
  return db::ExplainScan(bound.source, bound.options);
}

VectorQuery::VectorQuery(std::shared_ptr<State> state) : state_(std::move(state)) {}

VectorQuery& VectorQuery::Select(std::vector<std::string> columns) {
  SetNames(&state_->projection, std::move(columns));
  return *this;
}

VectorQuery& VectorQuery::SelectAs(
    std::vector<std::pair<std::string, std::string>> columns) {
  SetExpressions(&state_->projection, std::move(columns));
  return *this;
}

VectorQuery& VectorQuery::Where(std::string predicate, bool prefilter) {
  state_->options.filter = std::move(predicate);
  state_->options.prefilter = prefilter;
  return *this;
}

VectorQuery& VectorQuery::Limit(int64_t rows) {
  state_->options.k = rows;
  return *this;
}

VectorQuery& VectorQuery::Offset(int64_t rows) {
  state_->options.offset = rows;
  return *this;
}

VectorQuery& VectorQuery::WithRowId(bool on) {
  state_->projection.with_row_id = on;
  return *this;
}

VectorQuery& VectorQuery::Timeout(std::chrono::nanoseconds timeout) {
  state_->timeout = timeout;
  return *this;
}

VectorQuery& VectorQuery::Column(std::string path) {
  state_->options.column = std::move(path);
  return *this;
}

VectorQuery& VectorQuery::DistanceType(Distance distance) {
  state_->options.metric = ToMetric(distance);
  state_->metric_given = true;
  return *this;
}

VectorQuery& VectorQuery::DistanceRange(std::optional<float> lower,
                                        std::optional<float> upper) {
  state_->options.lower_bound = lower;
  state_->options.upper_bound = upper;
  return *this;
}

VectorQuery& VectorQuery::UseLsm(bool on) {
  state_->use_lsm = on;
  return *this;
}

Result<std::shared_ptr<arrow::Table>> VectorQuery::ToTable() const {
  auto token = MakeToken(state_->timeout);
  GLAIVE_ASSIGN_OR_RETURN(auto bound, BindSearch(*state_));
  bound.options.cancel = token.get();
  return db::Nearest(bound.source, std::move(bound.options));
}

Result<std::string> VectorQuery::Explain() const {
  GLAIVE_ASSIGN_OR_RETURN(auto bound, BindSearch(*state_));
  return db::ExplainNearest(bound.source, bound.options);
}

}  // namespace glaive
