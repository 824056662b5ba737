#include "table/view.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>

#include "format/table.pb.h"
#include "table/dataset_builder.h"
#include "table/deletion_vector.h"
#include "table/fragment_list.h"
#include "table/fragment_reader.h"
#include "table/memory_rows.h"
#include "table/snapshot.h"

namespace glaive::table {
namespace {

// What readers take for the id of a column that is gone.
constexpr int32_t kNoField = -2;

// The fragment with `foreign` ids taken out of its data files.
Result<std::string> WithoutFields(const FragmentState& state,
                                  const std::vector<int32_t>& foreign) {
  GLAIVE_RETURN_NOT_OK(state.status());
  lance::table::DataFragment fragment = state.message();
  for (auto& file : *fragment.mutable_files()) {
    for (int32_t& id : *file.mutable_fields()) {
      if (std::find(foreign.begin(), foreign.end(), id) != foreign.end()) id = kNoField;
    }
  }
  return fragment.SerializeAsString();
}

}  // namespace

Result<Dataset::Ptr> ViewOf(const Dataset& dataset, const ViewOptions& options) {
  const SnapshotPtr& of = DatasetBuilder::SnapshotOf(dataset);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->ref = of->ref;
  snapshot->path = of->path;
  snapshot->identity = of->identity;
  snapshot->header = of->header;
  snapshot->schema = options.columns_of == nullptr
                         ? of->schema
                         : DatasetBuilder::SnapshotOf(*options.columns_of)->schema;
  snapshot->index_section = of->index_section;
  snapshot->file_version = of->file_version;
  snapshot->bases = of->bases;
  snapshot->torn = of->torn;
  snapshot->is_view = true;
  snapshot->anonymous_rows = options.anonymous_rows;

  const FragmentList& fragments = *of->fragments;
  const auto count = static_cast<size_t>(fragments.size());
  std::vector<FragmentSummary> summaries(fragments.summaries().begin(),
                                         fragments.summaries().end());
  std::vector<std::shared_ptr<FragmentState>> states(count);
  for (size_t i = 0; i < count; ++i) {
    const int index = static_cast<int>(i);
    states[i] = fragments.shared_state(index);
    const auto hidden = options.hidden.find(index);
    const bool hides = hidden != options.hidden.end() && hidden->second != nullptr &&
                       hidden->second->size() > 0;
    if (!hides && options.foreign_fields.empty()) continue;
    std::string serialized(states[i]->serialized());
    if (!options.foreign_fields.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(serialized,
                              WithoutFields(*states[i], options.foreign_fields));
    }
    GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<const DeletionVector> deletions,
                            dataset.deletions(index));
    if (hides) {
      const std::shared_ptr<const DeletionVector> both[] = {deletions, hidden->second};
      deletions = DeletionVector::UnionOf(both);
    }
    if (deletions != nullptr) {
      const int64_t gone = deletions->size();
      if (gone > summaries[i].physical_rows) {
        return InvalidInput("a view hides ", gone, " rows of fragment ", summaries[i].id,
                            ", which has ", summaries[i].physical_rows);
      }
      summaries[i].deleted_rows = static_cast<uint32_t>(gone);
      summaries[i].has_deletion_file = true;
    }
    states[i] = FragmentState::ForView(std::move(serialized), std::move(deletions));
  }
  snapshot->fragments =
      FragmentList::MakeView(fragments, std::move(summaries), std::move(states));
  return DatasetBuilder::MakeView(dataset.env(), std::move(snapshot));
}

Result<Dataset::Ptr> ViewOfBatches(
    const Dataset& like, std::shared_ptr<const file::Schema> stored, size_t num_columns,
    std::vector<std::shared_ptr<arrow::RecordBatch>> batches,
    std::shared_ptr<const DeletionVector> hidden) {
  const SnapshotPtr& of = DatasetBuilder::SnapshotOf(like);
  const size_t num_batches = batches.size();
  int64_t sample_bytes = 0, sample_rows = 0;
  for (size_t b = 0; b < num_batches; b += num_batches / 16 + 1) {
    sample_rows += batches[b]->num_rows();
    const auto size = arrow::util::ReferencedBufferSize(*batches[b]);
    if (size.ok()) sample_bytes += *size;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto reader, MakeMemoryRows(std::move(stored), num_columns,
                                                      std::move(batches), hidden));
  const int64_t rows = reader->physical_rows();
  if (rows > std::numeric_limits<uint32_t>::max() ||
      (hidden != nullptr && hidden->size() > rows)) {
    return InvalidInput("a view of ", rows, " rows in memory");
  }

  lance::table::DataFragment fragment;
  fragment.set_physical_rows(static_cast<uint64_t>(rows));
  // A file that holds nothing of the table's, to say how large the rows are.
  fragment.add_files()->set_file_size_bytes(static_cast<uint64_t>(
      1 + static_cast<double>(sample_bytes) / std::max<double>(1, sample_rows) * rows));
  std::string serialized = fragment.SerializeAsString();
  GLAIVE_ASSIGN_OR_RETURN(FragmentSummary summary, SummarizeFragment(serialized));
  if (hidden != nullptr && hidden->size() > 0) {
    summary.deleted_rows = static_cast<uint32_t>(hidden->size());
    summary.has_deletion_file = true;
  } else {
    hidden = nullptr;
  }
  auto state = FragmentState::ForView(serialized, std::move(hidden));
  std::vector<FragmentSummary> summaries;
  std::vector<std::shared_ptr<FragmentState>> states;
  if (rows > 0) {
    summaries.push_back(summary);
    states.push_back(std::move(state));
  }

  auto snapshot = std::make_shared<Snapshot>();
  snapshot->ref = of->ref;
  snapshot->path = of->path;
  snapshot->identity = of->identity;
  auto header = std::make_shared<lance::table::Manifest>();
  header->set_version(of->version());
  snapshot->header = std::move(header);
  snapshot->schema = of->schema;
  snapshot->file_version = of->file_version;
  snapshot->is_view = true;
  snapshot->anonymous_rows = true;
  GLAIVE_ASSIGN_OR_RETURN(
      auto list, FragmentList::Make(SharedBytes::FromString(std::move(serialized)), {}));
  snapshot->fragments =
      FragmentList::MakeView(*list, std::move(summaries), std::move(states));
  return DatasetBuilder::MakeView(like.env(), std::move(snapshot),
                                  {{0, std::move(reader)}});
}

}  // namespace glaive::table
