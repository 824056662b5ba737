#include "file/file_reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "encoding/value_sink.h"
#include "file/assemble.h"
#include "file/blob_load.h"
#include "file/column_reader.h"
#include "file/column_reader20.h"
#include "file/file_metadata.h"
#include "file/gather_rows.h"
#include "file/utf8_check.h"
#include "io/object_store.h"
#include "runtime/fork.h"

namespace glaive::file {
namespace {

using encoding::PathLayer;
using encoding::ValueRange;
using encoding::ValueShape;

// One column: its pages, and readers for the types it was asked for (nearly always one).
struct ColumnState {
  ColumnInfo info;
  std::atomic<const ColumnReader*> first{nullptr};
  ForkSafeMutex mutex;  // guards `readers`
  std::vector<std::unique_ptr<ColumnReader>> readers;
};

bool SamePath(std::span<const PathLayer> a, std::span<const PathLayer> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const PathLayer& x, const PathLayer& y) {
                      return x.is_list == y.is_list && x.dimension == y.dimension;
                    });
}

bool Serves(const ColumnReader& reader, const std::shared_ptr<arrow::DataType>& type,
            std::span<const PathLayer> path) {
  return (reader.type() == type || reader.type()->Equals(*type)) &&
         SamePath(reader.path(), path);
}

std::string Quoted(const std::string& text) { return "'" + text + "'"; }

// Maps any list of rows to ascending, disjoint ranges and, where needed, the way back.
struct RowPlan {
  std::vector<ValueRange> ranges;
  int64_t num_rows = 0;         // in the ranges
  std::vector<int64_t> gather;  // position of each wanted row; empty: as they are
};

RowPlan PlanRows(std::span<const int64_t> rows) {
  RowPlan plan;
  auto append = [&](int64_t row) {
    if (!plan.ranges.empty() &&
        plan.ranges.back().start + plan.ranges.back().count == row) {
      ++plan.ranges.back().count;
    } else {
      plan.ranges.push_back({row, 1});
    }
    ++plan.num_rows;
  };
  if (std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) ==
      rows.end()) {
    for (int64_t row : rows) append(row);
    return plan;
  }
  std::vector<int64_t> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (int64_t row : sorted) append(row);
  plan.gather.reserve(rows.size());
  for (int64_t row : rows) {
    plan.gather.push_back(std::lower_bound(sorted.begin(), sorted.end(), row) -
                          sorted.begin());
  }
  return plan;
}

}  // namespace

struct FileReader::Impl {
  std::shared_ptr<io::RandomAccessObject> object;
  FilesBeside beside;
  FileReaderOptions options;
  FileMetadata metadata;
  std::vector<std::atomic<ColumnState*>> columns;
  ForkSafeMutex opening;  // guards the creation of column states

  ~Impl() {
    for (auto& column : columns) delete column.load(std::memory_order_relaxed);
  }

  Result<std::shared_ptr<arrow::RecordBatch>> ReadChecked(
      const Projection& projection, std::span<const ValueRange> ranges,
      int64_t num_rows) {
    GLAIVE_ASSIGN_OR_RETURN(auto batch, Read(projection, ranges, num_rows));
    for (int i = 0; i < batch->num_columns(); ++i) {
      if (Status s = CheckUtf8(*batch->column_data(i)); !s.ok()) {
        return WithContext(s, "file " + Quoted(metadata.path) + ", column " +
                                  Quoted(batch->column_name(i)));
      }
    }
    return batch;
  }

  bool v2_0() const { return metadata.version == FileVersion::k2_0; }

  Result<ColumnState*> Column(int32_t number) {
    if (number < 0 || number >= metadata.num_columns()) {
      return InvalidInput("file ", Quoted(metadata.path), " has ", metadata.num_columns(),
                          " columns, none is number ", number);
    }
    auto& slot = columns[static_cast<size_t>(number)];
    if (ColumnState* ready = slot.load(std::memory_order_acquire)) return ready;
    std::lock_guard lock(opening);
    if (ColumnState* ready = slot.load(std::memory_order_acquire)) return ready;
    auto made = std::make_unique<ColumnState>();
    GLAIVE_ASSIGN_OR_RETURN(made->info, metadata.ReadColumn(number));
    ColumnState* state = made.release();
    slot.store(state, std::memory_order_release);
    return state;
  }

