#include "memwal/vector_index_files.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/chunked_array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/file_writer.h"
#include "format/vector_index.pb.h"
#include "io/object_store.h"

namespace glaive::memwal {
namespace {

using lance::index::pb::IVF;

constexpr char kIndexFile[] = "index.idx";
constexpr char kVectorFile[] = "auxiliary.idx";
// Rows that are made ready at a time.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

Result<std::unique_ptr<file::FileWriter>> MakeFile(io::ObjectStore& store,
                                                   const std::string& path,
                                                   const arrow::Schema& schema,
                                                   file::FileVersion version) {
  GLAIVE_ASSIGN_OR_RETURN(file::Schema stored, file::Schema::FromArrow(schema));
  file::FileWriterOptions options;
  options.version = version;
  return file::FileWriter::Make(store, path, std::move(stored), options);
}

// Adds `ivf` and says where it is.
Status AddPartitions(file::FileWriter* writer, const IVF& ivf) {
  GLAIVE_ASSIGN_OR_RETURN(
      const int place,
      writer->AddGlobalBuffer(arrow::Buffer::FromString(ivf.SerializeAsString())));
  writer->AddSchemaMetadata("lance:ivf", std::to_string(place));
  return Status::OK();
}

// Rows of a chunk that are indexed, with their vectors one after the other.
class Rows {
 public:
  Rows(int64_t dimension, bool unit) : dimension_(dimension), unit_(unit) {}

  void Add(const arrow::FixedSizeListArray& vectors, int64_t i, uint64_t row) {
    if (vectors.IsNull(i)) return;
    const auto& values = static_cast<const arrow::FloatArray&>(*vectors.values());
    const int64_t begin = vectors.value_offset(i);
    if (values.null_count() > 0) {
      for (int64_t d = 0; d < dimension_; ++d) {
        if (values.IsNull(begin + d)) return;
      }
    }
    const float* vector = values.raw_values() + begin;
    if (!std::all_of(vector, vector + dimension_,
                     [](float v) { return std::isfinite(v); }))
      return;
    double scale = 1;
    if (unit_) {
      double square = 0;
      for (int64_t d = 0; d < dimension_; ++d) square += double{vector[d]} * vector[d];
      if (square == 0) return;
      scale = 1 / std::sqrt(square);
    }
    for (int64_t d = 0; d < dimension_; ++d) {
      values_.push_back(unit_ ? static_cast<float>(vector[d] * scale) : vector[d]);
    }
    ids_.push_back(row);
  }

  bool empty() const { return ids_.empty(); }

  std::shared_ptr<arrow::RecordBatch> ToBatch(
      const std::shared_ptr<arrow::Schema>& schema) && {
    const auto rows = static_cast<int64_t>(ids_.size());
    const auto items = std::make_shared<arrow::FloatArray>(
        rows * dimension_, arrow::Buffer::FromVector(std::move(values_)));
    return arrow::RecordBatch::Make(
        schema, rows,
        {std::make_shared<arrow::UInt64Array>(rows,
                                              arrow::Buffer::FromVector(std::move(ids_))),
         std::make_shared<arrow::FixedSizeListArray>(schema->field(1)->type(), rows,
                                                     items)});
  }

 private:
  const int64_t dimension_;
  const bool unit_;
  std::vector<float> values_;
  std::vector<uint64_t> ids_;
};

}  // namespace

bool IsVectorIndexType(const arrow::DataType& type) {
  if (type.id() != arrow::Type::FIXED_SIZE_LIST) return false;
  const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
  return list.list_size() > 0 && list.value_type()->id() == arrow::Type::FLOAT;
}

Result<bool> WriteVectorIndexFiles(io::ObjectStore& store, const std::string& directory,
                                   const arrow::ChunkedArray& vectors,
                                   std::string_view metric, file::FileVersion version) {
  if (!IsVectorIndexType(*vectors.type())) {
    return InternalError("a vector index over values of type ",
                         vectors.type()->ToString());
  }
  const int64_t dimension =
      static_cast<const arrow::FixedSizeListType&>(*vectors.type()).list_size();
  const auto schema =
      arrow::schema({arrow::field("_rowid", arrow::uint64()),
                     arrow::field("flat",
                                  arrow::fixed_size_list(arrow::float32(),
                                                         static_cast<int32_t>(dimension)),
                                  /*nullable=*/false)});
  const int64_t chunk_rows = std::max<int64_t>(1, kChunkBytes / (dimension * 4));
  std::unique_ptr<file::FileWriter> data;
  uint64_t row = 0;
  for (const auto& chunk : vectors.chunks()) {
    const auto& array = static_cast<const arrow::FixedSizeListArray&>(*chunk);
    for (int64_t at = 0; at < array.length(); at += chunk_rows) {
      Rows rows(dimension, metric == "cosine");
      const int64_t end = std::min(array.length(), at + chunk_rows);
      for (int64_t i = at; i < end; ++i) rows.Add(array, i, row++);
      if (rows.empty()) continue;
      if (data == nullptr) {
        GLAIVE_ASSIGN_OR_RETURN(
            data, MakeFile(store, directory + "/" + kVectorFile, *schema, version));
      }
      GLAIVE_RETURN_NOT_OK(data->Write(*std::move(rows).ToBatch(schema)));
    }
  }
  if (data == nullptr) return false;
  IVF ivf;
  ivf.add_offsets(0);
  ivf.add_lengths(static_cast<uint32_t>(data->num_rows()));
  GLAIVE_RETURN_NOT_OK(AddPartitions(data.get(), ivf));
  data->AddSchemaMetadata("distance_type", std::string(metric));
  data->AddSchemaMetadata("storage_metadata",
                          "[\"{\\\"dim\\\":" + std::to_string(dimension) + "}\"]");
  GLAIVE_RETURN_NOT_OK(data->Finish().status());

  GLAIVE_ASSIGN_OR_RETURN(
      const auto index,
      MakeFile(store, directory + "/" + kIndexFile,
               arrow::Schema({arrow::field("__flat_marker", arrow::uint64(), false)}),
               version));
  ivf.set_lengths(0, 0);  // of this file
  // One partition holds everything, wherever its centre is.
  auto* centroids = ivf.mutable_centroids_tensor();
  centroids->set_data_type(lance::index::pb::Tensor::FLOAT32);
  centroids->add_shape(1);
  centroids->add_shape(static_cast<uint32_t>(dimension));
  centroids->set_data(std::string(static_cast<size_t>(dimension) * 4, '\0'));
  GLAIVE_RETURN_NOT_OK(AddPartitions(index.get(), ivf));
  index->AddSchemaMetadata("lance:index", "{\"type\":\"IVF_FLAT\",\"distance_type\":\"" +
                                              std::string(metric) + "\"}");
  index->AddSchemaMetadata("lance:flat", "[\"\"]");
  GLAIVE_RETURN_NOT_OK(index->Finish().status());
  return true;
}

}  // namespace glaive::memwal
