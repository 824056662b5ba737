#include "exec/merge_source.h"

#include <algorithm>
#include <random>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "exec/row_bytes.h"
#include "exec/spill_file.h"
#include "runtime/cancel.h"

namespace glaive::exec {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

constexpr size_t kPartitions = 32;
// Bits of the hash that choose the partition: neither the lowest nor the highest, by
// which a KeyTable finds its places.
constexpr int kPartitionShift = 27;
// Rows of a batch that is written to a file: bounds what is read back at a time.
constexpr int64_t kSpilledBatchBytes = int64_t{4} << 20;
constexpr int64_t kSpilledBatchRows = 65536;
// What an entry of a KeyTable costs beside the bytes of its key.
constexpr int64_t kEntryBytes = 64;

int64_t KeyBytes(const KeyBatch& keys) {
  int64_t bytes = keys.rows * 8;
  for (const auto& view : keys.views) bytes += static_cast<int64_t>(view.size());
  return bytes;
}

class RowsInMemory final : public MergeSource::Rows {
 public:
  explicit RowsInMemory(const std::vector<BatchPtr>& batches) : batches_(batches) {}
  Result<BatchPtr> Next() override {
    return next_ < batches_.size() ? batches_[next_++] : nullptr;
  }

 private:
  const std::vector<BatchPtr>& batches_;
  size_t next_ = 0;
};

class RowsInFile final : public MergeSource::Rows {
 public:
  explicit RowsInFile(std::shared_ptr<arrow::RecordBatchReader> reader)
      : reader_(std::move(reader)) {}
  Result<BatchPtr> Next() override {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(reader_->ReadNext(&batch));
    return batch;
  }

 private:
  const std::shared_ptr<arrow::RecordBatchReader> reader_;
};

}  // namespace

struct MergeSource::Partition {
  std::unique_ptr<SpillFile> file;  // row number, key columns
  int64_t rows = 0;
  int64_t key_bytes = 0;
};

MergeSource::MergeSource() = default;
MergeSource::~MergeSource() = default;

Result<std::unique_ptr<MergeSource>> MergeSource::Read(arrow::RecordBatchReader& stream,
                                                       std::vector<int> key_columns,
                                                       const KeyCodec& codec,
                                                       Limits limits,
                                                       CancelToken* cancel) {
  std::unique_ptr<MergeSource> source(new MergeSource);
  source->schema_ = stream.schema();
  source->key_columns_ = std::move(key_columns);
  source->codec_ = codec;
  source->limits_ = std::move(limits);
  // Keys that collide for everybody cannot be prepared.
  std::random_device random;
  source->seed_ = (uint64_t{random()} << 32) | random();
  while (true) {
    if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(stream.ReadNext(&batch));
    if (batch == nullptr) break;
    if (batch->num_rows() > 0) GLAIVE_RETURN_NOT_OK(source->Add(std::move(batch)));
  }
  GLAIVE_RETURN_NOT_OK(source->Finish());
  return source;
}

Status MergeSource::Add(BatchPtr batch) {
  const int64_t first_row = num_rows_;
  num_rows_ += batch->num_rows();
  if (!limits_.in_memory) {
    held_bytes_ += RowBytes(*batch);
    if (rows_file_ == nullptr && held_bytes_ > limits_.memory_bytes) {
      GLAIVE_RETURN_NOT_OK(BeginSpilling());
    }
  }
  if (rows_file_ != nullptr) return SpillRows(batch, first_row);
  batches_.push_back(std::move(batch));
  return Status::OK();
}

