#include "table/fragment_reader.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer_builder.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/assemble.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/fork.h"
#include "runtime/runtime.h"
#include "table/data_file.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/fragment_open.h"
#include "table/row_ids.h"

namespace glaive::table {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Ids in DataFile.fields of the columns that hold sequences too long for a manifest.
constexpr int32_t kRowIdField = -3;
constexpr int32_t kCreatedAtField = -4;
constexpr int32_t kLastUpdatedAtField = -5;
constexpr int64_t kReaderOverheadBytes = 1024;

// How much of a field one data file holds.
enum class Coverage : uint8_t { kNone, kSome, kAll };

// The members of `field` that the file has, or nothing. Structs may be split, in lists
// too; maps never are.
Result<std::optional<file::Field>> Restrict(const file::Field& field,
                                            const std::map<int32_t, int32_t>& columns,
                                            bool v2_0, Coverage* coverage) {
  file::Schema alone({field});
  size_t owned = 0, present = 0;
  for (const file::Field* owner : alone.ColumnFields(v2_0)) {
    ++owned;
    present += columns.count(owner->id);
  }
  *coverage = present == 0       ? Coverage::kNone
              : present == owned ? Coverage::kAll
                                 : Coverage::kSome;
  if (*coverage == Coverage::kNone) return std::nullopt;
  if (*coverage == Coverage::kAll) return field;
  const arrow::Type::type kind = field.type->id();
  const bool is_list = kind == arrow::Type::LIST || kind == arrow::Type::LARGE_LIST;
  if ((field.logical_type != "struct" && !is_list) || field.is_packed_struct()) {
    return NotSupported("column '", field.name,
                        "' of which a data file holds only some of the members");
  }
  file::Field part = field;
  part.children.clear();
  arrow::FieldVector types;
  for (const file::Field& child : field.children) {
    Coverage of_child;
    GLAIVE_ASSIGN_OR_RETURN(auto kept, Restrict(child, columns, v2_0, &of_child));
    if (!kept) continue;
    types.push_back(kept->ToArrow());
    part.children.push_back(std::move(*kept));
  }
  if (part.children.empty()) {
    // Only the struct's own column of a 2.0 file: nothing to take from it.
    *coverage = Coverage::kNone;
    return std::nullopt;
  }
  if (is_list) {
    part.type =
        kind == arrow::Type::LIST ? arrow::list(types[0]) : arrow::large_list(types[0]);
  } else {
    part.type = arrow::struct_(std::move(types));
  }
  return part;
}

Result<ArrayPtr> Nulls(const file::Field& field, int64_t rows) {
  if (!field.nullable) {
    return Corruption("column '", field.name,
                      "' is not nullable, but no data file holds it");
  }
  return arrow::MakeArrayOfNull(file::ReadType(field), rows);
}

bool HasBlobs(const file::Field& field) {
  return field.is_blob() ||
         std::any_of(field.children.begin(), field.children.end(), HasBlobs);
}

// The validity of `array` as the bitmap of an array of offset 0; null when no row is
// null.
Result<std::shared_ptr<arrow::Buffer>> ValidityOf(const arrow::Array& array) {
  std::shared_ptr<arrow::Buffer> validity;
  if (array.null_count() == 0) return validity;
  arrow::TypedBufferBuilder<bool> bits;
  GLAIVE_RETURN_NOT_OK(bits.Reserve(array.length()));
  for (int64_t i = 0; i < array.length(); ++i) bits.UnsafeAppend(array.IsValid(i));
  GLAIVE_RETURN_NOT_OK(bits.Finish(&validity));
  return validity;
}

// Says which rows are deleted; null: none.
using DeletedRow = std::function<bool(int64_t row)>;

Result<ArrayPtr> MergeParts(const file::Field& field, const std::vector<ArrayPtr>& parts,
                            int64_t rows, const DeletedRow* deleted);

// The items of `parts` row by row where their lists are of different lengths, which is
// only possible for deleted rows: what a writer puts there is arbitrary.
template <typename ListArray>
Status AlignItems(const file::Field& field, const std::vector<ArrayPtr>& parts,
                  const DeletedRow* deleted, typename ListArray::offset_type* offsets,
                  std::vector<ArrayPtr>* items) {
  const int64_t rows = parts[0]->length();
  std::vector<arrow::TypedBufferBuilder<int64_t>> places(parts.size());
  for (int64_t i = 0; i < rows; ++i) {
    const auto length = static_cast<const ListArray&>(*parts[0]).value_length(i);
    const bool agree = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
      return static_cast<const ListArray&>(*part).value_length(i) == length;
    });
    if (!agree && (deleted == nullptr || !(*deleted)(i))) {
      return Corruption(
          "the data files of one fragment disagree on the lengths of the lists of "
          "column '",
          field.name, "'");
    }
    const auto kept = agree ? length : 0;
    offsets[i + 1] = offsets[i] + kept;
    for (size_t p = 0; p < parts.size(); ++p) {
      const int64_t first = static_cast<const ListArray&>(*parts[p]).value_offset(i);
      for (int64_t k = 0; k < kept; ++k) {
        GLAIVE_RETURN_NOT_OK(places[p].Append(first + k));
      }
    }
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    const int64_t count = places[p].length();
    GLAIVE_ASSIGN_OR_RETURN(auto buffer, places[p].Finish());
    const arrow::Int64Array indices(count, std::move(buffer));
    GLAIVE_ASSIGN_OR_RETURN(
        auto taken, arrow::compute::Take(
                        *static_cast<const ListArray&>(*parts[p]).values(), indices));
    items->push_back(std::move(taken));
  }
  return Status::OK();
}

