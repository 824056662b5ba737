#include "exec/compact_rewrite.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>

#include "exec/bound_columns.h"
#include "exec/moved_rows.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/data_file.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"
#include "table/fragment_writer.h"
#include "table/row_ids.h"

namespace glaive::exec {
namespace {

using lance::table::DataFragment;

// Bounds of one read, and of what is read before it is written, in bytes on disk.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kWindowBytes = int64_t{16} << 20;
constexpr int64_t kPieceRows = 65536;
constexpr size_t kWindowPieces = 256;

struct Piece {
  int fragment = 0;  // position in the snapshot
  int64_t start = 0;
  int64_t count = 0;
  std::shared_ptr<arrow::RecordBatch> batch;  // live rows
  // Of tables with blobs: what loads them.
  std::shared_ptr<const table::FragmentReader> reader;
  BoundColumns::ProjectionPtr projection;
};

bool HasBlobs(const std::vector<file::Field>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const file::Field& field) {
    return field.is_blob() || HasBlobs(field.children);
  });
}

Status CheckCaller(CancelToken* cancel) {
  return cancel == nullptr ? Status::OK() : cancel->Check();
}

class Rewriter {
 public:
  Rewriter(const table::Dataset& dataset, std::span<const int> fragments,
           const CompactionOptions& options, const CompactionHooks& hooks)
      : dataset_(dataset),
        fragments_(fragments),
        options_(options),
        hooks_(hooks),
        columns_(dataset.schema(), dataset.num_fragments()),
        has_blobs_(HasBlobs(dataset.schema().fields())) {}

  Result<RewriteResult> Run() {
    int64_t live = 0;
    for (int index : fragments_) live += dataset_.live_rows(index);
    table::FragmentWriterOptions limits;
    limits.version = options_.data_storage_version.value_or(dataset_.file_version());
    for (const file::Field& field : dataset_.schema().fields()) {
      if (HoldsBlobs(field)) limits.outside_blob_fields.push_back(field.id);
    }
    // Fragments of about equal size, none below the target. A target of no rows is met by
    // any fragment, so nothing is cut.
    const int64_t parts =
        target_rows() <= 0 ? 1 : std::max<int64_t>(1, live / target_rows());
    limits.max_rows_per_file = std::max<int64_t>(1, (live + parts - 1) / parts);
    if (options_.max_bytes_per_file) {
      limits.max_bytes_per_file = std::max<int64_t>(1, *options_.max_bytes_per_file);
    }
    table::FragmentWriter writer(dataset_.env(), dataset_.schema(), limits);
    GLAIVE_RETURN_NOT_OK(Copy(&writer));
    RewriteResult result;
    GLAIVE_ASSIGN_OR_RETURN(result.new_fragments, writer.Finish());
    if (writer.num_rows() != live) {
      return Corruption("table ", dataset_.env().store->root(), ": fragments ",
                        dataset_.fragment_id(fragments_.front()), " to ",
                        dataset_.fragment_id(fragments_.back()), " have ",
                        writer.num_rows(), " live rows, the manifest says ", live);
    }
    if (dataset_.has_stable_row_ids()) {
      GLAIVE_RETURN_NOT_OK(CarryLineage(&result.new_fragments));
    }
    result.read_version = dataset_.version();
    for (int index : fragments_) {
      const DataFragment& old = dataset_.fragment(index);
      result.old_fragments.push_back(old);
      result.metrics.files_removed +=
          old.files_size() + (old.has_deletion_file() ? 1 : 0);
    }
    result.metrics.fragments_removed = static_cast<int64_t>(fragments_.size());
    result.metrics.fragments_added = static_cast<int64_t>(result.new_fragments.size());
    for (const DataFragment& fragment : result.new_fragments) {
      result.metrics.files_added += fragment.files_size();
    }
    writer.Keep();
    result.in_flight = writer.in_flight();
    return result;
  }

 private:
  int64_t target_rows() const { return options_.target_rows_per_fragment; }

