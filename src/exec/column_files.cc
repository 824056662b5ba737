#include "exec/column_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/builder_base.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "exec/morsel.h"
#include "exec/retry.h"
#include "file/file_writer.h"
#include "file/version.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/names.h"
#include "table/schema_change.h"

namespace glaive::exec {
namespace {

constexpr int64_t kMorselRows = 131072;
constexpr int64_t kMorselBytes = int64_t{8} << 20;
// Where batches are not pages of their own: pages are encoded while later rows are
// computed. One page for all of a narrow column would be encoded when nothing else is
// left to do.
constexpr int64_t kNarrowPageBytes = int64_t{2} << 20;
// Batches that may be in the works at once.
constexpr size_t kWindow = 16;
// Each holds a descriptor.
constexpr int kMostUnsynced = 16;

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Rows that nobody will see, where no neighbour lends its values.
Result<BatchPtr> BlankRows(const std::shared_ptr<arrow::Schema>& schema, int64_t count) {
  arrow::ArrayVector arrays;
  for (const auto& field : schema->fields()) {
    std::shared_ptr<arrow::Array> array;
    if (field->nullable()) {
      GLAIVE_ASSIGN_OR_RETURN(array, arrow::MakeArrayOfNull(field->type(), count));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto builder, arrow::MakeBuilder(field->type()));
      GLAIVE_RETURN_NOT_OK(builder->AppendEmptyValues(count));
      GLAIVE_ASSIGN_OR_RETURN(array, builder->Finish());
    }
    arrays.push_back(std::move(array));
  }
  return arrow::RecordBatch::Make(schema, count, std::move(arrays));
}

Result<BatchPtr> Spread(const BatchPtr& live, const RowMask& mask, int64_t count) {
  GLAIVE_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Buffer> buffer,
      arrow::AllocateBuffer(count * static_cast<int64_t>(sizeof(int64_t))));
  auto* places = reinterpret_cast<int64_t*>(buffer->mutable_data());
  int64_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto word = static_cast<size_t>(i / 64);
    if ((mask.words[word] >> (i % 64)) & 1) {
      places[i] = next++;
    } else {
      places[i] = std::max<int64_t>(next - 1, 0);
    }
  }
  const auto indices =
      std::make_shared<arrow::Int64Array>(count, std::move(buffer), nullptr, 0);
  GLAIVE_ASSIGN_OR_RETURN(
      auto taken,
      arrow::compute::Take(live, indices, arrow::compute::TakeOptions::NoBoundsCheck()));
  return taken.record_batch();
}

void FillSchema(const table::Dataset& dataset, const file::Schema& schema,
                google::protobuf::RepeatedPtrField<lance::file::Field>* fields) {
  table::FieldsToProto(schema, dataset.manifest().fields(), fields);
}

// Whether a file still serves: rows' lineage counts, tombstones do not.
bool HoldsLiveField(const lance::table::DataFile& file, const file::Schema& schema) {
  constexpr int32_t kFirstLineage = -5;
  constexpr int32_t kLastLineage = -3;
  return std::any_of(file.fields().begin(), file.fields().end(), [&](int32_t id) {
    if (id < 0) return id >= kFirstLineage && id <= kLastLineage;
    return schema.FindById(id) != nullptr;
  });
}

// Writes pages in the order of their rows, whoever brings them.
class PageQueue {
 public:
  using Rows = std::shared_ptr<const file::EncodedRows>;
  PageQueue(ColumnFiles::Writer* writer, size_t pieces)
      : writer_(writer), pieces_(pieces) {}

  // Writes what is next, unless another thread is at it, who will go on with this then.
  Status Put(size_t piece, Rows rows, int64_t count) {
    std::unique_lock lock(mutex_);
    pieces_[piece] = {std::move(rows), count};
    if (writing_) return Status::OK();
    writing_ = true;
    Status status;
    while (status.ok() && next_ < pieces_.size() && pieces_[next_].rows != nullptr) {
      const Piece one = std::exchange(pieces_[next_++], {});
      lock.unlock();
      status = writer_->Write(*one.rows, one.count);
      lock.lock();
    }
    writing_ = false;
    return status;
  }

 private:
  struct Piece {
    Rows rows;
    int64_t count = 0;
  };
  ColumnFiles::Writer* const writer_;
  std::mutex mutex_;
  std::vector<Piece> pieces_;  // guarded by mutex_
  size_t next_ = 0;            // guarded by mutex_
  bool writing_ = false;       // guarded by mutex_
};

