#include "memwal/compact_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/json_columns.h"
#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/keys.h"
#include "runtime/cancel.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

constexpr int64_t kBatchRows = 16384;
constexpr int64_t kBatchBytes = int64_t{4} << 20;
constexpr int64_t kKeyBatchRows = 65536;

// Fields of the base that a generation holds, and where they go.
struct Layout {
  file::Schema read;            // what is read of the generation
  std::vector<int> from_read;   // by output column: its index in `read`, or -1: all null
  std::vector<int> key_fields;  // of the key columns, indices in `read`
  bool has_tombstones = false;  // the last output column is there
};

Result<Layout> PlanLayout(const table::Dataset& base, const table::Dataset& generation,
                          const std::vector<std::string>& key_names) {
  Layout layout;
  const auto where = [&] { return generation.env().store->root(); };
  const file::Field* tombstone = generation.schema().FindTopLevel(kTombstone);
  std::vector<file::Field> read;
  for (const file::Field& field : base.schema().fields()) {
    const file::Field* there = generation.schema().FindById(field.id);
    // A column that was added to the base later may have got the id of the tombstones.
    if (there == nullptr || there == tombstone) {
      layout.from_read.push_back(-1);
      continue;
    }
    if (there->parent_id >= 0 || there->logical_type != field.logical_type) {
      return Corruption("generation ", where(), " has column '", there->name,
                        "' of type ", there->logical_type, ", but the table's column '",
                        field.name, "' is of type ", field.logical_type);
    }
    layout.from_read.push_back(static_cast<int>(read.size()));
    read.push_back(field);
    read.back().nullable = true;  // rows that delete have nothing but their key
  }
  for (const std::string& name : key_names) {
    const auto& fields = base.schema().fields();
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const file::Field& f) { return f.name == name; });
    const auto column = static_cast<size_t>(found - fields.begin());
    if (found == fields.end() || layout.from_read[column] < 0) {
      return Corruption("generation ", where(), " lacks the key column '", name, "'");
    }
    layout.key_fields.push_back(layout.from_read[column]);
  }
  if (tombstone != nullptr) {
    if (tombstone->type->id() != arrow::Type::BOOL) {
      return Corruption("column _tombstone of generation ", where(), " is of type ",
                        tombstone->logical_type);
    }
    layout.has_tombstones = true;
    read.push_back(*tombstone);
    read.back().nullable = true;
  }
  layout.read = file::Schema(std::move(read));
  return layout;
}

// The rows of one generation that are not deleted in it, in pieces.
class GenerationRows {
 public:
  // `columns`: indices in layout.read, or all.
  static Result<std::unique_ptr<GenerationRows>> Open(const table::Dataset& base,
                                                      const std::string& directory,
                                                      const CompactSourceOptions& options,
                                                      bool keys_only) {
    table::TableEnv env;
    env.runtime = base.env().runtime;
    env.store = base.env().store->Child(directory);
    auto rows = std::make_unique<GenerationRows>();
    GLAIVE_ASSIGN_OR_RETURN(rows->dataset_, table::Dataset::Open(std::move(env)));
    GLAIVE_ASSIGN_OR_RETURN(rows->layout_,
                            PlanLayout(base, *rows->dataset_, options.key_names));
    if (keys_only) {
      std::vector<file::Field> keys;
      for (int index : rows->layout_.key_fields) {
        keys.push_back(rows->layout_.read.fields()[static_cast<size_t>(index)]);
      }
      rows->schema_ = file::Schema(std::move(keys));
    } else {
      rows->schema_ = rows->layout_.read;
    }
    return rows;
  }

  const Layout& layout() const { return layout_; }

  // All rows of the next piece, of at most `most_rows`, and where they lie; null at the
  // end.
  struct Piece {
    BatchPtr rows;
    int fragment = 0;
    int64_t start = 0;
    const table::DeletionVector* deletions = nullptr;
  };
  Result<Piece> Next(int64_t most_rows) {
    Piece piece;
    while (true) {
      if (reader_ == nullptr) {
        if (fragment_ == dataset_->num_fragments()) return piece;
        GLAIVE_ASSIGN_OR_RETURN(reader_, dataset_->OpenFragment(fragment_));
        GLAIVE_ASSIGN_OR_RETURN(projection_, reader_->Bind(schema_));
        row_bytes_ = std::max<int64_t>(1, reader_->EstimateRowBytes(projection_));
        offset_ = 0;
      }
      if (offset_ < reader_->physical_rows()) break;
      reader_.reset();
      ++fragment_;
    }
    const int64_t count =
        std::min({most_rows, std::max<int64_t>(1, kBatchBytes / row_bytes_),
                  reader_->physical_rows() - offset_});
    GLAIVE_ASSIGN_OR_RETURN(piece.rows, reader_->ReadRange(projection_, offset_, count));
    piece.fragment = fragment_;
    piece.start = offset_;
    piece.deletions = reader_->deletions();
    offset_ += count;
    return piece;
  }

