// Plans as text, in the notation that users of the format know.
#include <sstream>
#include <string>

#include <arrow/type.h>

#include "exec/nearest.h"
#include "exec/plan.h"
#include "exec/scan.h"
#include "io/object_store.h"

namespace glaive::exec {
namespace {

std::string Names(const arrow::Schema& schema) {
  std::string names;
  for (const auto& field : schema.fields()) {
    names += (names.empty() ? "" : ", ") + field->name();
  }
  return names;
}

std::string Projection(const OutputPlan& plan) {
  std::string text = "ProjectionExec: expr=[";
  for (int i = 0; i < plan.schema->num_fields(); ++i) {
    const std::string& name = plan.schema->field(i)->name();
    text += (i == 0 ? "" : ", ") + name + "@" + std::to_string(i) + " as " + name;
  }
  return text + "]\n";
}

std::string FilterText(const FilterPlan* filter) {
  return filter == nullptr ? "--" : filter->predicate->ToString();
}

std::string Read(const table::Dataset& dataset, const arrow::Schema& columns,
                 size_t fragments, const MetaNeeds& needs, const FilterPlan* filter) {
  std::ostringstream out;
  out << std::boolalpha << "LanceRead: uri=" << dataset.env().store->root()
      << "/data, projection=[" << Names(columns) << "], num_fragments=" << fragments
      << ", range_before=None, range_after=None, row_id=" << needs.row_id
      << ", row_addr=" << needs.row_address << ", full_filter=" << FilterText(filter)
      << ", refine_filter=" << FilterText(filter) << "\n";
  return out.str();
}

class Lines {
 public:
  void Add(const std::string& line) {
    text_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + line;
    ++depth_;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

std::string LimitText(int64_t offset, std::optional<int64_t> limit) {
  return "GlobalLimitExec: skip=" + std::to_string(offset) +
         ", fetch=" + (limit ? std::to_string(*limit) : "None") + "\n";
}

Result<std::string> Scan(const table::Dataset& dataset, const ScanOptions& options) {
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(auto output, state->Output(dataset, options.select));
  std::shared_ptr<const FilterPlan> filter;
  if (!options.filter.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(filter, state->Filter(dataset, options.filter));
  }
  Lines lines;
  lines.Add(Projection(*output));
  if (options.limit || options.offset > 0)
    lines.Add(LimitText(options.offset, options.limit));
  const size_t fragments = options.fragment_ids.empty()
                               ? static_cast<size_t>(dataset.num_fragments())
                               : options.fragment_ids.size();
  lines.Add(Read(dataset, *output->read->arrow_schema(), fragments, output->needs,
                 filter.get()));
  return lines.text();
}

std::string_view MetricName(Metric metric) {
  switch (metric) {
    case Metric::kL2:
      return "l2";
    case Metric::kCosine:
      return "cosine";
    case Metric::kDot:
      return "dot";
    case Metric::kHamming:
      return "hamming";
  }
  return "?";
}

Result<std::string> Search(const table::Dataset& dataset, const NearestOptions& options) {
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(
      auto output, state->Output(dataset, options.select, SearchColumns::kOneQuery));
  std::shared_ptr<const FilterPlan> filter;
  if (!options.filter.empty()) {
    const auto search =
        options.prefilter ? SearchColumns::kScan : SearchColumns::kOneQuery;
    GLAIVE_ASSIGN_OR_RETURN(filter, state->Filter(dataset, options.filter, search));
  }
  std::string column = options.column;
  if (column.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(column, InferVectorColumn(dataset.schema(), std::nullopt));
  }
  const int64_t top = options.k + options.offset;
  Lines lines;
  lines.Add(Projection(*output));
  lines.Add("LanceRead: uri=" + dataset.env().store->root() + "/data, projection=[" +
            Names(*output->read->arrow_schema()) + "], source=stream(_rowid)\n");
  lines.Add(LimitText(options.offset, options.k));
  if (filter != nullptr && !options.prefilter) {
    lines.Add("FilterExec: " + filter->predicate->ToString() + "\n");
  }
  lines.Add("FilterExec: _distance IS NOT NULL\n");
  lines.Add("SortExec: TopK(fetch=" + std::to_string(top) +
            "), expr=[_distance ASC NULLS LAST, _rowid ASC NULLS LAST]\n");
  lines.Add("KNNVectorDistance: metric=" + std::string(MetricName(options.metric)) +
            "\n");
  MetaNeeds needs;
  needs.row_id = true;
  arrow::FieldVector fields = {arrow::field(column, arrow::null())};
  const bool prefilters = filter != nullptr && options.prefilter;
  if (prefilters) {
    const auto& filtered = filter->read->arrow_schema()->fields();
    fields.insert(fields.begin(), filtered.begin(), filtered.end());
  }
  lines.Add(Read(dataset, *arrow::schema(std::move(fields)),
                 static_cast<size_t>(dataset.num_fragments()), needs,
                 prefilters ? filter.get() : nullptr));
  return lines.text();
}

std::string TextOrError(const Result<std::string>& text) {
  return text.ok() ? *text : "Error: " + text.status().message();
}

}  // namespace

std::string ExplainScan(const table::Dataset& dataset, const ScanOptions& options) {
  return TextOrError(Scan(dataset, options));
}

std::string ExplainNearest(const table::Dataset& dataset, const NearestOptions& options) {
  return TextOrError(Search(dataset, options));
}

}  // namespace glaive::exec