Status MergeSource::BeginSpilling() {
  GLAIVE_ASSIGN_OR_RETURN(rows_file_, SpillFile::Make(limits_.spill_directory, schema_));
  arrow::FieldVector fields = {arrow::field("row", arrow::int64())};
  for (int c : key_columns_) fields.push_back(schema_->field(c));
  key_schema_ = arrow::schema(std::move(fields));
  partitions_.resize(kPartitions);
  for (Partition& partition : partitions_) {
    GLAIVE_ASSIGN_OR_RETURN(partition.file,
                            SpillFile::Make(limits_.spill_directory, key_schema_));
  }
  int64_t first_row = 0;
  for (const BatchPtr& batch : std::exchange(batches_, {})) {
    GLAIVE_RETURN_NOT_OK(SpillRows(batch, first_row));
    first_row += batch->num_rows();
  }
  return Status::OK();
}

Status MergeSource::SpillRows(const BatchPtr& batch, int64_t first_row) {
  const int64_t row_bytes = std::max<int64_t>(1, RowBytes(*batch) / batch->num_rows());
  const int64_t step =
      std::clamp<int64_t>(kSpilledBatchBytes / row_bytes, 1, kSpilledBatchRows);
  const KeyTable hasher(codec_.fixed(), seed_);
  for (int64_t start = 0; start < batch->num_rows(); start += step) {
    const BatchPtr piece = batch->Slice(start, std::min(step, batch->num_rows() - start));
    GLAIVE_RETURN_NOT_OK(rows_file_->Write(*piece));
    const auto columns = KeysOf(*piece);
    GLAIVE_ASSIGN_OR_RETURN(const KeyBatch keys, codec_.Decode(columns));
    std::vector<std::vector<int64_t>> picks(kPartitions);
    for (int64_t i = 0; i < keys.rows; ++i) {
      if (keys.IsNull(i)) continue;  // matches nothing
      const uint64_t hash = hasher.Hash(keys, i);
      Partition& partition = partitions_[(hash >> kPartitionShift) % kPartitions];
      picks[static_cast<size_t>(&partition - partitions_.data())].push_back(i);
      ++partition.rows;
      if (!codec_.fixed()) {
        partition.key_bytes +=
            static_cast<int64_t>(keys.views[static_cast<size_t>(i)].size());
      }
    }
    for (size_t p = 0; p < kPartitions; ++p) {
      if (picks[p].empty()) continue;
      const auto count = static_cast<int64_t>(picks[p].size());
      const arrow::Int64Array indices(
          count, arrow::Buffer::Wrap(picks[p].data(), picks[p].size()));
      std::vector<int64_t> numbers(picks[p].size());
      for (size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = first_row + start + picks[p][i];
      }
      arrow::ArrayVector arrays = {std::make_shared<arrow::Int64Array>(
          count, arrow::Buffer::Wrap(numbers.data(), numbers.size()))};
      for (const auto& column : columns) {
        GLAIVE_ASSIGN_OR_RETURN(
            auto taken,
            arrow::compute::Take(*column, indices,
                                 arrow::compute::TakeOptions::NoBoundsCheck()));
        arrays.push_back(std::move(taken));
      }
      GLAIVE_RETURN_NOT_OK(partitions_[p].file->Write(
          *arrow::RecordBatch::Make(key_schema_, count, std::move(arrays))));
    }
  }
  return Status::OK();
}

Status MergeSource::Finish() {
  if (rows_file_ != nullptr) {
    GLAIVE_RETURN_NOT_OK(rows_file_->Finish());
    for (Partition& partition : partitions_) {
      GLAIVE_RETURN_NOT_OK(partition.file->Finish());
    }
  } else {
    partitions_.resize(1);
    partitions_[0].rows = num_rows_;
    if (!codec_.fixed()) {
      for (const BatchPtr& batch : batches_) {
        GLAIVE_ASSIGN_OR_RETURN(const KeyBatch keys, codec_.Decode(KeysOf(*batch)));
        partitions_[0].key_bytes += KeyBytes(keys);
      }
    }
  }
  PlanPasses();
  return Status::OK();
}