  // Reads a window of pieces on all threads while the one before it is written, until
  // nothing is left.
  Status Copy(table::FragmentWriter* writer) {
    std::vector<Piece> ready;
    std::vector<Piece> window = NextWindow();
    while (!ready.empty() || !window.empty()) {
      GLAIVE_RETURN_NOT_OK(CheckCaller(hooks_.cancel));
      const int64_t writing = ready.empty() ? 0 : 1;
      GLAIVE_RETURN_NOT_OK(dataset_.env().runtime->ParallelFor(
          writing + static_cast<int64_t>(window.size()),
          [&](int64_t i) {
            return i < writing ? Write(&ready, writer)
                               : Read(&window[static_cast<size_t>(i - writing)]);
          },
          hooks_.cancel));
      if (writing > 0 && hooks_.progress) hooks_.progress(writer->num_rows());
      ready = std::move(window);
      window = NextWindow();
    }
    return Status::OK();
  }

  std::vector<Piece> NextWindow() {
    std::vector<Piece> window;
    int64_t bytes = 0;
    while (slot_ < fragments_.size() && window.size() < kWindowPieces &&
           bytes < kWindowBytes) {
      const int index = fragments_[slot_];
      const int64_t physical = dataset_.physical_rows(index);
      const int64_t per_row = RowBytes(index);
      int64_t most = std::min(options_.batch_size.value_or(kPieceRows), kPieceRows);
      most = std::clamp<int64_t>(kPieceBytes / per_row, 1, std::max<int64_t>(most, 1));
      const int64_t count = std::min(most, physical - start_);
      Piece& piece = window.emplace_back();
      piece.fragment = index;
      piece.start = start_;
      piece.count = count;
      bytes += count * per_row;
      start_ += count;
      if (start_ >= physical) {
        ++slot_;
        start_ = 0;
      }
    }
    return window;
  }

  Status Write(std::vector<Piece>* pieces, table::FragmentWriter* writer) const {
    for (Piece& piece : *pieces) {
      if (piece.batch->num_rows() > 0) {
        GLAIVE_RETURN_NOT_OK(has_blobs_ ? WriteWithBlobs(piece, writer)
                                        : writer->Write(*piece.batch));
      }
      piece = Piece();
    }
    return Status::OK();
  }

  // On disk, as the manifest knows it.
  int64_t RowBytes(int index) const {
    const int64_t rows = std::max<int64_t>(1, dataset_.physical_rows(index));
    return std::max<int64_t>(1, table::DataFileBytes(dataset_.fragment(index)) / rows);
  }

