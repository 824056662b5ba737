#include "memwal/pk_sidecar.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/file_reader.h"
#include "io/object_store.h"
#include "memwal/btree_files.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

constexpr int64_t kPageRows = 8192;
constexpr int64_t kReadRows = 65536;

Result<ArrayPtr> AsBinary(const EncodedKeys& keys) {
  if (keys.bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidInput("the primary keys of one generation take more than 2 GiB: ",
                        "flush more often");
  }
  GLAIVE_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Buffer> offsets,
      arrow::AllocateBuffer((keys.size() + 1) * static_cast<int64_t>(sizeof(int32_t))));
  auto* out = reinterpret_cast<int32_t*>(offsets->mutable_data());
  out[0] = 0;
  for (size_t i = 0; i < keys.ends.size(); ++i) {
    out[i + 1] = static_cast<int32_t>(keys.ends[i]);
  }
  return std::make_shared<arrow::BinaryArray>(
      keys.size(), std::move(offsets),
      arrow::Buffer::Wrap(keys.bytes.data(), keys.bytes.size()));
}

}  // namespace

Status WritePkSidecar(io::ObjectStore& generation,
                      const std::vector<ArrayPtr>& key_columns) {
  if (key_columns.empty() || key_columns[0]->length() == 0) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const EncodedKeys keys, EncodeKeys(key_columns));
  ArrayPtr values = key_columns[0];
  if (key_columns.size() > 1) {
    GLAIVE_ASSIGN_OR_RETURN(values, AsBinary(keys));
  }
  return WriteBtreeFiles(generation, kPkIndexDir, values, SortedRows(keys),
                         file::FileVersion::k2_0, kPageRows)
      .status();
}

// Collects the live rows of a generation.
class GenerationKeysLoader {
 public:
  GenerationKeysLoader(const table::Dataset& generation,
                       const std::vector<std::string>& key_names)
      : generation_(generation), key_names_(key_names), keys_(new GenerationKeys()) {}

  Result<std::shared_ptr<const GenerationKeys>> Run() {
    if (key_names_.empty()) return InternalError("a generation without key columns");
    keys_->Resize(16);
    if (generation_.num_fragments() == 0) return Finish();
    if (generation_.num_fragments() != 1) {
      return Corruption("generation ", root(), " has ", generation_.num_fragments(),
                        " fragments instead of one");
    }
    rows_ = generation_.physical_rows(0);
    if (rows_ >= int64_t{KeyMap::kNoRow}) {
      return Corruption("generation ", root(), " has ", rows_, " rows");
    }
    GLAIVE_ASSIGN_OR_RETURN(deletions_, generation_.deletions(0));
    // What the manifest says may be wrong; there is more room when there are more keys.
    const int64_t expected = std::clamp<int64_t>(generation_.live_rows(0), 0, 1 << 20);
    keys_->Resize(static_cast<size_t>(expected + expected / 2 + 16));
    keys_->keys_.ends.reserve(static_cast<size_t>(expected));
    keys_->rows_.reserve(static_cast<size_t>(expected));
    const std::string path = std::string(kPkIndexDir) + "/" + kPageDataFile;
    auto opened = generation_.env().store->Open(path);
    Status read;
    if (opened.ok()) {
      read = ReadSidecar(*opened);
    } else if (KindOf(opened.status()) == ErrorKind::kNotFound) {
      read = ReadColumns();
    } else {
      read = opened.status();
    }
    if (!read.ok()) return WithContext(read, "primary keys of generation " + root());
    return Finish();
  }

 private:
  const std::string& root() const { return generation_.env().store->root(); }

  Result<std::shared_ptr<const GenerationKeys>> Finish() {
    keys_->keys_.bytes.shrink_to_fit();
    return std::shared_ptr<const GenerationKeys>(std::move(keys_));
  }

  Result<const file::Field*> KeyField(const std::string& name) const {
    const file::Field* field = generation_.schema().FindTopLevel(name);
    if (field == nullptr) {
      return Corruption("there is no primary key column '", name, "'");
    }
    return field;
  }

  Status ReadSidecar(const std::shared_ptr<io::RandomAccessObject>& object) {
    GLAIVE_ASSIGN_OR_RETURN(const auto reader, file::FileReader::Open(object));
    const std::string names[] = {"values", "ids"};
    auto projection = reader->Project(names);
    if (!projection.ok()) {
      return Corruption(kPageDataFile, ": ", projection.status().message());
    }
    std::shared_ptr<arrow::DataType> type = arrow::binary();
    if (key_names_.size() == 1) {
      GLAIVE_ASSIGN_OR_RETURN(const file::Field* field, KeyField(key_names_[0]));
      type = field->type;
    }
    const file::Schema& schema = projection->schema;
    if (!schema.fields()[0].type->Equals(*type) ||
        schema.fields()[1].type->id() != arrow::Type::UINT64) {
      return Corruption(kPageDataFile, " holds keys of type ",
                        schema.fields()[0].type->ToString(), " instead of ",
                        type->ToString());
    }
    // One that is short would bring replaced rows of older sources back.
    if (reader->num_rows() != rows_) {
      return Corruption(kPageDataFile, " lists ", reader->num_rows(), " rows of ", rows_);
    }
    std::vector<bool> seen(static_cast<size_t>(rows_), false);
    for (int64_t at = 0; at < rows_; at += kReadRows) {
      GLAIVE_ASSIGN_OR_RETURN(
          const auto batch,
          reader->ReadRange(*projection, at, std::min(kReadRows, rows_ - at)));
      const auto& ids = static_cast<const arrow::UInt64Array&>(*batch->column(1));
      if (ids.null_count() > 0) return Corruption(kPageDataFile, " has null ids");
      for (int64_t i = 0; i < ids.length(); ++i) {
        const uint64_t id = ids.Value(i);
        if (id >= static_cast<uint64_t>(rows_) || seen[static_cast<size_t>(id)]) {
          return Corruption(kPageDataFile, " lists row ", id, " of ", rows_,
                            id < static_cast<uint64_t>(rows_) ? " twice" : "");
        }
        seen[static_cast<size_t>(id)] = true;
      }
      const ArrayPtr values = batch->column(0);
      if (key_names_.size() > 1) {
        const auto& encoded = static_cast<const arrow::BinaryArray&>(*values);
        for (int64_t i = 0; i < ids.length(); ++i) {
          GLAIVE_RETURN_NOT_OK(Add(encoded.GetView(i), ids.Value(i)));
        }
        continue;
      }
      GLAIVE_ASSIGN_OR_RETURN(const EncodedKeys keys, EncodeKeys(std::span(&values, 1)));
      for (int64_t i = 0; i < ids.length(); ++i) {
        GLAIVE_RETURN_NOT_OK(Add(keys[i], ids.Value(i)));
      }
    }
    return Status::OK();
  }