// One list out of lists whose items each hold some of the members.
template <typename ListArray>
Result<ArrayPtr> MergeLists(const file::Field& field, const std::vector<ArrayPtr>& parts,
                            const DeletedRow* deleted) {
  using Offset = typename ListArray::offset_type;
  const auto& first = static_cast<const ListArray&>(*parts[0]);
  const int64_t rows = first.length();
  GLAIVE_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Buffer> buffer,
      arrow::AllocateBuffer((rows + 1) * static_cast<int64_t>(sizeof(Offset))));
  auto* offsets = reinterpret_cast<Offset*>(buffer->mutable_data());
  for (int64_t i = 0; i <= rows; ++i) {
    offsets[i] = static_cast<Offset>(first.value_offset(i) - first.value_offset(0));
  }
  const bool agree = std::all_of(parts.begin(), parts.end(), [&](const ArrayPtr& part) {
    const auto& list = static_cast<const ListArray&>(*part);
    for (int64_t i = 0; i <= rows; ++i) {
      if (list.value_offset(i) - list.value_offset(0) != offsets[i]) return false;
    }
    return true;
  });
  std::vector<ArrayPtr> items;
  if (agree) {
    for (const ArrayPtr& part : parts) {
      const auto& list = static_cast<const ListArray&>(*part);
      items.push_back(list.values()->Slice(list.value_offset(0), offsets[rows]));
    }
  } else {
    GLAIVE_RETURN_NOT_OK(AlignItems<ListArray>(field, parts, deleted, offsets, &items));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto merged, MergeParts(field.children[0], items, offsets[rows],
                                                  /*deleted=*/nullptr));
  GLAIVE_ASSIGN_OR_RETURN(auto validity, ValidityOf(first));
  return std::make_shared<ListArray>(field.type, rows, std::move(buffer),
                                     std::move(merged), std::move(validity),
                                     first.null_count());
}

// One array out of several that each hold some of the members; all agree on where a
// parent is null.
Result<ArrayPtr> MergeParts(const file::Field& field, const std::vector<ArrayPtr>& parts,
                            int64_t rows, const DeletedRow* deleted) {
  if (parts.size() == 1 && parts[0]->type()->Equals(*file::ReadType(field))) {
    return parts[0];
  }
  if (field.type->id() == arrow::Type::LIST) {
    return MergeLists<arrow::ListArray>(field, parts, deleted);
  }
  if (field.type->id() == arrow::Type::LARGE_LIST) {
    return MergeLists<arrow::LargeListArray>(field, parts, deleted);
  }
  if (field.logical_type != "struct") {
    return Corruption("several data files of one fragment hold column '", field.name,
                      "'");
  }
  arrow::ArrayVector children;
  for (const file::Field& child : field.children) {
    std::vector<ArrayPtr> holders;
    for (const ArrayPtr& part : parts) {
      const auto& holder = static_cast<const arrow::StructArray&>(*part);
      // field() applies the offset of the parent, but not its validity, which is taken
      // over below.
      if (int i = holder.struct_type()->GetFieldIndex(child.name); i >= 0) {
        holders.push_back(holder.field(i));
      }
    }
    ArrayPtr merged;
    if (holders.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(merged, Nulls(child, rows));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(merged, MergeParts(child, holders, rows, deleted));
    }
    children.push_back(std::move(merged));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto validity, ValidityOf(*parts[0]));
  return std::make_shared<arrow::StructArray>(
      field.type, rows, std::move(children), std::move(validity), parts[0]->null_count());
}

