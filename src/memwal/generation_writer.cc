#include "memwal/generation_writer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/chunked_array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/schema.h"
#include "format/inverted_index.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "memwal/bloom.h"
#include "memwal/btree_files.h"
#include "memwal/pk_sidecar.h"
#include "memwal/text_index_files.h"
#include "memwal/vector_index_files.h"
#include "runtime/runtime.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/fragment_writer.h"
#include "table/names.h"
#include "table/ready_dataset.h"

namespace glaive::memwal {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using lance::table::DataFragment;
using lance::table::IndexMetadata;

constexpr char kIndicesDir[] = "_indices";
constexpr char kBtreeDetails[] = "/lance.table.BTreeIndexDetails";
constexpr int64_t kBtreePageRows = 4096;
// Without content: what is in them is in the index file as well.
constexpr char kVectorDetails[] = "/lance.index.pb.VectorIndexDetails";
constexpr int kVectorIndexVersion = 1;
constexpr char kTextDetails[] = "/lance.table.InvertedIndexDetails";
// The first and only version of a generation, and its only fragment.
constexpr uint64_t kVersion = 1;
constexpr uint32_t kFragment = 0;

// A column of the storage schema, perhaps a member of a struct, of each batch; empty when
// there is none of that name.
Result<arrow::ArrayVector> ColumnParts(const BatchVector& batches,
                                       const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto names, file::ParseFieldPath(path));
  arrow::ArrayVector parts;
  for (const auto& batch : batches) {
    ArrayPtr part = batch->GetColumnByName(names[0]);
    for (size_t i = 1; part != nullptr && i < names.size(); ++i) {
      if (part->type_id() != arrow::Type::STRUCT) return arrow::ArrayVector();
      const auto& parent = static_cast<const arrow::StructArray&>(*part);
      const int child = parent.struct_type()->GetFieldIndex(names[i]);
      if (child < 0) return arrow::ArrayVector();
      // Null where the struct is.
      GLAIVE_ASSIGN_OR_RETURN(part, parent.GetFlattenedField(child));
    }
    if (part == nullptr) return arrow::ArrayVector();
    parts.push_back(std::move(part));
  }
  return parts;
}

// The same as one array; null when there is none of that name.
Result<ArrayPtr> Column(const BatchVector& batches, const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto parts, ColumnParts(batches, path));
  if (parts.empty()) return ArrayPtr();
  if (parts.size() == 1) return parts[0];
  return arrow::Concatenate(parts);
}

// Runs all tasks, on threads of their own if `parallel`: they wait for the disk most of
// the time, and the runtime's threads are for calls that are waited for. The first error.
Status RunSideBySide(const std::vector<std::function<Status()>>& tasks, bool parallel) {
  constexpr size_t kMaxThreads = 4;
  std::vector<Status> results(tasks.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size() && !failed; i = next++) {
      try {
        results[i] = tasks[i]();
      } catch (const std::bad_alloc&) {
        results[i] = ResourceExhausted("out of memory while a generation was written");
      }
      if (!results[i].ok()) failed = true;
    }
  };
  std::vector<std::thread> helpers;
  if (parallel) {
    try {
      for (size_t t = 1; t < std::min(tasks.size(), kMaxThreads); ++t) {
        helpers.emplace_back(work);
      }
    } catch (const std::system_error&) {
      // The system has no thread left: those that run, and this one, do it all.
    }
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const Status& result : results) GLAIVE_RETURN_NOT_OK(result);
  return Status::OK();
}

class GenerationWriter {
 public:
  GenerationWriter(const table::TableEnv& base, std::string directory,
                   const Memtable::View& rows, const GenerationOptions& options)
      : env_{base.runtime, base.store->Child(directory)},
        rows_(rows),
        options_(options),
        indices_(options.btree_indices.size()),
        vector_indices_(options.vector_indices.size()),
        text_indices_(options.text_indices.size()) {}