  Result<ColumnState*> ColumnOf(const Projection& projection, const Field& field) {
    auto it = projection.columns.find(field.id);
    if (it == projection.columns.end()) {
      return InvalidInput("the projection names no column of file ",
                          Quoted(metadata.path), " for field ", Quoted(field.name),
                          " with id ", field.id);
    }
    return Column(it->second);
  }

  Result<const ColumnReader*> Reader(const Projection& projection, const Field& leaf,
                                     const std::vector<PathLayer>& path) {
    GLAIVE_ASSIGN_OR_RETURN(ColumnState * state, ColumnOf(projection, leaf));
    const bool blob = IsBlobV1(leaf);
    const auto& type = blob ? BlobDescriptorType() : leaf.type;
    const ColumnReader* first = state->first.load(std::memory_order_acquire);
    if (first && Serves(*first, type, path)) return first;
    std::lock_guard lock(state->mutex);
    for (const auto& reader : state->readers) {
      if (Serves(*reader, type, path)) return reader.get();
    }
    GLAIVE_ASSIGN_OR_RETURN(
        auto made, ColumnReader::Make(object, state->info, leaf.name, type, path,
                                      metadata.num_rows, options.max_decoded_page_bytes));
    const ColumnReader* reader = made.get();
    state->readers.push_back(std::move(made));
    if (!first) state->first.store(reader, std::memory_order_release);
    return reader;
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Read(const Projection& projection,
                                                   std::span<const ValueRange> rows,
                                                   int64_t num_rows) {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::ArrayData>> columns_read;
    const LeafLookup leaf = [&](const Field& field, const std::vector<PathLayer>& path) {
      return Reader(projection, field, path);
    };
    const ColumnLookup20 column20 = [&](const Field& field) -> Result<const ColumnInfo*> {
      GLAIVE_ASSIGN_OR_RETURN(ColumnState * state, ColumnOf(projection, field));
      return &state->info;
    };
    for (const Field& field : projection.schema.fields()) {
      std::shared_ptr<arrow::ArrayData> data;
      if (v2_0()) {
        GLAIVE_ASSIGN_OR_RETURN(
            data, ReadField20(*object, field, metadata.num_rows, rows, column20));
      } else {
        GLAIVE_ASSIGN_OR_RETURN(data, AssembleField(field, rows, num_rows, leaf));
      }
      auto arrow_field = field.ToArrow();
      fields.push_back(arrow_field->type() == data->type
                           ? arrow_field
                           : arrow_field->WithType(data->type));
      columns_read.push_back(std::move(data));
    }
    std::shared_ptr<const arrow::KeyValueMetadata> key_values;
    if (const auto& stored = projection.schema.metadata(); !stored.empty()) {
      auto made = std::make_shared<arrow::KeyValueMetadata>();
      for (const auto& [key, value] : stored) made->Append(key, value);
      key_values = std::move(made);
    }
    return arrow::RecordBatch::Make(
        arrow::schema(std::move(fields), std::move(key_values)), num_rows,
        std::move(columns_read));
  }

  Status CheckRows(std::span<const int64_t> rows) const {
    for (int64_t row : rows) {
      if (row < 0 || row >= metadata.num_rows) {
        return InvalidInput("row ", row, " does not exist: file ", Quoted(metadata.path),
                            " has ", metadata.num_rows, " rows");
      }
    }
    return Status::OK();
  }

  // Numbers the columns of `schema`, a sub-tree of the file's own.
  Result<Projection> Number(Schema schema) const {
    Projection out;
    std::map<int32_t, int32_t> all;
    const auto owners = metadata.schema.ColumnFields(v2_0());
    if (static_cast<int>(owners.size()) != metadata.num_columns()) {
      return Corruption("file ", Quoted(metadata.path), ": the schema needs ",
                        owners.size(), " columns, the file has ", metadata.num_columns());
    }
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i]->id < 0) {
        return Corruption("file ", Quoted(metadata.path), ": field ",
                          Quoted(owners[i]->name), " has no id");
      }
      all[owners[i]->id] = static_cast<int32_t>(i);
    }
    for (const Field* field : schema.ColumnFields(v2_0())) {
      out.columns[field->id] = all.at(field->id);
    }
    out.schema = std::move(schema);
    return out;
  }
};

