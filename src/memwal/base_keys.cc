#include "memwal/base_keys.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <arrow/record_batch.h>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {
namespace {

constexpr int64_t kScanRows = 65536;
constexpr int64_t kMostBytes = int64_t{512} << 20;

// The data files of a fragment that hold one of `ids`.
std::string FilesOf(const lance::table::DataFragment& fragment,
                    const std::vector<int32_t>& ids) {
  std::string files;
  for (const auto& file : fragment.files()) {
    const bool holds = std::any_of(ids.begin(), ids.end(), [&](int32_t id) {
      return std::find(file.fields().begin(), file.fields().end(), id) !=
             file.fields().end();
    });
    if (!holds) continue;
    files += file.path();
    if (file.has_base_id()) files += '@' + std::to_string(file.base_id());
    files += '|';
  }
  for (int32_t id : ids) files += std::to_string(id) + ',';
  return files;
}

}  // namespace

Result<std::shared_ptr<const BaseKeys>> BaseKeys::Make(
    const table::Dataset& base, const std::vector<std::string>& key_columns,
    int64_t max_bytes) {
  std::shared_ptr<BaseKeys> keys(new BaseKeys());
  std::vector<file::Field> fields;
  std::vector<int32_t> ids;
  for (const std::string& name : key_columns) {
    const file::Field* field = base.schema().FindTopLevel(name);
    if (field == nullptr) {
      return InvalidInput("table ", base.env().store->root(), " has no key column '",
                          name, "'");
    }
    fields.push_back(*field);
    ids.push_back(field->id);
  }
  keys->key_columns_ = file::Schema(std::move(fields));
  const int fragments = base.num_fragments();
  keys->files_.reserve(static_cast<size_t>(fragments));
  int64_t rows = 0;
  for (int i = 0; i < fragments; ++i) {
    keys->files_.push_back(FilesOf(base.fragment(i), ids));
    rows += base.physical_rows(i);
  }
  if (max_bytes == 0) {
    max_bytes = std::min(kMostBytes, base.env().runtime->memory().limit_bytes() / 4);
  }
  keys->indexed_ = FileKeys::EstimateBytes(keys->key_columns_, rows) <= max_bytes;
  keys->indices_.resize(static_cast<size_t>(fragments));
  return keys;
}

Result<std::vector<std::shared_ptr<const FileKeys>>> BaseKeys::Indices(
    const table::Dataset& base, const std::vector<int>& fragments) const {
  std::vector<std::shared_ptr<const FileKeys>> found(fragments.size());
  std::vector<size_t> missing;
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < fragments.size(); ++i) {
      found[i] = indices_[static_cast<size_t>(fragments[i])];
      if (found[i] == nullptr) missing.push_back(i);
    }
  }
  if (missing.empty()) return found;
  Runtime& runtime = *base.env().runtime;
  GLAIVE_RETURN_NOT_OK(
      runtime.ParallelFor(static_cast<int64_t>(missing.size()), [&](int64_t m) -> Status {
        const size_t i = missing[static_cast<size_t>(m)];
        const std::string key =
            "lsm-keys:" + base.env().store->root() + "/" + file_of(fragments[i]);
        found[i] = runtime.cache().Get<FileKeys>(key);
        if (found[i] != nullptr) return Status::OK();
        GLAIVE_ASSIGN_OR_RETURN(auto reader, base.OpenFragment(fragments[i]));
        GLAIVE_ASSIGN_OR_RETURN(found[i],
                                FileKeys::Build(runtime, *reader, key_columns_));
        runtime.cache().Put(key, found[i], found[i]->size_bytes());
        return Status::OK();
      }));
  std::lock_guard lock(mutex_);
  for (const size_t i : missing) indices_[static_cast<size_t>(fragments[i])] = found[i];
  return found;
}

Result<std::vector<std::vector<uint32_t>>> BaseKeys::Matching(
    const table::Dataset& base, const std::vector<int>& fragments,
    const EncodedKeys& keys) const {
  std::vector<std::vector<uint32_t>> offsets(fragments.size());
  if (keys.size() == 0 || fragments.empty()) return offsets;
  if (!indexed_) return ScanMatching(base, fragments, keys);
  auto indices = Indices(base, fragments);
  if (!indices.ok() && KindOf(indices.status()) == ErrorKind::kResourceExhausted) {
    return ScanMatching(base, fragments, keys);
  }
  GLAIVE_RETURN_NOT_OK(indices.status());
  const auto probe = [&](int64_t i) -> Status {
    std::vector<uint32_t>& found = offsets[static_cast<size_t>(i)];
    const FileKeys& index = *(*indices)[static_cast<size_t>(i)];
    for (int64_t k = 0; k < keys.size(); ++k) {
      index.Find(keys[k], [&](uint32_t offset) { found.push_back(offset); });
    }
    std::sort(found.begin(), found.end());
    return Status::OK();
  };
  constexpr int64_t kInline = 256;
  const auto count = static_cast<int64_t>(fragments.size());
  if (keys.size() * count <= kInline) {
    for (int64_t i = 0; i < count; ++i) GLAIVE_RETURN_NOT_OK(probe(i));
  } else {
    GLAIVE_RETURN_NOT_OK(base.env().runtime->ParallelFor(count, probe));
  }
  return offsets;
}