  Status Read(Piece* piece) const {
    GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset_.OpenFragment(piece->fragment));
    GLAIVE_ASSIGN_OR_RETURN(auto projection,
                            columns_.Bind(dataset_, piece->fragment, *reader));
    const table::DeletionVector* deletions = reader->deletions();
    const int64_t deleted =
        deletions == nullptr
            ? 0
            : deletions->CountInRange(piece->start, piece->start + piece->count);
    GLAIVE_ASSIGN_OR_RETURN(
        auto batch, deleted == piece->count
                        ? reader->ReadRange(*projection, piece->start, 0)
                        : reader->ReadRange(*projection, piece->start, piece->count));
    if (deleted > 0 && deleted < piece->count) {
      std::vector<uint64_t> keep(static_cast<size_t>((piece->count + 63) / 64),
                                 ~uint64_t{0});
      deletions->MaskRange(piece->start, piece->count,
                           reinterpret_cast<uint8_t*>(keep.data()));
      const auto bits = std::make_shared<arrow::BooleanArray>(
          piece->count, arrow::Buffer::Wrap(keep.data(), keep.size()));
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum filtered, arrow::compute::Filter(batch, bits));
      batch = filtered.record_batch();
    }
    piece->batch = std::move(batch);
    if (has_blobs_) {
      piece->reader = std::move(reader);
      piece->projection = std::move(projection);
    }
    return Status::OK();
  }

  // Blobs are loaded when they are written: of so many rows at a time that a piece of
  // them fits into memory, or of one.
  Status WriteWithBlobs(const Piece& piece, table::FragmentWriter* writer) const {
    const std::vector<int64_t> ends = CutByBlobs(columns_.written(), *piece.batch);
    int64_t start = 0;
    for (const int64_t end : ends) {
      GLAIVE_ASSIGN_OR_RETURN(
          const auto batch,
          piece.reader->LoadBlobs(*piece.projection, columns_.written(),
                                  piece.batch->Slice(start, end - start)));
      GLAIVE_RETURN_NOT_OK(writer->Write(*batch));
      start = end;
    }
    return Status::OK();
  }

  // Row ids and row versions of the live rows, dealt out to the new fragments in order.
  Status CarryLineage(std::vector<DataFragment>* fragments) const {
    Lineage ids, created, updated;
    size_t next = 0;
    auto deal = [&](bool last) {
      while (next < fragments->size()) {
        DataFragment& fragment = (*fragments)[next];
        const auto rows = static_cast<size_t>(fragment.physical_rows());
        if (ids.size() < rows) break;
        fragment.set_inline_row_ids(EncodeIds(ids.Take(rows)));
        fragment.set_inline_created_at_versions(EncodeVersions(created.Take(rows)));
        fragment.set_inline_last_updated_at_versions(EncodeVersions(updated.Take(rows)));
        ++next;
      }
      return !last || (next == fragments->size() && ids.size() == 0);
    };
    for (int index : fragments_) {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset_.OpenFragment(index));
      GLAIVE_ASSIGN_OR_RETURN(auto row_ids, reader->row_ids());
      GLAIVE_ASSIGN_OR_RETURN(auto created_at,
                              reader->RowVersions(table::RowVersion::kCreatedAt));
      GLAIVE_ASSIGN_OR_RETURN(auto updated_at,
                              reader->RowVersions(table::RowVersion::kLastUpdatedAt));
      const auto physical = static_cast<size_t>(reader->physical_rows());
      if (row_ids.size() != physical || created_at.size() != physical ||
          updated_at.size() != physical) {
        return Corruption("fragment ", reader->id(), " of table ",
                          dataset_.env().store->root(), " does not have an id per row");
      }
      const table::DeletionVector* deletions = reader->deletions();
      for (size_t i = 0; i < physical; ++i) {
        if (deletions != nullptr && deletions->Contains(static_cast<uint32_t>(i)))
          continue;
        ids.Add(row_ids[i]);
        created.Add(created_at[i]);
        updated.Add(updated_at[i]);
      }
      deal(false);
    }
    if (!deal(true)) return InternalError("row ids do not fit the rewritten fragments");
    return Status::OK();
  }

  // A queue of values.
  class Lineage {
   public:
    size_t size() const { return values_.size(); }
    void Add(uint64_t value) { values_.push_back(value); }
    std::vector<uint64_t> Take(size_t count) {
      const auto end = values_.begin() + static_cast<std::ptrdiff_t>(count);
      std::vector<uint64_t> taken(values_.begin(), end);
      values_.erase(values_.begin(), end);
      return taken;
    }

   private:
    std::vector<uint64_t> values_;
  };

  // One segment per ascending run, unless these are so short that a plain list is
  // smaller. Messages with repeated fields may simply be put one after the other.
  static std::string EncodeIds(const std::vector<uint64_t>& ids) {
    size_t runs = 1;
    for (size_t i = 1; i < ids.size(); ++i) runs += ids[i] <= ids[i - 1] ? 1 : 0;
    if (runs > 1 + ids.size() / 16) return table::EncodeRowIds(ids);
    std::string encoded;
    const std::span<const uint64_t> all(ids);
    size_t begin = 0;
    for (size_t i = 1; i <= ids.size(); ++i) {
      if (i < ids.size() && ids[i] > ids[i - 1]) continue;
      encoded += table::EncodeRowIds(all.subspan(begin, i - begin));
      begin = i;
    }
    return encoded;
  }

  static std::string EncodeVersions(const std::vector<uint64_t>& versions) {
    std::string encoded;
    size_t begin = 0;
    for (size_t i = 1; i <= versions.size(); ++i) {
      if (i < versions.size() && versions[i] == versions[begin]) continue;
      encoded +=
          table::EncodeRowVersions(static_cast<int64_t>(i - begin), versions[begin]);
      begin = i;
    }
    return encoded;
  }

  const table::Dataset& dataset_;
  const std::span<const int> fragments_;
  const CompactionOptions& options_;
  const CompactionHooks& hooks_;
  const BoundColumns columns_;
  const bool has_blobs_;
  // Where the next window begins.
  size_t slot_ = 0;
  int64_t start_ = 0;
};

}  // namespace

Result<RewriteResult> RewriteFragments(const table::Dataset& dataset,
                                       std::span<const int> fragments,
                                       const CompactionOptions& options,
                                       const CompactionHooks& hooks) {
  if (fragments.empty()) {
    return InvalidInput("Invalid input, a compaction task without fragments");
  }
  return Rewriter(dataset, fragments, options, hooks).Run();
}

}  // namespace glaive::exec