// Fills one fragment's file: while one batch is written, the next ones are computed.
class FragmentJob {
 public:
  FragmentJob(ColumnFiles* files, const OutputPlan& input, const ColumnFunction& function,
              const ColumnFunction& whole, const ColumnChangeOptions& options,
              size_t width)
      : files_(files),
        dataset_(files->dataset()),
        input_(input),
        function_(function),
        whole_(whole),
        options_(options),
        width_(width) {}

  Status Run(int fragment) {
    const auto state = SnapshotState::Of(dataset_);
    GLAIVE_ASSIGN_OR_RETURN(rows_, FragmentRows::Open(dataset_, *state, fragment));
    GLAIVE_ASSIGN_OR_RETURN(auto writer, files_->Open(fragment));
    MorselOptions cut;
    cut.fragments = {fragment};
    cut.max_rows = options_.batch_rows > 0 ? options_.batch_rows : kMorselRows;
    cut.max_bytes = options_.batch_rows > 0 ? INT64_MAX : kMorselBytes;
    GLAIVE_ASSIGN_OR_RETURN(const MorselPlan plan,
                            CutMorsels(dataset_, *input_.read, cut));
    if (plan.morsels.empty()) {
      // Rows are there, all of them deleted.
      const int64_t rows = dataset_.physical_rows(fragment);
      GLAIVE_RETURN_NOT_OK(writer->WriteLive(nullptr, RowMask{}, rows));
      return writer->Finish();
    }
    if (writer->encodes_apart() && options_.batch_rows == 0) {
      GLAIVE_RETURN_NOT_OK(WritePages(plan.morsels, writer.get()));
      return writer->Finish();
    }
    std::vector<Piece> ready;
    size_t next = 0;
    while (next < plan.morsels.size() || !ready.empty()) {
      const size_t count = std::min(width_, plan.morsels.size() - next);
      std::vector<Piece> computed(count);
      const size_t writing = ready.empty() ? 0 : 1;
      GLAIVE_RETURN_NOT_OK(dataset_.env().runtime->ParallelFor(
          static_cast<int64_t>(count + writing),
          [&](int64_t i) -> Status {
            const auto task = static_cast<size_t>(i);
            if (task >= writing) {
              return Compute(plan.morsels[next + task - writing],
                             &computed[task - writing]);
            }
            for (const Piece& piece : ready) {
              GLAIVE_RETURN_NOT_OK(
                  writer->WriteLive(piece.values, piece.mask, piece.count));
            }
            return Status::OK();
          },
          options_.cancel));
      next += count;
      ready = std::move(computed);
    }
    return writer->Finish();
  }

 private:
  struct Piece {
    BatchPtr values;
    RowMask mask;
    int64_t count = 0;
  };

  // Each batch is computed and becomes pages while it is in the caches of one processor.
  Status WritePages(const std::vector<Morsel>& morsels, ColumnFiles::Writer* writer) {
    for (size_t next = 0; next < morsels.size(); next += kWindow) {
      const size_t count = std::min(kWindow, morsels.size() - next);
      PageQueue queue(writer, count);
      GLAIVE_RETURN_NOT_OK(dataset_.env().runtime->ParallelFor(
          static_cast<int64_t>(count),
          [&](int64_t i) -> Status {
            const auto task = static_cast<size_t>(i);
            Piece piece;
            GLAIVE_RETURN_NOT_OK(Compute(morsels[next + task], &piece));
            GLAIVE_ASSIGN_OR_RETURN(
                auto rows, writer->Encode(piece.values, piece.mask, piece.count));
            return queue.Put(task, std::move(rows), piece.count);
          },
          options_.cancel));
    }
    return Status::OK();
  }

  Status Compute(const Morsel& morsel, Piece* piece) {
    piece->count = morsel.count;
    GLAIVE_ASSIGN_OR_RETURN(piece->mask,
                            SelectRows(rows_, nullptr, morsel.start, morsel.count));
    if (piece->mask.count > 0) {
      GLAIVE_ASSIGN_OR_RETURN(auto live, ReadSelected(rows_, input_, morsel.start,
                                                      morsel.count, piece->mask));
      GLAIVE_ASSIGN_OR_RETURN(piece->values, function_(live));
    }
    if (whole_ && !piece->mask.all()) {
      piece->mask = RowMask{};
      piece->mask.count = morsel.count;
      GLAIVE_ASSIGN_OR_RETURN(
          auto all, ReadSelected(rows_, input_, morsel.start, morsel.count, piece->mask));
      GLAIVE_ASSIGN_OR_RETURN(piece->values, whole_(all));
    }
    return Status::OK();
  }