Result<std::vector<std::vector<uint32_t>>> BaseKeys::ScanMatching(
    const table::Dataset& base, const std::vector<int>& fragments,
    const EncodedKeys& keys) const {
  KeyMap wanted;
  wanted.Reserve(keys.size());
  for (int64_t k = 0; k < keys.size(); ++k) {
    wanted.Put(keys[k], static_cast<uint32_t>(k));
  }
  struct Piece {
    size_t fragment;
    int64_t begin, count;
    std::vector<uint32_t> offsets;
  };
  std::vector<Piece> pieces;
  for (size_t i = 0; i < fragments.size(); ++i) {
    const int64_t rows = base.physical_rows(fragments[i]);
    for (int64_t begin = 0; begin < rows; begin += kScanRows) {
      pieces.push_back({i, begin, std::min(kScanRows, rows - begin), {}});
    }
  }
  GLAIVE_RETURN_NOT_OK(base.env().runtime->ParallelFor(
      static_cast<int64_t>(pieces.size()), [&](int64_t p) -> Status {
        Piece& piece = pieces[static_cast<size_t>(p)];
        GLAIVE_ASSIGN_OR_RETURN(auto reader,
                                base.OpenFragment(fragments[piece.fragment]));
        GLAIVE_ASSIGN_OR_RETURN(const auto projection, reader->Bind(key_columns_));
        GLAIVE_ASSIGN_OR_RETURN(auto batch,
                                reader->ReadRange(projection, piece.begin, piece.count));
        GLAIVE_ASSIGN_OR_RETURN(const EncodedKeys rows, EncodeKeys(batch->columns()));
        for (int64_t r = 0; r < rows.size(); ++r) {
          if (wanted.Find(rows[r]) >= 0) {
            piece.offsets.push_back(static_cast<uint32_t>(piece.begin + r));
          }
        }
        return Status::OK();
      }));
  std::vector<std::vector<uint32_t>> offsets(fragments.size());
  for (const Piece& piece : pieces) {
    auto& all = offsets[piece.fragment];
    all.insert(all.end(), piece.offsets.begin(), piece.offsets.end());
  }
  return offsets;
}

Result<std::vector<std::optional<BaseKeys::Place>>> BaseKeys::FindLive(
    const table::Dataset& base, const EncodedKeys& keys) const {
  std::vector<std::optional<Place>> places(static_cast<size_t>(keys.size()));
  std::vector<int> fragments(files_.size());
  std::iota(fragments.begin(), fragments.end(), 0);
  std::vector<std::shared_ptr<const table::DeletionVector>> deletions(files_.size());
  // Read when a row of the fragment is found.
  const auto is_live = [&](int fragment, uint32_t offset) -> Result<bool> {
    auto& vector = deletions[static_cast<size_t>(fragment)];
    if (vector == nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(vector, base.deletions(fragment));
    }
    return vector == nullptr || !vector->Contains(offset);
  };
  bool scan = !indexed_;
  std::vector<std::shared_ptr<const FileKeys>> indices;
  if (!scan) {
    auto built = Indices(base, fragments);
    if (built.ok()) {
      indices = std::move(*built);
    } else if (KindOf(built.status()) == ErrorKind::kResourceExhausted) {
      scan = true;
    } else {
      return built.status();
    }
  }
  if (!scan) {
    for (int64_t k = 0; k < keys.size(); ++k) {
      auto& place = places[static_cast<size_t>(k)];
      for (size_t f = 0; f < indices.size() && !place; ++f) {
        Status status;
        indices[f]->Find(keys[k], [&](uint32_t offset) {
          if (place || !status.ok()) return;
          auto live = is_live(static_cast<int>(f), offset);
          if (!live.ok()) {
            status = live.status();
          } else if (*live) {
            place = Place{static_cast<int>(f), offset};
          }
        });
        GLAIVE_RETURN_NOT_OK(status);
      }
    }
    return places;
  }
  // Which key each row found has: read again, as there are few of them.
  GLAIVE_ASSIGN_OR_RETURN(const auto matching, ScanMatching(base, fragments, keys));
  KeyMap wanted;
  for (int64_t k = 0; k < keys.size(); ++k) {
    wanted.Put(keys[k], static_cast<uint32_t>(k));
  }
  for (size_t f = 0; f < matching.size(); ++f) {
    if (matching[f].empty()) continue;
    const int fragment = static_cast<int>(f);
    GLAIVE_ASSIGN_OR_RETURN(auto reader, base.OpenFragment(fragment));
    GLAIVE_ASSIGN_OR_RETURN(const auto projection, reader->Bind(key_columns_));
    const std::vector<int64_t> offsets(matching[f].begin(), matching[f].end());
    GLAIVE_ASSIGN_OR_RETURN(auto batch, reader->Take(projection, offsets));
    GLAIVE_ASSIGN_OR_RETURN(const EncodedKeys rows, EncodeKeys(batch->columns()));
    for (int64_t r = 0; r < rows.size(); ++r) {
      const int64_t key = wanted.Find(rows[r]);
      if (key < 0) continue;
      auto& place = places[static_cast<size_t>(key)];
      if (place) continue;
      const uint32_t offset = matching[f][static_cast<size_t>(r)];
      GLAIVE_ASSIGN_OR_RETURN(const bool live, is_live(fragment, offset));
      if (live) place = Place{fragment, offset};
    }
  }
  // A key that was asked for twice was found for its last mention.
  for (int64_t k = 0; k < keys.size(); ++k) {
    places[static_cast<size_t>(k)] = places[static_cast<size_t>(wanted.Find(keys[k]))];
  }
  return places;
}

}  // namespace glaive::memwal