  Status Run() {
    const FreshSchema& schema = rows_.schema();
    for (const std::string& name : schema.key_names()) {
      const std::string path = file::FormatFieldPath(std::span(&name, 1));
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr column, Column(rows_.batches(), path));
      keys_.push_back(std::move(column));
    }
    // Nothing refers to another file yet, so each part waits for its own disk only.
    std::vector<std::function<Status()>> tasks = {[this] { return WriteData(); }};
    if (!keys_.empty()) {
      tasks.push_back([this] { return WritePkSidecar(*env_.store, keys_); });
    }
    for (size_t i = 0; i < indices_.size(); ++i) {
      tasks.push_back([this, i] { return WriteIndex(i); });
    }
    for (size_t i = 0; i < vector_indices_.size(); ++i) {
      tasks.push_back([this, i] { return WriteVectorIndex(i); });
    }
    for (size_t i = 0; i < text_indices_.size(); ++i) {
      tasks.push_back([this, i] { return WriteTextIndex(i); });
    }
    tasks.push_back([this] { return WriteBloom(); });
    if (!keys_.empty()) {
      tasks.push_back([this] { return WriteDeletions(); });
    }
    GLAIVE_RETURN_NOT_OK(RunSideBySide(tasks, env_.runtime->num_threads() > 1));
    return WriteManifest();
  }

 private:
  Status WriteData() {
    table::FragmentWriterOptions limits;
    limits.version = options_.file_version;
    limits.max_rows_per_file = std::numeric_limits<int64_t>::max();
    limits.max_bytes_per_file = std::numeric_limits<int64_t>::max();
    table::FragmentWriter writer(env_, rows_.schema().generation(), limits);
    for (const auto& batch : rows_.batches()) {
      GLAIVE_RETURN_NOT_OK(writer.Write(*batch));
    }
    GLAIVE_ASSIGN_OR_RETURN(std::vector<DataFragment> fragments, writer.Finish());
    if (fragments.size() != 1) {
      return InternalError("a generation of ", fragments.size(), " files");
    }
    writer.Keep();
    fragment_ = std::move(fragments[0]);
    return Status::OK();
  }

  Status WriteDeletions() {
    const std::vector<uint32_t> superseded = rows_.Superseded();
    if (superseded.empty()) return Status::OK();
    const auto vector = table::DeletionVector::FromOffsets(superseded);
    // A bitmap always, as upstream's flush writes it.
    GLAIVE_ASSIGN_OR_RETURN(const auto file,
                            table::WriteDeletionFile(*env_.store, kFragment, kVersion,
                                                     *vector, /*always_bitmap=*/true));
    deletions_ = std::make_unique<lance::table::DeletionFile>(file);
    return Status::OK();
  }

  Status WriteBloom() {
    KeyBloom bloom;
    if (keys_.empty()) {
      bloom.InsertKeyless();
    } else {
      bloom.Insert(keys_);
    }
    return env_.store->Put(kBloomFile, bloom.ToBytes());
  }

  Status WriteIndex(size_t i) {
    const auto& [name, path] = options_.btree_indices[i];
    GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr column, Column(rows_.batches(), path));
    if (column == nullptr) return UnknownColumn(name, path);
    auto keys = SortKeys(column);
    if (!keys.ok()) return WithContext(keys.status(), "index '" + name + "'");
    const std::string uuid = table::NewUuidBytes();
    GLAIVE_ASSIGN_OR_RETURN(
        const BtreeFiles files,
        WriteBtreeFiles(*env_.store,
                        std::string(kIndicesDir) + "/" + table::FormatUuid(uuid), column,
                        SortedRows(*keys), file::FileVersion::k2_2, kBtreePageRows));

    GLAIVE_ASSIGN_OR_RETURN(indices_[i], Entry(uuid, name, path, kBtreeDetails, 0));
    IndexMetadata& index = indices_[i];
    const auto add_file = [&](const char* path_in_index, int64_t size) {
      auto* file = index.add_files();
      file->set_path(path_in_index);
      file->set_size_bytes(static_cast<uint64_t>(size));
    };
    add_file(kPageDataFile, files.data_bytes);
    add_file(kPageLookupFile, files.lookup_bytes);
    return Status::OK();
  }

  // Left out when there is no vector to find.
  Status WriteVectorIndex(size_t i) {
    const GenerationVectorIndex& wanted = options_.vector_indices[i];
    GLAIVE_ASSIGN_OR_RETURN(auto parts, ColumnParts(rows_.batches(), wanted.column));
    if (parts.empty()) return UnknownColumn(wanted.name, wanted.column);
    const std::string uuid = table::NewUuidBytes();
    GLAIVE_ASSIGN_OR_RETURN(
        const bool any,
        WriteVectorIndexFiles(
            *env_.store, std::string(kIndicesDir) + "/" + table::FormatUuid(uuid),
            arrow::ChunkedArray(std::move(parts)), wanted.metric, options_.file_version));
    if (!any) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(
        vector_indices_[i],
        Entry(uuid, wanted.name, wanted.column, kVectorDetails, kVectorIndexVersion));
    return Status::OK();
  }

  // Left out when there is no token to find.
  Status WriteTextIndex(size_t i) {
    const GenerationTextIndex& wanted = options_.text_indices[i];
    GLAIVE_ASSIGN_OR_RETURN(auto parts, ColumnParts(rows_.batches(), wanted.column));
    if (parts.empty()) return UnknownColumn(wanted.name, wanted.column);
    const std::string uuid = table::NewUuidBytes();
    // The version of files that upstream gives its own, whatever the table's.
    auto any = WriteTextIndexFiles(
        *env_.store, std::string(kIndicesDir) + "/" + table::FormatUuid(uuid),
        arrow::ChunkedArray(std::move(parts)), wanted.params, file::FileVersion::k2_0,
        env_.runtime->memory());
    if (!any.ok()) return WithContext(any.status(), "index '" + wanted.name + "'");
    if (!*any) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(
        text_indices_[i],
        Entry(uuid, wanted.name, wanted.column, kTextDetails, text::kTextIndexVersion));
    text_indices_[i]->mutable_index_details()->set_value(
        text::ToDetails(wanted.params).SerializeAsString());
    return Status::OK();
  }

  static Status UnknownColumn(const std::string& index, const std::string& path) {
    return InvalidInput("index '", index, "' is over column '", path,
                        "', which the shard's writer does not know: open it again");
  }

  // An index of all rows, as the manifest lists it.
  Result<IndexMetadata> Entry(const std::string& uuid, const std::string& name,
                              const std::string& path, const char* details,
                              int version) const {
    const auto names = file::ParseFieldPath(path);
    const file::Field* field =
        names.ok() ? rows_.schema().generation().FindByPath(*names) : nullptr;
    if (field == nullptr) return UnknownColumn(name, path);
    IndexMetadata index;
    index.mutable_uuid()->set_uuid(uuid);
    index.add_fields(field->id);
    index.set_name(name);
    index.set_dataset_version(kVersion);
    const std::vector<uint8_t> covered =
        table::DeletionVector::FromOffsets(std::span(&kFragment, 1))->ToBitmap();
    index.set_fragment_bitmap(covered.data(), covered.size());
    index.mutable_index_details()->set_type_url(details);
    index.set_index_version(version);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    index.set_created_at(static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
    return index;
  }

  Status WriteManifest() {
    table::ReadyDataset ready;
    ready.schema = rows_.schema().generation();
    ready.file_version = options_.file_version;
    if (deletions_ != nullptr) *fragment_.mutable_deletion_file() = *deletions_;
    ready.fragments.push_back(std::move(fragment_));
    lance::table::IndexSection section;
    for (IndexMetadata& index : indices_) *section.add_indices() = std::move(index);
    for (auto* indices : {&text_indices_, &vector_indices_}) {
      for (std::optional<IndexMetadata>& index : *indices) {
        if (index) *section.add_indices() = std::move(*index);
      }
    }
    if (section.indices_size() > 0) ready.index_section = section.SerializeAsString();
    return table::CreateReadyDataset(env_, ready);
  }

  const table::TableEnv env_;  // of the generation
  const Memtable::View& rows_;
  const GenerationOptions& options_;
  std::vector<ArrayPtr> keys_;
  DataFragment fragment_;
  std::unique_ptr<lance::table::DeletionFile> deletions_;
  std::vector<IndexMetadata> indices_;  // as options_.btree_indices
  // As options_.vector_indices; unset: no vectors.
  std::vector<std::optional<IndexMetadata>> vector_indices_;
  std::vector<std::optional<IndexMetadata>> text_indices_;  // unset: no tokens
};

}  // namespace