class FragmentReaderImpl final : public FragmentReader {
 public:
  FragmentReaderImpl(TableEnv env, std::shared_ptr<FragmentState> state,
                     int64_t physical_rows,
                     std::shared_ptr<const DeletionVector> deletions)
      : runtime_(env.runtime),
        env_(WithoutRuntime(std::move(env))),
        state_(std::move(state)),
        physical_rows_(physical_rows),
        deletions_(std::move(deletions)) {}

  // Reads the field tables of the data files; the files themselves are opened when
  // needed.
  Status Init() {
    const auto& message = state_->message();
    files_.resize(static_cast<size_t>(message.files_size()));
    for (int i = 0; i < message.files_size(); ++i) {
      const auto& file = message.files(i);
      GLAIVE_ASSIGN_OR_RETURN(files_[i].version, DataFileVersionOf(file));
      if (file.fields_size() != file.column_indices_size()) {
        return Corruption("data file ", file.path(), " lists ", file.fields_size(),
                          " fields but ", file.column_indices_size(), " columns");
      }
      for (int k = 0; k < file.fields_size(); ++k) {
        // Negative field ids: tombstones and row lineage; negative columns: no column of
        // its own.
        const int32_t field = file.fields(k);
        if (file.column_indices(k) < 0) continue;
        if (field >= 0 || (field <= kRowIdField && field >= kLastUpdatedAtField)) {
          files_[i].columns[field] = file.column_indices(k);
        }
      }
    }
    return Status::OK();
  }

  int64_t id() const override { return static_cast<int64_t>(state_->message().id()); }
  int64_t physical_rows() const override { return physical_rows_; }
  const DeletionVector* deletions() const override { return deletions_.get(); }

  Result<std::span<const uint64_t>> row_ids() const override {
    std::lock_guard lock(mutex_);
    if (!row_ids_loaded_) {
      GLAIVE_RETURN_NOT_OK(LoadRowIds());
      row_ids_loaded_ = true;
    }
    return std::span<const uint64_t>(row_ids_);
  }