  ColumnFiles* const files_;
  const table::Dataset& dataset_;
  const OutputPlan& input_;
  const ColumnFunction& function_;
  const ColumnFunction& whole_;
  const ColumnChangeOptions& options_;
  const size_t width_;
  FragmentRows rows_;
};

}  // namespace

ColumnFiles::ColumnFiles(table::Dataset::Ptr dataset, file::Schema columns,
                         ColumnChangeOptions options)
    : dataset_(std::move(dataset)),
      columns_(std::move(columns)),
      options_(std::move(options)),
      files_(static_cast<size_t>(dataset_->num_fragments())),
      unsynced_(*dataset_->env().store) {}

ColumnFiles::~ColumnFiles() {
  if (kept_) return;
  for (const std::string& path : paths_) {
    Status ignored = dataset_->env().store->Delete(path);
    static_cast<void>(ignored.ok());
  }
}

Result<std::unique_ptr<ColumnFiles::Writer>> ColumnFiles::Open(int fragment) {
  const std::string name = table::NewDataFileName();
  file::FileWriterOptions options;
  options.version = dataset_->file_version();
  const auto stored = columns_.ToArrow();
  const bool narrow =
      std::all_of(stored->fields().begin(), stored->fields().end(),
                  [](const auto& f) { return arrow::is_primitive(f->type()->id()); });
  if (narrow) options.page_bytes = kNarrowPageBytes;
  GLAIVE_ASSIGN_OR_RETURN(
      auto file, file::FileWriter::Make(*dataset_->env().store, table::DataFilePath(name),
                                        columns_, options));
  return std::unique_ptr<Writer>(
      new Writer(this, fragment, name, std::move(file), narrow));
}

void ColumnFiles::Report(int64_t rows) {
  if (!options_.progress) return;
  std::lock_guard lock(mutex_);
  rows_ += rows;
  options_.progress(rows_);
}

ColumnFiles::Writer::Writer(ColumnFiles* owner, int fragment, std::string name,
                            std::unique_ptr<file::FileWriter> file, bool narrow)
    : owner_(owner),
      fragment_(fragment),
      name_(std::move(name)),
      file_(std::move(file)),
      encodes_apart_(narrow && file_->encodes_apart()) {}

ColumnFiles::Writer::~Writer() = default;

Status ColumnFiles::Writer::Write(const arrow::RecordBatch& batch) {
  GLAIVE_RETURN_NOT_OK(file_->Write(batch));
  owner_->Report(batch.num_rows());
  return Status::OK();
}

Result<BatchPtr> ColumnFiles::Writer::Whole(const BatchPtr& live, const RowMask& mask,
                                            int64_t count) const {
  if (live == nullptr || live->num_rows() == 0) {
    return BlankRows(owner_->columns_.ToArrow(), count);
  }
  return mask.all() ? live : Spread(live, mask, count);
}

Status ColumnFiles::Writer::WriteLive(const BatchPtr& live, const RowMask& mask,
                                      int64_t count) {
  GLAIVE_ASSIGN_OR_RETURN(const BatchPtr whole, Whole(live, mask, count));
  return Write(*whole);
}

Result<std::shared_ptr<const file::EncodedRows>> ColumnFiles::Writer::Encode(
    const BatchPtr& live, const RowMask& mask, int64_t count) const {
  GLAIVE_ASSIGN_OR_RETURN(const BatchPtr whole, Whole(live, mask, count));
  return file_->Encode(*whole);
}

Status ColumnFiles::Writer::Write(const file::EncodedRows& rows, int64_t count) {
  GLAIVE_RETURN_NOT_OK(file_->Write(rows));
  owner_->Report(count);
  return Status::OK();
}

Status ColumnFiles::Writer::Finish() {
  // Some are left to the commit, which brings them to the disk all at once.
  bool later = false;
  {
    // Before Finish: it may publish and still fail.
    std::lock_guard lock(owner_->mutex_);
    owner_->paths_.push_back(table::DataFilePath(name_));
    later = owner_->num_unsynced_++ < kMostUnsynced;
  }
  std::unique_ptr<io::ObjectWriter> complete;
  GLAIVE_ASSIGN_OR_RETURN(const file::FileWriteSummary summary,
                          file_->Finish(later ? &complete : nullptr));
  const int64_t expected = owner_->dataset_->physical_rows(fragment_);
  if (summary.num_rows != expected) {
    return InternalError("column file of fragment ",
                         owner_->dataset_->fragment_id(fragment_), " has ",
                         summary.num_rows, " rows instead of ", expected);
  }
  auto entry = std::make_unique<lance::table::DataFile>();
  entry->set_path(name_);
  entry->mutable_fields()->Add(summary.field_ids.begin(), summary.field_ids.end());
  entry->mutable_column_indices()->Add(summary.column_indices.begin(),
                                       summary.column_indices.end());
  const auto [major, minor] = file::DataFileVersion(owner_->dataset_->file_version());
  entry->set_file_major_version(major);
  entry->set_file_minor_version(minor);
  entry->set_file_size_bytes(static_cast<uint64_t>(summary.size_bytes));
  if (later) {
    owner_->unsynced_.Add(table::DataFilePath(name_), std::move(complete));
  }
  std::lock_guard lock(owner_->mutex_);
  owner_->files_[static_cast<size_t>(fragment_)] = std::move(entry);
  return Status::OK();
}