// Neighbouring partitions share a pass while their keys fit; a partition whose keys do
// not fit takes several.
void MergeSource::PlanPasses() {
  const int64_t limit = std::max<int64_t>(limits_.memory_bytes, int64_t{1} << 20);
  int64_t open = 0;  // bytes of the last pass
  for (size_t p = 0; p < partitions_.size(); ++p) {
    const int64_t bytes = partitions_[p].rows * kEntryBytes + partitions_[p].key_bytes;
    if (bytes > limit) {
      const auto pieces = static_cast<uint64_t>((bytes + limit - 1) / limit);
      for (uint64_t r = 0; r < pieces; ++r) passes_.push_back({p, p + 1, pieces, r});
      open = limit;
    } else if (passes_.empty() || open + bytes > limit) {
      passes_.push_back({p, p + 1, 1, 0});
      open = bytes;
    } else {
      passes_.back().end = p + 1;
      open += bytes;
    }
  }
}

int64_t MergeSource::spilled_bytes() const {
  if (rows_file_ == nullptr) return 0;
  int64_t bytes = rows_file_->size_bytes();
  for (const Partition& partition : partitions_) bytes += partition.file->size_bytes();
  return bytes;
}

Result<std::unique_ptr<KeyTable>> MergeSource::LoadPass(int pass) const {
  const Pass& wanted = passes_[static_cast<size_t>(pass)];
  auto table = std::make_unique<KeyTable>(codec_.fixed(), seed_);
  const auto add = [&](const arrow::ArrayVector& columns, int64_t first_row,
                       const int64_t* numbers) -> Status {
    GLAIVE_ASSIGN_OR_RETURN(KeyBatch keys, codec_.Decode(columns));
    if (!table->Add(std::move(keys), first_row, numbers, wanted.modulus,
                    wanted.remainder)) {
      return ResourceExhausted("a merge has too many source rows for one pass");
    }
    return Status::OK();
  };
  if (rows_file_ == nullptr) {
    int64_t first_row = 0;
    for (const BatchPtr& batch : batches_) {
      GLAIVE_RETURN_NOT_OK(add(KeysOf(*batch), first_row, nullptr));
      first_row += batch->num_rows();
    }
    return table;
  }
  for (size_t p = wanted.first; p < wanted.end; ++p) {
    GLAIVE_ASSIGN_OR_RETURN(auto reader, partitions_[p].file->Read());
    while (true) {
      BatchPtr batch;
      GLAIVE_RETURN_NOT_OK(reader->ReadNext(&batch));
      if (batch == nullptr) break;
      arrow::ArrayVector columns = batch->columns();
      const auto rows = std::static_pointer_cast<arrow::Int64Array>(columns[0]);
      columns.erase(columns.begin());
      GLAIVE_RETURN_NOT_OK(add(columns, 0, rows->raw_values()));
    }
  }
  return table;
}

Result<std::unique_ptr<MergeSource::Rows>> MergeSource::ReadRows() const {
  std::unique_ptr<Rows> rows;
  if (rows_file_ == nullptr) {
    rows = std::make_unique<RowsInMemory>(batches_);
  } else {
    GLAIVE_ASSIGN_OR_RETURN(auto reader, rows_file_->Read());
    rows = std::make_unique<RowsInFile>(std::move(reader));
  }
  return rows;
}

arrow::ArrayVector MergeSource::KeysOf(const arrow::RecordBatch& batch) const {
  arrow::ArrayVector columns;
  for (int c : key_columns_) columns.push_back(batch.column(c));
  return columns;
}

Result<std::string> MergeSource::DescribeKey(int64_t row) const {
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ReadRows());
  while (true) {
    GLAIVE_ASSIGN_OR_RETURN(const BatchPtr batch, rows->Next());
    if (batch == nullptr) return InternalError("a source row is missing");
    if (row < batch->num_rows()) return codec_.Describe(KeysOf(*batch), row);
    row -= batch->num_rows();
  }
}

}  // namespace glaive::exec
