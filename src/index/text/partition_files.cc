#include "index/text/partition_files.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/file_writer.h"
#include "index/text/fst_builder.h"
#include "io/object_store.h"

namespace glaive::text {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Rows and bytes of postings that are made ready at a time.
constexpr int64_t kChunkRows = 4096;
constexpr int64_t kChunkBytes = int64_t{8} << 20;

// What the file of postings and that of the metadata both say.
Pairs FormatMetadata(const TokenizerParams& params) {
  Pairs pairs = {{"format_version", std::to_string(kTextIndexVersion)},
                 {"posting_tail_codec", "varint_delta_v1"},
                 {"posting_block_size", std::to_string(kTextBlockSize)}};
  if (params.with_position) {
    pairs.emplace_back("positions_layout", "shared_stream_v2");
    pairs.emplace_back("positions_codec", "packed_delta_v1");
  }
  return pairs;
}

std::shared_ptr<arrow::Field> Required(const char* name,
                                       std::shared_ptr<arrow::DataType> type) {
  return arrow::field(name, std::move(type), /*nullable=*/false);
}

class Writer {
 public:
  Writer(io::ObjectStore& store, const std::string& directory, const Partition& partition,
         uint64_t id, file::FileVersion version)
      : store_(store),
        directory_(directory),
        partition_(partition),
        id_(std::to_string(id)),
        version_(version) {}

  Result<std::vector<TextIndexFile>> Run() && {
    const auto tokens = partition_.SortedTokens();
    GLAIVE_RETURN_NOT_OK(WriteTokens(tokens));
    GLAIVE_RETURN_NOT_OK(WritePostings(tokens));
    GLAIVE_RETURN_NOT_OK(WriteDocs());
    GLAIVE_RETURN_NOT_OK(WriteMetadata());
    return std::move(files_);
  }

 private:
  using FilePtr = std::unique_ptr<file::FileWriter>;

  Result<FilePtr> Create(const std::string& name, const arrow::Schema& schema,
                         const Pairs& metadata) {
    GLAIVE_ASSIGN_OR_RETURN(file::Schema stored, file::Schema::FromArrow(schema));
    file::FileWriterOptions options;
    options.version = version_;
    GLAIVE_ASSIGN_OR_RETURN(FilePtr writer,
                            file::FileWriter::Make(store_, directory_ + "/" + name,
                                                   std::move(stored), options));
    for (const auto& [key, value] : metadata) writer->AddSchemaMetadata(key, value);
    files_.push_back({name, 0});
    return writer;
  }
  Status Finish(file::FileWriter* writer) {
    GLAIVE_ASSIGN_OR_RETURN(const file::FileWriteSummary summary, writer->Finish());
    files_.back().size_bytes = summary.size_bytes;
    return Status::OK();
  }
  Status WriteAtOnce(const std::string& name,
                     const std::shared_ptr<arrow::Schema>& schema, const Pairs& metadata,
                     const arrow::ArrayVector& columns) {
    GLAIVE_ASSIGN_OR_RETURN(const FilePtr writer, Create(name, *schema, metadata));
    const auto rows = columns[0]->length();
    GLAIVE_RETURN_NOT_OK(writer->Write(*arrow::RecordBatch::Make(schema, rows, columns)));
    return Finish(writer.get());
  }

  // Numbers in ascending order of the tokens make the smallest map.
  Status WriteTokens(const std::vector<Partition::TokenList>& tokens) {
    FstBuilder map;
    uint64_t length = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      GLAIVE_RETURN_NOT_OK(map.Add(tokens[i].token, i));
      length += tokens[i].token.size();
    }
    arrow::LargeBinaryBuilder bytes;
    GLAIVE_RETURN_NOT_OK(bytes.Append(std::move(map).Finish()));
    arrow::UInt32Builder next;
    GLAIVE_RETURN_NOT_OK(next.Append(static_cast<uint32_t>(tokens.size())));
    arrow::UInt64Builder total;
    GLAIVE_RETURN_NOT_OK(total.Append(length));
    arrow::ArrayVector columns(3);
    GLAIVE_RETURN_NOT_OK(bytes.Finish(&columns[0]));
    GLAIVE_RETURN_NOT_OK(next.Finish(&columns[1]));
    GLAIVE_RETURN_NOT_OK(total.Finish(&columns[2]));
    return WriteAtOnce("part_" + id_ + "_tokens.lance",
                       arrow::schema({Required("_token_fst_bytes", arrow::large_binary()),
                                      Required("_token_next_id", arrow::uint32()),
                                      Required("_token_total_length", arrow::uint64())}),
                       {}, columns);
  }

  Status WriteDocs() {
    arrow::UInt64Builder rows;
    GLAIVE_RETURN_NOT_OK(rows.AppendValues(partition_.rows()));
    arrow::UInt32Builder lengths;
    GLAIVE_RETURN_NOT_OK(lengths.AppendValues(partition_.lengths()));
    arrow::ArrayVector columns(2);
    GLAIVE_RETURN_NOT_OK(rows.Finish(&columns[0]));
    GLAIVE_RETURN_NOT_OK(lengths.Finish(&columns[1]));
    return WriteAtOnce(
        "part_" + id_ + "_docs.lance",
        arrow::schema({Required("_rowid", arrow::uint64()),
                       Required("_num_tokens", arrow::uint32())}),
        {{"total_tokens", std::to_string(partition_.statistics().total_tokens)}},
        columns);
  }