FileReader::FileReader() : impl_(std::make_unique<Impl>()) {}
FileReader::~FileReader() = default;

Result<std::shared_ptr<FileReader>> FileReader::Open(
    std::shared_ptr<io::RandomAccessObject> object, FileReaderOptions options) {
  auto reader = std::shared_ptr<FileReader>(new FileReader());
  Impl& impl = *reader->impl_;
  impl.object = std::move(object);
  impl.options = options;
  GLAIVE_ASSIGN_OR_RETURN(impl.metadata, ReadFileMetadata(*impl.object));
  impl.columns =
      std::vector<std::atomic<ColumnState*>>(impl.metadata.column_metadata.size());
  return reader;
}

FileVersion FileReader::version() const { return impl_->metadata.version; }
int64_t FileReader::num_rows() const { return impl_->metadata.num_rows; }
const Schema& FileReader::schema() const { return impl_->metadata.schema; }
const FileMetadata& FileReader::metadata() const { return impl_->metadata; }

Result<Projection> FileReader::ProjectAll() const {
  return impl_->Number(impl_->metadata.schema);
}

Result<Projection> FileReader::Project(std::span<const std::string> paths) const {
  GLAIVE_ASSIGN_OR_RETURN(auto schema, impl_->metadata.schema.Project(paths));
  return impl_->Number(std::move(schema));
}

int FileReader::num_global_buffers() const {
  return static_cast<int>(impl_->metadata.global_buffers.size());
}

Result<std::shared_ptr<arrow::Buffer>> FileReader::GlobalBuffer(int index) const {
  if (index < 1 || index >= num_global_buffers()) {
    return InvalidInput("file ", Quoted(impl_->metadata.path),
                        " has global buffers 1 to ", num_global_buffers() - 1, ", not ",
                        index);
  }
  return impl_->object->Read(impl_->metadata.global_buffers[static_cast<size_t>(index)]);
}

Result<std::shared_ptr<arrow::RecordBatch>> FileReader::ReadRange(
    const Projection& projection, int64_t start, int64_t count) const {
  if (start < 0 || count < 0 || start > num_rows() || count > num_rows() - start) {
    return InvalidInput("rows ", start, " to ", start, " + ", count, " of file ",
                        Quoted(impl_->metadata.path), ", which has ", num_rows(),
                        " rows");
  }
  const ValueRange range{start, count};
  return impl_->ReadChecked(projection, std::span(&range, count > 0 ? 1 : 0), count);
}