 private:
  table::Dataset::Ptr dataset_;
  Layout layout_;
  file::Schema schema_;
  int fragment_ = 0;
  std::shared_ptr<const table::FragmentReader> reader_;
  table::FragmentProjection projection_;
  int64_t row_bytes_ = 1;
  int64_t offset_ = 0;
};

// Rows to leave out of a generation: per fragment, physical offsets in ascending order.
using Hidden = std::vector<std::vector<uint32_t>>;

// Adds the keys of one generation to `seen` and notes which of its rows are superseded by
// keys that were there before. False when `limit_bytes` is passed.
Result<bool> NoteKeys(GenerationRows& rows, KeyMap* seen, Hidden* hidden,
                      int64_t* num_hidden, int64_t limit_bytes, CancelToken* cancel) {
  std::vector<EncodedKeys> own;  // a generation does not supersede itself
  std::vector<std::vector<uint8_t>> dead;
  while (true) {
    if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
    GLAIVE_ASSIGN_OR_RETURN(const auto piece, rows.Next(kKeyBatchRows));
    if (piece.rows == nullptr) break;
    const auto fragment = static_cast<size_t>(piece.fragment);
    if (hidden->size() <= fragment) hidden->resize(fragment + 1);
    GLAIVE_ASSIGN_OR_RETURN(EncodedKeys keys, EncodeKeys(piece.rows->columns()));
    for (int64_t i = 0; i < keys.size(); ++i) {
      const auto offset = static_cast<uint32_t>(piece.start + i);
      if (piece.deletions != nullptr && piece.deletions->Contains(offset)) continue;
      if (seen->Find(keys[i]) >= 0) {
        (*hidden)[fragment].push_back(offset);
        ++*num_hidden;
      }
    }
    own.push_back(std::move(keys));
  }
  for (const EncodedKeys& keys : own) {
    for (int64_t i = 0; i < keys.size(); ++i) seen->Put(keys[i], 0);
    if (seen->size_bytes() > limit_bytes) return false;
  }
  return true;
}