  Result<std::vector<uint64_t>> RowVersions(RowVersion which) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto runs, RowVersionRuns(which));
    std::vector<uint64_t> versions;
    versions.reserve(static_cast<size_t>(physical_rows_));
    for (const RowVersionRun& run : runs) {
      versions.insert(versions.end(), static_cast<size_t>(run.count), run.version);
    }
    return versions;
  }

  Result<std::vector<RowVersionRun>> RowVersionRuns(RowVersion which) const override {
    using lance::table::DataFragment;
    const DataFragment& message = state_->message();
    const bool created = which == RowVersion::kCreatedAt;
    std::vector<RowVersionRun> runs;
    if (created ? message.has_created_at_versions_in_data_file()
                : message.has_last_updated_at_versions_in_data_file()) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto versions,
          created ? ReadLineage(kCreatedAtField, "_row_created_at_version")
                  : ReadLineage(kLastUpdatedAtField, "_row_last_updated_at_version"));
      for (uint64_t version : versions) {
        if (runs.empty() || runs.back().version != version) runs.push_back({0, version});
        ++runs.back().count;
      }
      return runs;
    }
    const std::string& serialized = created ? message.inline_created_at_versions()
                                            : message.inline_last_updated_at_versions();
    if (serialized.empty()) {
      runs.push_back({physical_rows_, 1});
      return runs;
    }
    auto decoded = DecodeRowVersions(serialized, physical_rows_);
    if (!decoded.ok()) {
      return WithContext(decoded.status(), "fragment " + std::to_string(message.id()));
    }
    return decoded;
  }

  Result<FragmentProjection> Bind(const file::Schema& schema) const override {
    FragmentProjection result;
    result.schema = schema;
    result.arrow_schema = schema.ToArrow();
    result.columns.resize(schema.fields().size());
    for (size_t f = 0; f < files_.size(); ++f) {
      std::vector<file::Field> fields;
      const bool v2_0 = files_[f].version == file::FileVersion::k2_0;
      for (size_t c = 0; c < schema.fields().size(); ++c) {
        FragmentProjection::Column& column = result.columns[c];
        if (column.complete) continue;
        Coverage coverage;
        GLAIVE_ASSIGN_OR_RETURN(
            auto part, Restrict(schema.fields()[c], files_[f].columns, v2_0, &coverage));
        if (!part) continue;
        column.sources.push_back(
            {static_cast<int>(result.parts.size()), static_cast<int>(fields.size())});
        column.complete = coverage == Coverage::kAll;
        if (column.complete && column.sources.size() > 1) {
          column.sources = {column.sources.back()};
        }
        fields.push_back(std::move(*part));
      }
      if (fields.empty()) continue;
      FragmentProjection::FilePart part;
      part.file_index = static_cast<int>(f);
      part.projection.schema = file::Schema(std::move(fields));
      for (const file::Field* owner : part.projection.schema.ColumnFields(v2_0)) {
        if (auto it = files_[f].columns.find(owner->id); it != files_[f].columns.end()) {
          part.projection.columns.insert(*it);
        }
      }
      result.parts.push_back(std::move(part));
    }
    result.pass_through =
        result.parts.size() == 1 &&
        result.parts[0].projection.schema.fields().size() == schema.fields().size() &&
        std::all_of(result.columns.begin(), result.columns.end(),
                    [](const auto& column) { return column.complete; });
    return result;
  }

  Result<BatchPtr> ReadRange(const FragmentProjection& projection, int64_t start,
                             int64_t count) const override {
    if (start < 0 || count < 0 || start > physical_rows_ ||
        count > physical_rows_ - start) {
      return InvalidInput("rows [", start, ", ", start, " + ", count, ") of fragment ",
                          id(), ", which has ", physical_rows_);
    }
    const auto deleted = [&](int64_t row) { return IsDeleted(start + row); };
    return Read(projection, count, deleted,
                [&](const file::FileReader& reader, const file::Projection& part) {
                  return reader.ReadRange(part, start, count);
                });
  }

  Result<BatchPtr> Take(const FragmentProjection& projection,
                        std::span<const int64_t> offsets) const override {
    for (int64_t offset : offsets) {
      if (offset < 0 || offset >= physical_rows_) {
        return InvalidInput("row ", offset, " of fragment ", id(), ", which has ",
                            physical_rows_);
      }
    }
    const auto deleted = [&](int64_t row) {
      return IsDeleted(offsets[static_cast<size_t>(row)]);
    };
    return Read(projection, static_cast<int64_t>(offsets.size()), deleted,
                [&](const file::FileReader& reader, const file::Projection& part) {
                  return reader.Take(part, offsets);
                });
  }

  Result<BatchPtr> LoadBlobs(const FragmentProjection& projection,
                             const file::Schema& written,
                             const BatchPtr& batch) const override {
    if (projection.pass_through) {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, File(projection.parts[0].file_index));
      return reader->LoadBlobs(written, batch);
    }
    arrow::ArrayVector arrays = batch->columns();
    arrow::FieldVector fields = batch->schema()->fields();
    for (size_t c = 0; c < projection.columns.size(); ++c) {
      const FragmentProjection::Column& column = projection.columns[c];
      const file::Field& field = written.fields()[c];
      if (!HasBlobs(field)) continue;
      if (column.sources.empty()) {
        GLAIVE_ASSIGN_OR_RETURN(arrays[c],
                                arrow::MakeArrayOfNull(field.type, batch->num_rows()));
        fields[c] = fields[c]->WithType(field.type);
        continue;
      }
      if (!column.complete) {
        return NotSupported("blobs in column '", field.name,
                            "', which lies in several files");
      }
      const auto& part = projection.parts[column.sources[0].part];
      GLAIVE_ASSIGN_OR_RETURN(auto reader, File(part.file_index));
      GLAIVE_ASSIGN_OR_RETURN(
          auto loaded,
          reader->LoadBlobs(file::Schema({field}),
                            arrow::RecordBatch::Make(arrow::schema({fields[c]}),
                                                     batch->num_rows(), {arrays[c]})));
      arrays[c] = loaded->column(0);
      fields[c] = loaded->schema()->field(0);
    }
    return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch->num_rows(),
                                    std::move(arrays));
  }

  Result<std::vector<int64_t>> ScanBoundaries(
      const FragmentProjection& projection) const override {
    std::vector<int64_t> boundaries{0, physical_rows_};
    const FragmentProjection::FilePart* widest = nullptr;
    std::shared_ptr<const file::FileReader> widest_reader;
    int64_t widest_bytes = -1;
    for (const auto& part : projection.parts) {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, File(part.file_index));
      const int64_t bytes = reader->EstimateRowBytes(part.projection);
      if (bytes <= widest_bytes) continue;
      widest_bytes = bytes;
      widest = &part;
      widest_reader = std::move(reader);
    }
    if (widest == nullptr) return boundaries;
    // The widest column is the one that needed the most pages.
    for (const auto& [field, column] : widest->projection.columns) {
      GLAIVE_ASSIGN_OR_RETURN(auto pages, widest_reader->PageBoundaries(column));
      if (pages.size() > boundaries.size()) boundaries = std::move(pages);
    }
    return boundaries;
  }

  int64_t EstimateRowBytes(const FragmentProjection& projection) const override {
    int64_t bytes = 0;
    for (const auto& part : projection.parts) {
      auto reader = File(part.file_index);
      if (reader.ok()) bytes += (*reader)->EstimateRowBytes(part.projection);
    }
    return std::max<int64_t>(bytes, 1);
  }

 private:
  struct FileSlot {
    file::FileVersion version = file::kDefaultFileVersion;
    std::map<int32_t, int32_t> columns;                      // field id -> column
    mutable std::shared_ptr<const file::FileReader> reader;  // guarded by files_mutex_
  };

  Result<std::shared_ptr<const file::FileReader>> File(int index) const {
    std::lock_guard lock(files_mutex_);
    const FileSlot& slot = files_[static_cast<size_t>(index)];
    if (!slot.reader) {
      const auto& file = state_->message().files(index);
      GLAIVE_ASSIGN_OR_RETURN(auto reader, OpenDataFile(Env(), file));
      if (reader->num_rows() != physical_rows_) {
        return Corruption("data file ", file.path(), " of table ", env_.store->root(),
                          " has ", reader->num_rows(), " rows, the manifest says ",
                          physical_rows_);
      }
      slot.reader = std::move(reader);
    }
    return slot.reader;
  }

  // What was decoded from damaged bytes is not kept: the file may be repaired or replaced
  // while this process lives.
  template <typename ReadPart>
  Result<BatchPtr> Read(const FragmentProjection& projection, int64_t rows,
                        const DeletedRow& deleted, ReadPart&& read_part) const {
    auto batch = ReadParts(projection, rows, deleted, std::forward<ReadPart>(read_part));
    if (!batch.ok() && KindOf(batch.status()) == ErrorKind::kCorruption) ForgetFiles();
    return batch;
  }

  bool IsDeleted(int64_t offset) const {
    return deletions_ != nullptr && deletions_->Contains(static_cast<uint32_t>(offset));
  }

  void ForgetFiles() const {
    std::lock_guard lock(files_mutex_);
    for (size_t i = 0; i < files_.size(); ++i) {
      if (!files_[i].reader) continue;
      ForgetDataFile(Env(), state_->message().files(static_cast<int>(i)));
      files_[i].reader.reset();
    }
  }

  template <typename ReadPart>
  Result<BatchPtr> ReadParts(const FragmentProjection& projection, int64_t rows,
                             const DeletedRow& deleted, ReadPart&& read_part) const {
    if (projection.pass_through) {
      const auto& part = projection.parts[0];
      GLAIVE_ASSIGN_OR_RETURN(auto reader, File(part.file_index));
      return read_part(*reader, part.projection);
    }
    std::vector<BatchPtr> batches;
    batches.reserve(projection.parts.size());
    for (const auto& part : projection.parts) {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, File(part.file_index));
      GLAIVE_ASSIGN_OR_RETURN(auto batch, read_part(*reader, part.projection));
      batches.push_back(std::move(batch));
    }
    arrow::ArrayVector arrays;
    arrays.reserve(projection.columns.size());
    for (size_t c = 0; c < projection.columns.size(); ++c) {
      const FragmentProjection::Column& column = projection.columns[c];
      const file::Field& field = projection.schema.fields()[c];
      ArrayPtr array;
      if (column.sources.empty()) {
        GLAIVE_ASSIGN_OR_RETURN(array, Nulls(field, rows));
      } else if (column.complete) {
        const auto& source = column.sources[0];
        array = batches[source.part]->column(source.column);
      } else {
        std::vector<ArrayPtr> parts;
        for (const auto& source : column.sources) {
          parts.push_back(batches[source.part]->column(source.column));
        }
        GLAIVE_ASSIGN_OR_RETURN(array, MergeParts(field, parts, rows, &deleted));
      }
      arrays.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(projection.arrow_schema, rows, std::move(arrays));
  }

  Status LoadRowIds() const {
    const auto& message = state_->message();
    if (message.row_id_sequence_case() == lance::table::DataFragment::kInlineRowIds) {
      auto ids = DecodeRowIds(message.inline_row_ids(), physical_rows_);
      if (!ids.ok()) {
        return WithContext(ids.status(), "fragment " + std::to_string(message.id()));
      }
      row_ids_ = std::move(*ids);
      return Status::OK();
    }
    if (message.row_id_sequence_case() != lance::table::DataFragment::kRowIdsInDataFile) {
      return Status::OK();  // ids are addresses
    }
    GLAIVE_ASSIGN_OR_RETURN(row_ids_, ReadLineage(kRowIdField, "_rowid"));
    return Status::OK();
  }

  // A sequence that stands in a data file: one uint64 per row.
  Result<std::vector<uint64_t>> ReadLineage(int32_t field_id, const char* name) const {
    for (size_t f = 0; f < files_.size(); ++f) {
      const auto column = files_[f].columns.find(field_id);
      if (column == files_[f].columns.end()) continue;
      file::Field field;
      field.name = name;
      field.id = field_id;
      field.logical_type = "uint64";
      field.type = arrow::uint64();
      field.nullable = false;
      file::Projection projection;
      projection.schema = file::Schema({std::move(field)});
      projection.columns.insert(*column);
      GLAIVE_ASSIGN_OR_RETURN(auto reader, File(static_cast<int>(f)));
      GLAIVE_ASSIGN_OR_RETURN(auto batch,
                              reader->ReadRange(projection, 0, physical_rows_));
      if (batch->num_columns() != 1 ||
          batch->column(0)->type_id() != arrow::Type::UINT64 ||
          batch->column(0)->null_count() != 0) {
        return Corruption("column ", name, " of fragment ", id(),
                          " is not of type uint64");
      }
      const auto& values = static_cast<const arrow::UInt64Array&>(*batch->column(0));
      return std::vector<uint64_t>(values.raw_values(),
                                   values.raw_values() + values.length());
    }
    return Corruption("fragment ", id(), " says that ", name,
                      " is in a data file, but none holds it");
  }

  static TableEnv WithoutRuntime(TableEnv env) {
    env.runtime.reset();
    return env;
  }
  TableEnv Env() const {
    TableEnv env = env_;
    env.runtime = runtime_.lock();
    return env;
  }

  // The runtime's cache holds this reader: a strong pointer would keep both for ever.
  const std::weak_ptr<Runtime> runtime_;
  const TableEnv env_;  // without the runtime
  const std::shared_ptr<FragmentState> state_;
  const int64_t physical_rows_;
  const std::shared_ptr<const DeletionVector> deletions_;
  std::vector<FileSlot> files_;
  mutable ForkSafeMutex files_mutex_;
  mutable ForkSafeMutex mutex_;
  mutable bool row_ids_loaded_ = false;
  mutable std::vector<uint64_t> row_ids_;
};

}  // namespace