  Status WriteMetadata() {
    Pairs metadata = FormatMetadata(partition_.params());
    metadata.emplace_back("partitions", "[" + id_ + "]");
    metadata.emplace_back("params", ToJson(partition_.params()));
    metadata.emplace_back("token_set_format", "fst");
    // Nobody reads the row; upstream cannot write a file without one.
    arrow::ArrayVector columns(1);
    GLAIVE_ASSIGN_OR_RETURN(columns[0], arrow::MakeArrayOfNull(arrow::utf8(), 1));
    return WriteAtOnce("metadata.lance",
                       arrow::schema({arrow::field("_placeholder", arrow::utf8())}),
                       metadata, columns);
  }

  Status WritePostings(const std::vector<Partition::TokenList>& tokens);

  io::ObjectStore& store_;
  const std::string& directory_;
  const Partition& partition_;
  const std::string id_;
  const file::FileVersion version_;
  std::vector<TextIndexFile> files_;
};

// Columns of the postings, row by row.
class PostingColumns {
 public:
  explicit PostingColumns(bool with_positions) : with_positions_(with_positions) {
    arrow::FieldVector fields = {
        Required("_posting", arrow::list(arrow::large_binary())),
        Required("_max_score", arrow::float32()), Required("_length", arrow::uint32()),
        Required("_impacts", arrow::list(arrow::large_binary()))};
    if (with_positions) {
      fields.push_back(Required("_compressed_position", arrow::large_binary()));
      fields.push_back(Required("_position_block_offset", arrow::list(arrow::uint32())));
    }
    schema_ = arrow::schema(std::move(fields));
  }

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  int64_t num_rows() const { return scores_.length(); }
  int64_t num_bytes() const { return num_bytes_; }

  Status Append(const EncodedPosting& posting, uint32_t num_docs) {
    GLAIVE_RETURN_NOT_OK(AppendParts(posting.blocks, &blocks_));
    GLAIVE_RETURN_NOT_OK(scores_.Append(posting.max_score));
    GLAIVE_RETURN_NOT_OK(counts_.Append(num_docs));
    GLAIVE_RETURN_NOT_OK(AppendParts(posting.impacts, &impacts_));
    if (!with_positions_) return Status::OK();
    GLAIVE_RETURN_NOT_OK(positions_.Append(posting.positions));
    num_bytes_ += static_cast<int64_t>(posting.positions.size());
    GLAIVE_RETURN_NOT_OK(offsets_.Append());
    return offset_values_->AppendValues(posting.position_offsets);
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Take() {
    const int64_t rows = num_rows();
    num_bytes_ = 0;
    arrow::ArrayVector columns(static_cast<size_t>(schema_->num_fields()));
    GLAIVE_RETURN_NOT_OK(blocks_.Finish(&columns[0]));
    GLAIVE_RETURN_NOT_OK(scores_.Finish(&columns[1]));
    GLAIVE_RETURN_NOT_OK(counts_.Finish(&columns[2]));
    GLAIVE_RETURN_NOT_OK(impacts_.Finish(&columns[3]));
    if (with_positions_) {
      GLAIVE_RETURN_NOT_OK(positions_.Finish(&columns[4]));
      GLAIVE_RETURN_NOT_OK(offsets_.Finish(&columns[5]));
    }
    return arrow::RecordBatch::Make(schema_, rows, std::move(columns));
  }

 private:
  using BytesPtr = std::shared_ptr<arrow::LargeBinaryBuilder>;
  static BytesPtr NewBytes() { return std::make_shared<arrow::LargeBinaryBuilder>(); }

  Status AppendParts(const std::vector<std::string>& parts, arrow::ListBuilder* list) {
    GLAIVE_RETURN_NOT_OK(list->Append());
    auto* values = static_cast<arrow::LargeBinaryBuilder*>(list->value_builder());
    for (const std::string& part : parts) {
      GLAIVE_RETURN_NOT_OK(values->Append(part));
      num_bytes_ += static_cast<int64_t>(part.size());
    }
    return Status::OK();
  }

  const bool with_positions_;
  std::shared_ptr<arrow::Schema> schema_;
  arrow::MemoryPool* const pool_ = arrow::default_memory_pool();
  arrow::ListBuilder blocks_{pool_, NewBytes()};
  arrow::FloatBuilder scores_;
  arrow::UInt32Builder counts_;
  arrow::ListBuilder impacts_{pool_, NewBytes()};
  arrow::LargeBinaryBuilder positions_;
  std::shared_ptr<arrow::UInt32Builder> offset_values_ =
      std::make_shared<arrow::UInt32Builder>();
  arrow::ListBuilder offsets_{pool_, offset_values_};
  int64_t num_bytes_ = 0;
};

Status Writer::WritePostings(const std::vector<Partition::TokenList>& tokens) {
  PostingColumns columns(partition_.params().with_position);
  GLAIVE_ASSIGN_OR_RETURN(const FilePtr writer,
                          Create("part_" + id_ + "_invert.lance", *columns.schema(),
                                 FormatMetadata(partition_.params())));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const EncodedPosting posting = partition_.Encode(tokens[i].index);
    GLAIVE_RETURN_NOT_OK(columns.Append(posting, partition_.NumDocs(tokens[i].index)));
    if (columns.num_rows() < kChunkRows && columns.num_bytes() < kChunkBytes &&
        i + 1 < tokens.size()) {
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto batch, columns.Take());
    GLAIVE_RETURN_NOT_OK(writer->Write(*batch));
  }
  return Finish(writer.get());
}

}  // namespace

Result<std::vector<TextIndexFile>> WriteTextIndex(io::ObjectStore& store,
                                                  const std::string& directory,
                                                  const Partition& partition, uint64_t id,
                                                  file::FileVersion version) {
  if (partition.empty()) return InternalError("a full-text index without documents");
  return Writer(store, directory, partition, id, version).Run();
}

}  // namespace glaive::text