Result<std::shared_ptr<arrow::RecordBatch>> FileReader::Take(
    const Projection& projection, std::span<const int64_t> rows) const {
  GLAIVE_RETURN_NOT_OK(impl_->CheckRows(rows));
  const RowPlan plan = PlanRows(rows);
  GLAIVE_ASSIGN_OR_RETURN(auto batch,
                          impl_->ReadChecked(projection, plan.ranges, plan.num_rows));
  if (plan.gather.empty()) return batch;
  std::vector<std::shared_ptr<arrow::ArrayData>> columns;
  for (int i = 0; i < batch->num_columns(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(auto column, GatherRows(batch->column_data(i), plan.gather));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(batch->schema(), static_cast<int64_t>(rows.size()),
                                  std::move(columns));
}

void FileReader::SetFilesBeside(std::shared_ptr<io::ObjectStore> store,
                                std::string path) {
  impl_->beside = {std::move(store), std::move(path)};
}

Result<std::shared_ptr<arrow::RecordBatch>> FileReader::LoadBlobs(
    const Schema& written, const std::shared_ptr<arrow::RecordBatch>& batch) const {
  const auto& fields = written.fields();
  if (static_cast<int>(fields.size()) != batch->num_columns()) {
    return InvalidInput("a batch of ", batch->num_columns(), " columns for a schema of ",
                        fields.size());
  }
  std::vector<std::shared_ptr<arrow::Field>> arrow_fields;
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (int i = 0; i < batch->num_columns(); ++i) {
    const Field& field = fields[static_cast<size_t>(i)];
    GLAIVE_ASSIGN_OR_RETURN(auto data, LoadBlobColumn(*impl_->object, impl_->beside,
                                                      field, batch->column_data(i)));
    arrow_fields.push_back(batch->schema()->field(i)->WithType(data->type));
    columns.push_back(arrow::MakeArray(std::move(data)));
  }
  auto schema = arrow::schema(std::move(arrow_fields), batch->schema()->metadata());
  return arrow::RecordBatch::Make(std::move(schema), batch->num_rows(),
                                  std::move(columns));
}

Result<std::shared_ptr<arrow::Array>> FileReader::TakeBlobs(
    const Projection& projection, std::span<const int64_t> rows) const {
  const auto& fields = projection.schema.fields();
  if (fields.size() != 1 || !IsBlobV1(fields[0])) {
    return InvalidInput("blobs are read from a projection of one top-level blob column");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto batch, Take(projection, rows));
  GLAIVE_ASSIGN_OR_RETURN(auto loaded, LoadBlobs(projection.schema, batch));
  return loaded->column(0);
}

Result<std::vector<int64_t>> FileReader::PageBoundaries(int32_t column) const {
  GLAIVE_ASSIGN_OR_RETURN(ColumnState * state, impl_->Column(column));
  std::vector<int64_t> out;
  int64_t slots = 0;
  for (const PageInfo& page : state->info.pages) {
    out.push_back(slots);
    if (__builtin_add_overflow(slots, page.num_rows, &slots)) {
      return Corruption("file ", Quoted(impl_->metadata.path), ", column ", column,
                        ": pages of too many rows");
    }
  }
  out.push_back(slots);
  // Pages of fixed-size lists of structs count items; items of 2.0 lists have no rows.
  const int64_t rows = num_rows();
  if (rows == 0 || slots == 0 || slots % rows != 0) return std::vector<int64_t>{0, rows};
  for (int64_t& slot : out) slot /= slots / rows;
  return out;
}

namespace {

// Bytes in memory per row of the fixed-width parts outside of lists.
int64_t FixedRowBytes(const Field& field) {
  if (field.owns_column()) {
    auto shape = ValueShape::Of(ReadType(field));
    return shape.ok() ? std::max<int64_t>(shape->FixedBytes(), 0) : 0;
  }
  if (field.type->id() != arrow::Type::STRUCT) return 0;
  int64_t sum = 0;
  for (const Field& child : field.children) sum += FixedRowBytes(child);
  return sum;
}

}  // namespace

int64_t FileReader::EstimateRowBytes(const Projection& projection) const {
  int64_t stored = 0;
  for (const auto& [id, column] : projection.columns) {
    auto state = impl_->Column(column);
    if (!state.ok()) continue;  // the read itself reports it
    for (const PageInfo& page : (*state)->info.pages) {
      for (const io::ByteRange& buffer : page.buffers) stored += buffer.length;
    }
  }
  int64_t fixed = 0;
  for (const Field& field : projection.schema.fields()) fixed += FixedRowBytes(field);
  const int64_t per_row = num_rows() > 0 ? stored / num_rows() : 0;
  return std::max<int64_t>({per_row, fixed, 1});
}

int64_t FileReader::memory_bytes() const {
  int64_t bytes = static_cast<int64_t>(sizeof(Impl)) + impl_->metadata.tail->size();
  for (const auto& slot : impl_->columns) {
    ColumnState* state = slot.load(std::memory_order_acquire);
    if (!state) continue;
    bytes += static_cast<int64_t>(sizeof(ColumnState) +
                                  state->info.pages.size() * sizeof(PageInfo));
    std::lock_guard lock(state->mutex);
    for (const auto& reader : state->readers) bytes += reader->memory_bytes();
  }
  return bytes;
}

}  // namespace glaive::file