  Status ReadColumns() {
    std::vector<std::string> paths;
    for (const std::string& name : key_names_) {
      GLAIVE_RETURN_NOT_OK(KeyField(name).status());
      paths.push_back(file::FormatFieldPath(std::span(&name, 1)));
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto schema, generation_.schema().Project(paths));
    GLAIVE_ASSIGN_OR_RETURN(const auto reader, generation_.OpenFragment(0));
    GLAIVE_ASSIGN_OR_RETURN(const auto projection, reader->Bind(schema));
    for (int64_t at = 0; at < rows_; at += kReadRows) {
      GLAIVE_ASSIGN_OR_RETURN(
          const auto batch,
          reader->ReadRange(projection, at, std::min(kReadRows, rows_ - at)));
      GLAIVE_ASSIGN_OR_RETURN(const EncodedKeys keys, EncodeKeys(batch->columns()));
      for (int64_t i = 0; i < keys.size(); ++i) {
        GLAIVE_RETURN_NOT_OK(Add(keys[i], static_cast<uint64_t>(at + i)));
      }
    }
    return Status::OK();
  }

  Status Add(std::string_view key, uint64_t id) {
    const auto row = static_cast<uint32_t>(id);
    if (deletions_ != nullptr && deletions_->Contains(row)) return Status::OK();
    if (keys_->Add(key, row)) return Status::OK();
    return ResourceExhausted("more than 4 GiB of primary keys: compact the table");
  }

  const table::Dataset& generation_;
  const std::vector<std::string>& key_names_;
  std::shared_ptr<GenerationKeys> keys_;
  int64_t rows_ = 0;
  std::shared_ptr<const table::DeletionVector> deletions_;
};

Result<std::shared_ptr<const GenerationKeys>> GenerationKeys::Load(
    const table::Dataset& generation, const std::vector<std::string>& key_names) {
  return GenerationKeysLoader(generation, key_names).Run();
}

size_t GenerationKeys::Probe(std::string_view key, uint32_t tag) const {
  size_t s = uint64_t{tag} * slots_.size() >> 32;
  while (true) {
    const uint64_t slot = slots_[s];
    if (slot == 0) return s;
    if (static_cast<uint32_t>(slot >> 32) == tag &&
        keys_[int64_t{static_cast<uint32_t>(slot)} - 1] == key) {
      return s;
    }
    if (++s == slots_.size()) s = 0;
  }
}

void GenerationKeys::Resize(size_t num_slots) {
  std::vector<uint64_t> old(num_slots, 0);
  old.swap(slots_);
  for (const uint64_t slot : old) {
    if (slot == 0) continue;
    size_t s = (slot >> 32) * slots_.size() >> 32;
    while (slots_[s] != 0) {
      if (++s == slots_.size()) s = 0;
    }
    slots_[s] = slot;
  }
}

bool GenerationKeys::Add(std::string_view key, uint32_t row) {
  if (4 * (rows_.size() + 1) > 3 * slots_.size()) Resize(2 * slots_.size());
  const auto tag = static_cast<uint32_t>(HashKey(key) >> 32);
  uint64_t& slot = slots_[Probe(key, tag)];
  if (slot != 0) {
    uint32_t& known = rows_[static_cast<uint32_t>(slot) - 1];
    known = std::max(known, row);
    return true;
  }
  if (keys_.bytes.size() + key.size() > std::numeric_limits<uint32_t>::max()) {
    return false;
  }
  keys_.bytes.insert(keys_.bytes.end(), key.begin(), key.end());
  keys_.ends.push_back(static_cast<uint32_t>(keys_.bytes.size()));
  rows_.push_back(row);
  slot = uint64_t{tag} << 32 | rows_.size();
  return true;
}

int64_t GenerationKeys::Find(std::string_view key) const {
  const auto tag = static_cast<uint32_t>(HashKey(key) >> 32);
  const uint64_t slot = slots_[Probe(key, tag)];
  if (slot == 0) return -1;
  return rows_[static_cast<uint32_t>(slot) - 1];
}

int64_t GenerationKeys::size_bytes() const {
  return static_cast<int64_t>(sizeof(*this) + keys_.bytes.capacity() +
                              4 * (keys_.ends.capacity() + rows_.capacity()) +
                              8 * slots_.capacity());
}

}  // namespace glaive::memwal