Result<lance::table::SsTable> WriteGeneration(const table::TableEnv& base,
                                              const ShardId& shard,
                                              const Memtable::View& rows,
                                              const GenerationOptions& options) {
  if (rows.num_rows() == 0) return InvalidInput("Cannot flush empty MemTable");
  const std::string name = NewGenerationName(rows.generation());
  const std::string directory = ShardDir(shard) + "/" + name;
  // Eight random digits: should they name what somebody else wrote, it must not suffer.
  GLAIVE_ASSIGN_OR_RETURN(const auto there, base.store->List(directory, false));
  if (!there.empty()) return AlreadyExists("generation ", directory, ": flush again");
  Status written = GenerationWriter(base, directory, rows, options).Run();
  if (!written.ok()) {
    Status ignored = base.store->DeleteTree(directory);
    static_cast<void>(ignored.ok());
    return WithContext(written, "generation " + directory);
  }
  lance::table::SsTable sstable;
  sstable.set_generation(rows.generation());
  sstable.set_path(name);
  sstable.set_in_memory_bytes(static_cast<uint64_t>(rows.row_bytes()));
  sstable.set_physical_rows(static_cast<uint64_t>(rows.num_rows()));
  if (!rows.schema().key_columns().empty()) {
    sstable.set_primary_key_bytes(static_cast<uint64_t>(rows.key_bytes()));
  }
  return sstable;
}

}  // namespace glaive::memwal
