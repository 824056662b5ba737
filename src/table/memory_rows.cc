#include "table/memory_rows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>

#include "file/assemble.h"
#include "file/json_columns.h"
#include "file/write_cast.h"
#include "table/deletion_vector.h"
#include "table/row_ids.h"

namespace glaive::table {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Batches below this are joined, up to so many rows.
constexpr int64_t kSmallBatchRows = 64;
constexpr int64_t kJoinedRows = 1024;
// Row sizes are estimated from so many batches.
constexpr size_t kSampledBatches = 16;

bool IsList(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

bool HasBlob(const file::Field& field) {
  return field.is_blob() || field.is_blob_v2() ||
         std::any_of(field.children.begin(), field.children.end(), HasBlob);
}

const file::Field* FindId(const std::vector<file::Field>& fields, int32_t id) {
  for (const file::Field& field : fields) {
    if (field.id == id) return &field;
  }
  return nullptr;
}

Result<ArrayPtr> Nulls(const file::Field& field, int64_t rows) {
  return arrow::MakeArrayOfNull(file::ReadType(field), rows);
}

// `array`, which holds `stored`, as `wanted`: another name for it, or some members.
Result<ArrayPtr> Show(const file::Field& stored, const file::Field& wanted,
                      const ArrayPtr& array);

template <typename ListArray>
Result<ArrayPtr> ShowItems(const file::Field& stored, const file::Field& wanted,
                           const ListArray& list) {
  GLAIVE_ASSIGN_OR_RETURN(auto items,
                          Show(stored.children[0], wanted.children[0], list.values()));
  auto data = list.data()->Copy();
  data->type = file::ReadType(wanted);
  data->child_data = {items->data()};
  return arrow::MakeArray(std::move(data));
}

Result<ArrayPtr> Show(const file::Field& stored, const file::Field& wanted,
                      const ArrayPtr& array) {
  const auto type = file::ReadType(wanted);
  if (array->type()->Equals(*type)) return array;
  if (array->type_id() == arrow::Type::STRUCT && type->id() == arrow::Type::STRUCT) {
    const auto& whole = static_cast<const arrow::StructArray&>(*array);
    if (stored.children.size() > static_cast<size_t>(whole.num_fields())) {
      return InternalError("column '", stored.name, "' in memory lacks members");
    }
    auto data = whole.data()->Copy();
    data->type = type;
    data->child_data.clear();
    // Children keep the length of the parent's buffers, its offset applies to them.
    const int64_t rows = whole.offset() + whole.length();
    for (const file::Field& child : wanted.children) {
      const file::Field* source = FindId(stored.children, child.id);
      ArrayPtr member;
      if (source == nullptr) {
        GLAIVE_ASSIGN_OR_RETURN(member, Nulls(child, rows));
      } else {
        const int index = whole.struct_type()->GetFieldIndex(source->name);
        if (index < 0) {
          return InternalError("column '", stored.name, "' in memory lacks member '",
                               source->name, "'");
        }
        const ArrayPtr held =
            arrow::MakeArray(whole.data()->child_data[static_cast<size_t>(index)]);
        GLAIVE_ASSIGN_OR_RETURN(member, Show(*source, child, held));
      }
      data->child_data.push_back(member->data());
    }
    return arrow::MakeArray(std::move(data));
  }
  if (IsList(*type) && array->type_id() == type->id() && stored.children.size() == 1 &&
      wanted.children.size() == 1) {
    switch (type->id()) {
      case arrow::Type::LIST:
        return ShowItems(stored, wanted, static_cast<const arrow::ListArray&>(*array));
      case arrow::Type::LARGE_LIST:
        return ShowItems(stored, wanted,
                         static_cast<const arrow::LargeListArray&>(*array));
      default:
        return ShowItems(stored, wanted,
                         static_cast<const arrow::FixedSizeListArray&>(*array));
    }
  }
  file::Field target = wanted;
  target.nullable = true;
  GLAIVE_ASSIGN_OR_RETURN(auto cast, file::CastForStorage(target, array));
  return arrow::MakeArray(std::move(cast));
}

class MemoryRows final : public FragmentReader {
 public:
  MemoryRows(std::shared_ptr<const file::Schema> stored, size_t num_columns,
             std::vector<BatchPtr> batches,
             std::shared_ptr<const DeletionVector> deletions)
      : stored_(std::move(stored)),
        num_columns_(num_columns),
        batches_(std::move(batches)),
        deletions_(std::move(deletions)) {
    begins_.reserve(batches_.size() + 1);
    for (const BatchPtr& batch : batches_) {
      begins_.push_back(rows_);
      rows_ += batch->num_rows();
    }
    begins_.push_back(rows_);
    if (batches_.empty()) return;
    for (int c = 0; c < batches_[0]->num_columns(); ++c) {
      json_.push_back(file::HasJson(*arrow::schema({batches_[0]->schema()->field(c)})));
    }
  }

  int64_t id() const override { return 0; }
  int64_t physical_rows() const override { return rows_; }
  const DeletionVector* deletions() const override { return deletions_.get(); }
  Result<std::span<const uint64_t>> row_ids() const override {
    return std::span<const uint64_t>();
  }
  Result<std::vector<uint64_t>> RowVersions(RowVersion) const override {
    return std::vector<uint64_t>(static_cast<size_t>(rows_), 1);
  }
  Result<std::vector<RowVersionRun>> RowVersionRuns(RowVersion) const override {
    std::vector<RowVersionRun> runs;
    runs.push_back({rows_, 1});
    return runs;
  }

  Result<FragmentProjection> Bind(const file::Schema& schema) const override {
    FragmentProjection projection;
    projection.schema = schema;
    projection.arrow_schema = schema.ToArrow();
    for (const file::Field& field : schema.fields()) {
      FragmentProjection::Column column;
      for (size_t c = 0; c < num_columns_; ++c) {
        if (stored_->fields()[c].id != field.id) continue;
        if (HasBlob(stored_->fields()[c])) {
          return NotSupported("column '", field.name,
                              "' holds blobs, which cannot be read before they are "
                              "flushed: leave the column out, or flush the table");
        }
        column.sources.push_back({0, static_cast<int>(c)});
      }
      projection.columns.push_back(std::move(column));
    }
    return projection;
  }

  Result<BatchPtr> ReadRange(const FragmentProjection& projection, int64_t start,
                             int64_t count) const override {
    if (start < 0 || count < 0 || start > rows_ || count > rows_ - start) {
      return InvalidInput("rows [", start, ", ", start, " + ", count, ") of ", rows_,
                          " rows in memory");
    }
    return Collect(projection, count, [&](int column) -> Result<ArrayPtr> {
      std::vector<ArrayPtr> pieces;
      int64_t at = start;
      for (size_t b = BatchOf(start); at < start + count; ++b) {
        const int64_t end = std::min(begins_[b + 1], start + count);
        if (end > at) {
          pieces.push_back(batches_[b]->column(column)->Slice(at - begins_[b], end - at));
        }
        at = end;
      }
      return Join(column, std::move(pieces));
    });
  }

  Result<BatchPtr> Take(const FragmentProjection& projection,
                        std::span<const int64_t> offsets) const override {
    for (int64_t offset : offsets) {
      if (offset < 0 || offset >= rows_) {
        return InvalidInput("row ", offset, " of ", rows_, " rows in memory");
      }
    }
    if (offsets.size() == 1) return ReadRange(projection, offsets[0], 1);
    // By batch, then back into the order asked for.
    std::vector<size_t> order(offsets.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const bool sorted = std::is_sorted(offsets.begin(), offsets.end());
    if (!sorted) {
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    }
    struct Group {
      size_t batch;
      ArrayPtr indices;
    };
    std::vector<Group> groups;
    for (size_t i = 0; i < order.size();) {
      const size_t b = BatchOf(offsets[order[i]]);
      std::vector<int64_t> local;
      for (; i < order.size() && offsets[order[i]] < begins_[b + 1]; ++i) {
        local.push_back(offsets[order[i]] - begins_[b]);
      }
      const auto length = static_cast<int64_t>(local.size());
      groups.push_back({b, std::make_shared<arrow::Int64Array>(
                               length, arrow::Buffer::FromVector(std::move(local)))});
    }
    ArrayPtr places;
    if (!sorted) {
      std::vector<int64_t> place(order.size());
      for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int64_t>(i);
      places = std::make_shared<arrow::Int64Array>(
          static_cast<int64_t>(order.size()),
          arrow::Buffer::FromVector(std::move(place)));
    }
    const auto no_check = arrow::compute::TakeOptions::NoBoundsCheck();
    return Collect(
        projection, static_cast<int64_t>(offsets.size()),
        [&](int column) -> Result<ArrayPtr> {
          std::vector<ArrayPtr> pieces;
          for (const Group& group : groups) {
            GLAIVE_ASSIGN_OR_RETURN(
                auto piece, arrow::compute::Take(*batches_[group.batch]->column(column),
                                                 *group.indices, no_check));
            pieces.push_back(std::move(piece));
          }
          GLAIVE_ASSIGN_OR_RETURN(auto joined, Join(column, std::move(pieces)));
          if (places == nullptr) return joined;
          return arrow::compute::Take(*joined, *places, no_check);
        });
  }

  Result<BatchPtr> LoadBlobs(const FragmentProjection&, const file::Schema&,
                             const BatchPtr& batch) const override {
    return batch;
  }

  Result<std::vector<int64_t>> ScanBoundaries(const FragmentProjection&) const override {
    return begins_;
  }

  int64_t Contiguous(int64_t start) const {
    size_t b = BatchOf(start);
    int64_t rows = begins_[b + 1] - start;
    if (rows >= kSmallBatchRows) return rows;
    for (++b; b < batches_.size() && rows < kJoinedRows; ++b) {
      if (batches_[b]->num_rows() >= kSmallBatchRows) break;
      rows += batches_[b]->num_rows();
    }
    return rows;
  }

  int64_t EstimateRowBytes(const FragmentProjection& projection) const override {
    int64_t rows = 0, bytes = 0;
    const size_t step = batches_.size() / kSampledBatches + 1;
    for (size_t b = 0; b < batches_.size(); b += step) {
      rows += batches_[b]->num_rows();
      for (const auto& column : projection.columns) {
        if (column.sources.empty()) continue;
        const auto size = arrow::util::ReferencedBufferSize(
            *batches_[b]->column(column.sources[0].column));
        if (size.ok()) bytes += *size;
      }
    }
    return std::max<int64_t>(1, bytes / std::max<int64_t>(1, rows));
  }

 private:
  size_t BatchOf(int64_t row) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, row);
    return static_cast<size_t>(after - begins_.begin()) - 1;
  }

  Result<ArrayPtr> Join(int column, std::vector<ArrayPtr> pieces) const {
    if (pieces.size() == 1) return pieces[0];
    if (pieces.empty()) {
      return arrow::MakeEmptyArray(
          batches_.empty()
              ? file::ReadType(stored_->fields()[static_cast<size_t>(column)])
              : batches_[0]->column(column)->type());
    }
    return arrow::Concatenate(pieces);
  }

  template <typename Get>
  Result<BatchPtr> Collect(const FragmentProjection& projection, int64_t rows,
                           const Get& get) const {
    std::vector<ArrayPtr> arrays;
    arrays.reserve(projection.columns.size());
    for (size_t c = 0; c < projection.columns.size(); ++c) {
      const file::Field& wanted = projection.schema.fields()[c];
      ArrayPtr array;
      if (projection.columns[c].sources.empty()) {
        GLAIVE_ASSIGN_OR_RETURN(array, Nulls(wanted, rows));
      } else {
        const int column = projection.columns[c].sources[0].column;
        GLAIVE_ASSIGN_OR_RETURN(array, get(column));
        const auto& shown = projection.arrow_schema->field(static_cast<int>(c))->type();
        if (IsJson(column) || !array->type()->Equals(*shown)) {
          GLAIVE_ASSIGN_OR_RETURN(array, Stored(column, array));
          GLAIVE_ASSIGN_OR_RETURN(
              array, Show(stored_->fields()[static_cast<size_t>(column)], wanted, array));
        }
      }
      arrays.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(projection.arrow_schema, rows, std::move(arrays));
  }

  bool IsJson(int column) const {
    return !json_.empty() && json_[static_cast<size_t>(column)];
  }

  // JSON as files hold it.
  Result<ArrayPtr> Stored(int column, const ArrayPtr& array) const {
    if (!IsJson(column)) return array;
    const auto schema = arrow::schema({batches_[0]->schema()->field(column)});
    const auto user = arrow::RecordBatch::Make(schema, array->length(), {array});
    GLAIVE_ASSIGN_OR_RETURN(const auto stored, file::JsonToStorage(user));
    return stored->column(0);
  }

  const std::shared_ptr<const file::Schema> stored_;
  const size_t num_columns_;
  const std::vector<BatchPtr> batches_;
  const std::shared_ptr<const DeletionVector> deletions_;
  std::vector<int64_t> begins_;  // of each batch, and the end
  std::vector<bool> json_;       // columns that hold JSON
  int64_t rows_ = 0;
};

}  // namespace

int64_t ContiguousRows(const FragmentReader& reader, int64_t start) {
  const auto* rows = dynamic_cast<const MemoryRows*>(&reader);
  return rows == nullptr ? INT64_MAX : rows->Contiguous(start);
}

Result<std::shared_ptr<const FragmentReader>> MakeMemoryRows(
    std::shared_ptr<const file::Schema> stored, size_t num_columns,
    std::vector<std::shared_ptr<arrow::RecordBatch>> batches,
    std::shared_ptr<const DeletionVector> deletions) {
  const auto columns = static_cast<int>(std::min(num_columns, stored->fields().size()));
  for (const BatchPtr& batch : batches) {
    if (batch->num_columns() < columns) {
      return InvalidInput("a batch in memory has ", batch->num_columns(),
                          " columns, its schema ", columns);
    }
  }
  return std::make_shared<MemoryRows>(std::move(stored), static_cast<size_t>(columns),
                                      std::move(batches), std::move(deletions));
}

}  // namespace glaive::table