class GenerationsReader : public arrow::RecordBatchReader {
 public:
  GenerationsReader(table::Dataset::Ptr base, std::vector<std::string> directories,
                    CompactSourceOptions options, std::vector<Hidden> hidden)
      : base_(std::move(base)),
        directories_(std::move(directories)),
        options_(std::move(options)),
        hidden_(std::move(hidden)) {
    arrow::FieldVector fields;
    for (const auto& field : base_->arrow_schema()->fields()) {
      fields.push_back(arrow::field(field->name(), field->type()));
    }
    if (!options_.key_names.empty()) {
      fields.push_back(arrow::field(kTombstone, arrow::boolean(), /*nullable=*/false));
    }
    schema_ = arrow::schema(std::move(fields));
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(BatchPtr* batch) override {
    GLAIVE_ASSIGN_OR_RETURN(*batch, Next());
    return arrow::Status::OK();
  }

 private:
  Result<BatchPtr> Next() {
    while (true) {
      if (options_.cancel != nullptr) {
        GLAIVE_RETURN_NOT_OK(options_.cancel->CheckOnCaller());
      }
      if (rows_ == nullptr) {
        if (next_ == directories_.size()) return BatchPtr();
        GLAIVE_ASSIGN_OR_RETURN(
            rows_, GenerationRows::Open(*base_, directories_[next_], options_, false));
        ++next_;
      }
      GLAIVE_ASSIGN_OR_RETURN(const auto piece, rows_->Next(kBatchRows));
      if (piece.rows == nullptr) {
        rows_.reset();
        continue;
      }
      GLAIVE_ASSIGN_OR_RETURN(const BatchPtr kept, LeaveOut(piece));
      if (kept->num_rows() > 0) return Shape(kept);
    }
  }

  // Without the rows that are deleted or superseded.
  Result<BatchPtr> LeaveOut(const GenerationRows::Piece& piece) const {
    const std::vector<uint32_t>* hidden = nullptr;
    if (!hidden_.empty()) {
      const Hidden& all = hidden_[next_ - 1];
      const auto fragment = static_cast<size_t>(piece.fragment);
      if (fragment < all.size() && !all[fragment].empty()) hidden = &all[fragment];
    }
    if (hidden == nullptr && piece.deletions == nullptr) return piece.rows;
    std::vector<int64_t> kept;
    kept.reserve(static_cast<size_t>(piece.rows->num_rows()));
    auto next_hidden = hidden == nullptr
                           ? std::vector<uint32_t>::const_iterator()
                           : std::lower_bound(hidden->begin(), hidden->end(),
                                              static_cast<uint32_t>(piece.start));
    for (int64_t i = 0; i < piece.rows->num_rows(); ++i) {
      const auto offset = static_cast<uint32_t>(piece.start + i);
      if (hidden != nullptr && next_hidden != hidden->end() && *next_hidden == offset) {
        ++next_hidden;
        continue;
      }
      if (piece.deletions != nullptr && piece.deletions->Contains(offset)) continue;
      kept.push_back(i);
    }
    if (static_cast<int64_t>(kept.size()) == piece.rows->num_rows()) return piece.rows;
    const arrow::Int64Array indices(static_cast<int64_t>(kept.size()),
                                    arrow::Buffer::Wrap(kept.data(), kept.size()));
    GLAIVE_ASSIGN_OR_RETURN(
        const arrow::Datum taken,
        arrow::compute::Take(piece.rows, indices,
                             arrow::compute::TakeOptions::NoBoundsCheck()));
    return taken.record_batch();
  }

  Result<BatchPtr> Shape(const BatchPtr& rows) const {
    const Layout& layout = rows_->layout();
    arrow::ArrayVector columns;
    for (size_t c = 0; c < layout.from_read.size(); ++c) {
      const auto& type = schema_->field(static_cast<int>(c))->type();
      if (layout.from_read[c] < 0) {
        GLAIVE_ASSIGN_OR_RETURN(auto nulls,
                                arrow::MakeArrayOfNull(type, rows->num_rows()));
        columns.push_back(std::move(nulls));
        continue;
      }
      const int index = layout.from_read[c];
      columns.push_back(rows->column(index));
      const auto stored = layout.read.fields()[static_cast<size_t>(index)].ToArrow();
      if (file::HasStoredJson(*stored)) {
        GLAIVE_ASSIGN_OR_RETURN(columns.back(),
                                file::JsonToUser(columns.back(), *stored));
      }
      if (!columns.back()->type()->Equals(*type)) {
        return NotSupported("merging generations with column '",
                            schema_->field(static_cast<int>(c))->name(), "' of type ",
                            type->ToString(), ", which is stored as ",
                            columns.back()->type()->ToString());
      }
    }
    if (options_.key_names.empty()) {
      return arrow::RecordBatch::Make(schema_, rows->num_rows(), std::move(columns));
    }
    if (!layout.has_tombstones) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto none,
          arrow::MakeArrayFromScalar(arrow::BooleanScalar(false), rows->num_rows()));
      columns.push_back(std::move(none));
    } else {
      columns.push_back(rows->column(rows->num_columns() - 1));
      if (columns.back()->null_count() > 0) {
        return Corruption("column _tombstone of generation ", directories_[next_ - 1],
                          " has nulls");
      }
    }
    return arrow::RecordBatch::Make(schema_, rows->num_rows(), std::move(columns));
  }

  const table::Dataset::Ptr base_;
  const std::vector<std::string> directories_;
  const CompactSourceOptions options_;
  const std::vector<Hidden> hidden_;  // by directory; empty: nothing
  std::shared_ptr<arrow::Schema> schema_;
  size_t next_ = 0;  // directory; the one before is open as rows_
  std::unique_ptr<GenerationRows> rows_;
};

Status CheckColumns(const table::Dataset& base) {
  for (const file::Field& field : base.schema().fields()) {
    if (!field.is_blob()) continue;
    return NotSupported("merging generations with the blob column '", field.name, "'");
  }
  if (base.schema().FindTopLevel(kTombstone) != nullptr) {
    return InvalidInput("a table with an LSM write path cannot have a column named ",
                        kTombstone);
  }
  return Status::OK();
}

}  // namespace

Result<CompactSource> ReadGenerations(const table::Dataset::Ptr& base,
                                      const std::vector<std::string>& directories,
                                      const CompactSourceOptions& options) {
  GLAIVE_RETURN_NOT_OK(CheckColumns(*base));
  CompactSource source;
  source.unique = true;
  std::vector<Hidden> hidden;
  if (!options.key_names.empty() && directories.size() > 1) {
    hidden.resize(directories.size());
    KeyMap seen;
    for (size_t i = directories.size(); i-- > 0 && source.unique;) {
      GLAIVE_ASSIGN_OR_RETURN(const auto rows,
                              GenerationRows::Open(*base, directories[i], options, true));
      GLAIVE_ASSIGN_OR_RETURN(source.unique,
                              NoteKeys(*rows, &seen, &hidden[i], &source.superseded,
                                       options.key_memory_bytes, options.cancel));
    }
  }
  auto order = directories;
  if (!source.unique) {
    hidden.clear();
    source.superseded = 0;
    std::reverse(order.begin(), order.end());
  }
  source.reader = std::make_shared<GenerationsReader>(base, std::move(order), options,
                                                      std::move(hidden));
  return source;
}

}  // namespace glaive::memwal