Result<std::shared_ptr<const DeletionVector>> LoadDeletions(const TableEnv& env,
                                                            FragmentState& state,
                                                            int64_t physical_rows) {
  GLAIVE_RETURN_NOT_OK(state.status());
  std::lock_guard lock(state.mutex);
  if (!state.deletions_loaded) {
    auto loaded = ReadDeletionFile(env, state.message(), physical_rows);
    if (!loaded.ok()) return WithContext(loaded.status(), "table " + env.store->root());
    state.deletions = std::move(*loaded);
    state.deletions_loaded = true;
  }
  return state.deletions;
}

Result<std::shared_ptr<const FragmentReader>> OpenFragmentReader(
    const TableEnv& env, const std::shared_ptr<FragmentState>& state,
    int64_t physical_rows) {
  {
    std::lock_guard lock(state->mutex);
    if (auto reader = state->reader.lock()) return reader;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto deletions, LoadDeletions(env, *state, physical_rows));
  auto reader = std::make_shared<FragmentReaderImpl>(env, state, physical_rows,
                                                     std::move(deletions));
  GLAIVE_RETURN_NOT_OK(reader->Init());
  std::shared_ptr<const FragmentReader> result = reader;
  if (!state->of_view()) {
    const auto bytes =
        kReaderOverheadBytes + static_cast<int64_t>(state->serialized().size()) * 4;
    env.runtime->cache().Put("fragment:" + std::to_string(state->serial()), result,
                             bytes);
  }
  std::lock_guard lock(state->mutex);
  state->reader = result;
  return result;
}

}  // namespace glaive::table