Result<lance::table::DataFile> ColumnFiles::Keep(int fragment) {
  const auto& file = files_[static_cast<size_t>(fragment)];
  if (file == nullptr) return InternalError("a fragment has no column file to keep");
  lance::table::Transaction names;
  *names.mutable_append()->add_fragments()->add_files() = *file;
  GLAIVE_RETURN_NOT_OK(table::FinishUnsynced(dataset_->env(), names));
  kept_ = true;
  return *file;
}

Result<table::Dataset::Ptr> ColumnFiles::Commit(const file::Schema& schema,
                                                bool preserves_nullability) {
  lance::table::Transaction transaction;
  transaction.set_read_version(static_cast<uint64_t>(dataset_->version()));
  auto* merge = transaction.mutable_merge();
  FillSchema(*dataset_, schema, merge->mutable_schema());
  for (const auto& [key, value] : schema.metadata()) {
    (*merge->mutable_schema_metadata())[key] = value;
  }
  merge->set_preserves_nullability(preserves_nullability);
  for (int i = 0; i < dataset_->num_fragments(); ++i) {
    auto* fragment = merge->add_fragments();
    *fragment = dataset_->fragment(i);
    auto* files = fragment->mutable_files();
    for (int k = files->size() - 1; k >= 0; --k) {
      if (!HoldsLiveField(files->Get(k), schema)) files->DeleteSubrange(k, 1);
    }
    const auto& added = files_[static_cast<size_t>(i)];
    if (added != nullptr) *files->Add() = *added;
  }
  table::CommitOutcome outcome = table::CommitOutcome::kNotCommitted;
  auto committed = dataset_->Commit(std::move(transaction), /*max_retries=*/20, &outcome);
  kept_ = outcome != table::CommitOutcome::kNotCommitted;
  return committed;
}

Status ComputeColumns(ColumnFiles* files, const OutputPlan& input,
                      const ColumnFunction& function,
                      const std::function<bool(int fragment)>& wanted,
                      const ColumnChangeOptions& options, const ColumnFunction& whole) {
  const table::Dataset& dataset = files->dataset();
  std::vector<int> fragments;
  for (int i = 0; i < dataset.num_fragments(); ++i) {
    if (dataset.physical_rows(i) > 0 && (!wanted || wanted(i))) fragments.push_back(i);
  }
  if (fragments.empty()) return Status::OK();
  Runtime& runtime = *dataset.env().runtime;
  // Few fragments: several batches of each at once; many: one of each.
  const auto threads = static_cast<size_t>(std::max(1, runtime.num_threads()));
  const size_t width = std::max<size_t>(1, threads / fragments.size());
  return runtime.ParallelFor(
      static_cast<int64_t>(fragments.size()),
      [&](int64_t i) {
        return FragmentJob(files, input, function, whole, options, width)
            .Run(fragments[static_cast<size_t>(i)]);
      },
      options.cancel);
}

Result<table::Dataset::Ptr> ChangeWithRetries(
    table::Dataset::Ptr dataset, const char* what, CancelToken* cancel,
    const std::function<Result<table::Dataset::Ptr>(const table::Dataset::Ptr&)>&
        change) {
  return RunWithRetries(
      std::move(dataset), {}, what, cancel,
      [&](const table::Dataset::Ptr& snapshot, int) { return change(snapshot); });
}

Result<table::Dataset::Ptr> CommitSchema(const table::Dataset& dataset,
                                         const file::Schema& schema,
                                         bool preserves_nullability) {
  lance::table::Transaction transaction;
  transaction.set_read_version(static_cast<uint64_t>(dataset.version()));
  auto* project = transaction.mutable_project();
  FillSchema(dataset, schema, project->mutable_schema());
  project->set_preserves_nullability(preserves_nullability);
  return dataset.Commit(std::move(transaction));
}

}  // namespace glaive::exec
