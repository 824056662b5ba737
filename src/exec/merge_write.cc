#include "exec/merge_write.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>

#include "exec/fragment_rows.h"
#include "exec/moved_rows.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/data_file.h"

namespace glaive::exec {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Source rows that are worked on at a time.
constexpr int64_t kPieceRows = 65536;
constexpr int64_t kPieceBytes = int64_t{8} << 20;
// Up to so many inserted keys are listed in the transaction; beyond, any other writer
// that inserts is taken for one of the same key.
constexpr size_t kMaxListedKeys = 8192;

Result<BatchPtr> TakeBatch(const BatchPtr& batch, const std::vector<int64_t>& rows) {
  bool all = static_cast<int64_t>(rows.size()) == batch->num_rows();
  for (size_t i = 0; all && i < rows.size(); ++i) {
    all = rows[i] == static_cast<int64_t>(i);
  }
  if (all) return batch;
  const arrow::Int64Array indices(static_cast<int64_t>(rows.size()),
                                  arrow::Buffer::Wrap(rows.data(), rows.size()));
  GLAIVE_ASSIGN_OR_RETURN(
      arrow::Datum taken,
      arrow::compute::Take(batch, indices, arrow::compute::TakeOptions::NoBoundsCheck()));
  return taken.record_batch();
}

bool PlaceBefore(const Match& a, const Match& b) {
  return a.fragment != b.fragment ? a.fragment < b.fragment : a.offset < b.offset;
}
bool SamePlace(const Match& a, const Match& b) {
  return a.fragment == b.fragment && a.offset == b.offset;
}

}  // namespace

struct MergeWriter::Impl {
  Impl(const table::Dataset& dataset_in, const MergeSource& source_in,
       const MergeOptions& options_in, const UpdateCondition* condition_in)
      : dataset(dataset_in),
        source(source_in),
        options(options_in),
        condition(condition_in),
        state(SnapshotState::Of(dataset_in)),
        identity(dataset_in) {}

  Status Prepare();
  Status WritePiece(const BatchPtr& piece, int64_t first_row, const Matches& matches,
                    const KeyCodec& codec);
  Result<PairPlaces> PlacesOf(std::span<const Match> pairs);
  Result<std::vector<Match>> ChooseUpdates(const BatchPtr& piece, int64_t first_row,
                                           std::span<const Match> pairs);
  Result<std::vector<Match>> RemoveDead(const arrow::BooleanArray& dead,
                                        int64_t first_row, std::span<const Match> pairs);
  Status WriteUpdates(const BatchPtr& piece, int64_t first_row,
                      std::vector<Match> updates);
  Status WriteUpdateRows(const BatchPtr& piece, int64_t first_row,
                         std::vector<Match> updates);
  Status WriteInserts(const BatchPtr& piece, const std::vector<int64_t>& rows);
  Status NoteInsertedKeys(const BatchPtr& piece, const std::vector<int64_t>& rows,
                          const KeyCodec& codec);
  Result<BatchPtr> ReadTarget(const BoundColumns& columns, std::span<const Match> pairs,
                              bool to_rewrite);
  Result<const FragmentRows*> Fragment(int index);
  Status Finish(const Matches& matches, table::RowUpdate* update, MergeResult* result);
  std::string KeyFilter(const KeyCodec& codec) const;

  const table::Dataset& dataset;
  const MergeSource& source;
  const MergeOptions& options;
  const UpdateCondition* const condition;
  const std::shared_ptr<const SnapshotState> state;

  // By column of the table: its index in the source, or -1.
  std::vector<int> from_source;
  std::vector<int> given_columns;               // of the source, in the table's order
  std::shared_ptr<arrow::Schema> given_schema;  // their fields, for the writer
  std::shared_ptr<arrow::Schema> full_schema;   // of all columns
  std::unique_ptr<BoundColumns> missing;        // columns that the source lacks
  std::unique_ptr<BoundColumns> kept_blobs;     // those of them with blobs, if any
  std::unique_ptr<table::FragmentWriter> updates;
  std::unique_ptr<table::FragmentWriter> inserts;
  table::FragmentWriter* insert_writer = nullptr;  // one of the two
  bool insert_full = false;                        // inserted rows get all columns

  std::map<int, FragmentRows> fragments;
  MovedIdentity identity;
  std::vector<Match> replaced;  // pairs that were written
  std::vector<Match> removed;   // rows that go without one in their place
  size_t next_pair = 0;
  int64_t num_inserted = 0;
  std::vector<uint64_t> inserted_keys;
  bool many_inserted_keys = false;
};

Status MergeWriter::Impl::Prepare() {
  const auto stored = dataset.schema().ToArrow();
  const auto shown = dataset.arrow_schema();
  std::vector<file::Field> given;
  std::vector<file::Field> absent;
  arrow::FieldVector given_fields;
  arrow::FieldVector full_fields;
  for (int c = 0; c < stored->num_fields(); ++c) {
    const file::Field& field = dataset.schema().fields()[static_cast<size_t>(c)];
    const int index = source.schema()->GetFieldIndex(field.name);
    from_source.push_back(index);
    if (index >= 0) {
      given.push_back(field);
      given_columns.push_back(index);
      given_fields.push_back(shown->field(c));
      full_fields.push_back(shown->field(c));
    } else {
      absent.push_back(field);
      full_fields.push_back(stored->field(c));
    }
  }
  given_schema = arrow::schema(std::move(given_fields));
  full_schema = arrow::schema(std::move(full_fields));
  table::FragmentWriterOptions limits;
  std::vector<file::Field> with_blobs;
  for (const file::Field& field : absent) {
    if (!HoldsBlobs(field)) continue;
    with_blobs.push_back(field);
    limits.outside_blob_fields.push_back(field.id);
  }
  if (!with_blobs.empty()) {
    kept_blobs = std::make_unique<BoundColumns>(file::Schema(std::move(with_blobs)),
                                                dataset.num_fragments());
  }
  missing = std::make_unique<BoundColumns>(file::Schema(std::move(absent)),
                                           dataset.num_fragments());
  limits.version = options.file_version.value_or(dataset.file_version());
  if (options.matched == MatchedAction::kUpdate) {
    updates =
        std::make_unique<table::FragmentWriter>(dataset.env(), dataset.schema(), limits);
  }
  if (options.insert_not_matched) {
    // Rows that keep an id and rows that get one must not share a fragment.
    if (updates != nullptr && !dataset.has_stable_row_ids()) {
      insert_writer = updates.get();
      insert_full = true;
    } else {
      inserts = std::make_unique<table::FragmentWriter>(
          dataset.env(), file::Schema(std::move(given), dataset.schema().metadata()),
          limits);
      insert_writer = inserts.get();
    }
  }
  return Status::OK();
}

Result<const FragmentRows*> MergeWriter::Impl::Fragment(int index) {
  auto found = fragments.find(index);
  if (found == fragments.end()) {
    GLAIVE_ASSIGN_OR_RETURN(auto rows, FragmentRows::Open(dataset, *state, index));
    found = fragments.emplace(index, std::move(rows)).first;
  }
  return &found->second;
}

// Rows of the table at the places of `pairs`, which are in the order of places.
Result<BatchPtr> MergeWriter::Impl::ReadTarget(const BoundColumns& columns,
                                               std::span<const Match> pairs,
                                               bool to_rewrite) {
  struct Group {
    const FragmentRows* fragment;
    std::vector<uint32_t> offsets;
    BatchPtr rows;
  };
  std::vector<Group> groups;
  for (const Match& pair : pairs) {
    if (groups.empty() || groups.back().fragment->index != pair.fragment) {
      GLAIVE_ASSIGN_OR_RETURN(const FragmentRows* fragment, Fragment(pair.fragment));
      groups.push_back({fragment, {}, nullptr});
    }
    groups.back().offsets.push_back(pair.offset);
  }
  GLAIVE_RETURN_NOT_OK(dataset.env().runtime->ParallelFor(
      static_cast<int64_t>(groups.size()),
      [&](int64_t g) -> Status {
        Group& group = groups[static_cast<size_t>(g)];
        if (to_rewrite) {
          const int64_t start = group.offsets.front();
          const int64_t count = int64_t{group.offsets.back()} + 1 - start;
          GLAIVE_ASSIGN_OR_RETURN(group.rows, ReadToRewrite(*group.fragment, columns,
                                                            start, count, group.offsets));
        } else {
          const std::vector<int64_t> offsets(group.offsets.begin(), group.offsets.end());
          GLAIVE_ASSIGN_OR_RETURN(group.rows, group.fragment->Take(columns, offsets));
        }
        return Status::OK();
      },
      options.cancel));
  if (groups.size() == 1) return groups[0].rows;
  arrow::ArrayVector joined;
  for (int c = 0; c < groups[0].rows->num_columns(); ++c) {
    arrow::ArrayVector parts;
    for (const Group& group : groups) parts.push_back(group.rows->column(c));
    GLAIVE_ASSIGN_OR_RETURN(auto array, arrow::Concatenate(parts));
    joined.push_back(std::move(array));
  }
  return arrow::RecordBatch::Make(groups[0].rows->schema(),
                                  static_cast<int64_t>(pairs.size()), std::move(joined));
}

// What the condition needs to know of where the rows of the table are.
Result<PairPlaces> MergeWriter::Impl::PlacesOf(std::span<const Match> pairs) {
  PairPlaces places;
  if (!condition->needs_place[0] && !condition->needs_place[1]) return places;
  const FragmentRows* fragment = nullptr;
  std::span<const uint64_t> ids;
  for (const Match& pair : pairs) {
    if (fragment == nullptr || fragment->index != pair.fragment) {
      GLAIVE_ASSIGN_OR_RETURN(fragment, Fragment(pair.fragment));
      GLAIVE_ASSIGN_OR_RETURN(ids, fragment->RowIds());
    }
    const uint64_t address = (static_cast<uint64_t>(fragment->id) << 32) | pair.offset;
    places.addresses.push_back(address);
    if (!ids.empty() && pair.offset >= ids.size()) {
      return Corruption("fragment ", fragment->id, " has fewer row ids than rows");
    }
    places.ids.push_back(ids.empty() ? address : ids[pair.offset]);
  }
  return places;
}

// The pairs that the condition lets through. When rows of the table have to be read, in
// the order of their places.
Result<std::vector<Match>> MergeWriter::Impl::ChooseUpdates(
    const BatchPtr& piece, int64_t first_row, std::span<const Match> pairs) {
  std::vector<Match> chosen(pairs.begin(), pairs.end());
  if (chosen.empty()) return chosen;
  if (condition != nullptr || !missing->empty()) {
    std::stable_sort(chosen.begin(), chosen.end(), PlaceBefore);
  }
  if (condition == nullptr) return chosen;
  BatchPtr source_rows;
  if (!condition->source_columns.empty()) {
    std::vector<int64_t> rows;
    for (const Match& pair : chosen) rows.push_back(pair.source - first_row);
    GLAIVE_ASSIGN_OR_RETURN(auto needed, piece->SelectColumns(condition->source_columns));
    GLAIVE_ASSIGN_OR_RETURN(source_rows, TakeBatch(needed, rows));
  }
  BatchPtr target_rows;
  if (!condition->target->empty()) {
    GLAIVE_ASSIGN_OR_RETURN(target_rows,
                            ReadTarget(*condition->target, chosen, /*to_rewrite=*/false));
  }
  GLAIVE_ASSIGN_OR_RETURN(const PairPlaces places, PlacesOf(chosen));
  GLAIVE_ASSIGN_OR_RETURN(const auto keep,
                          condition->Evaluate(static_cast<int64_t>(chosen.size()),
                                              source_rows, target_rows, places));
  size_t kept = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (keep[i] != 0) chosen[kept++] = chosen[i];
  }
  chosen.resize(kept);
  return chosen;
}

// The pairs that are written: of source rows that are no tombstones, one each, so that a
// key that the table has several times has one row afterwards.
Result<std::vector<Match>> MergeWriter::Impl::RemoveDead(const arrow::BooleanArray& dead,
                                                         int64_t first_row,
                                                         std::span<const Match> pairs) {
  if (dead.null_count() > 0) {
    return InvalidInput("Invalid input, column '", options.tombstone_column,
                        "', which says what keys to delete, must have no nulls");
  }
  std::vector<Match> written;
  int64_t last = -1;
  for (const Match& pair : pairs) {
    if (dead.Value(pair.source - first_row) || pair.source == last) {
      removed.push_back(pair);
    } else {
      written.push_back(pair);
    }
    last = pair.source;
  }
  return written;
}

Status MergeWriter::Impl::WriteUpdates(const BatchPtr& piece, int64_t first_row,
                                       std::vector<Match> chosen) {
  if (chosen.empty()) return Status::OK();
  if (kept_blobs != nullptr && chosen.size() > 1) {
    // The blobs of so many rows at once as need little memory.
    GLAIVE_ASSIGN_OR_RETURN(const BatchPtr blobs,
                            ReadTarget(*kept_blobs, chosen, /*to_rewrite=*/false));
    const std::vector<int64_t> ends = CutByBlobs(kept_blobs->written(), *blobs);
    if (ends.size() > 1) {
      size_t begin = 0;
      for (const int64_t end : ends) {
        const auto part =
            std::span(chosen).subspan(begin, static_cast<size_t>(end) - begin);
        GLAIVE_RETURN_NOT_OK(
            WriteUpdateRows(piece, first_row, {part.begin(), part.end()}));
        begin = static_cast<size_t>(end);
      }
      return Status::OK();
    }
  }
  return WriteUpdateRows(piece, first_row, std::move(chosen));
}

Status MergeWriter::Impl::WriteUpdateRows(const BatchPtr& piece, int64_t first_row,
                                          std::vector<Match> chosen) {
  std::vector<int64_t> rows;
  rows.reserve(chosen.size());
  for (const Match& pair : chosen) rows.push_back(pair.source - first_row);
  GLAIVE_ASSIGN_OR_RETURN(const BatchPtr given, TakeBatch(piece, rows));
  BatchPtr kept;
  if (!missing->empty()) {
    GLAIVE_ASSIGN_OR_RETURN(kept, ReadTarget(*missing, chosen, /*to_rewrite=*/true));
  }
  arrow::ArrayVector arrays;
  int next_kept = 0;
  for (int index : from_source) {
    arrays.push_back(index >= 0 ? given->column(index) : kept->column(next_kept++));
  }
  GLAIVE_RETURN_NOT_OK(updates->Write(*arrow::RecordBatch::Make(
      full_schema, static_cast<int64_t>(rows.size()), std::move(arrays))));
  if (dataset.has_stable_row_ids()) {
    for (size_t begin = 0; begin < chosen.size();) {
      size_t end = begin;
      std::vector<uint32_t> offsets;
      for (; end < chosen.size() && chosen[end].fragment == chosen[begin].fragment;
           ++end) {
        offsets.push_back(chosen[end].offset);
      }
      GLAIVE_ASSIGN_OR_RETURN(const FragmentRows* fragment,
                              Fragment(chosen[begin].fragment));
      GLAIVE_RETURN_NOT_OK(identity.Add(*fragment, offsets));
      begin = end;
    }
  }
  replaced.insert(replaced.end(), chosen.begin(), chosen.end());
  return Status::OK();
}

Status MergeWriter::Impl::WriteInserts(const BatchPtr& piece,
                                       const std::vector<int64_t>& rows) {
  if (rows.empty()) return Status::OK();
  num_inserted += static_cast<int64_t>(rows.size());
  GLAIVE_ASSIGN_OR_RETURN(const BatchPtr taken, TakeBatch(piece, rows));
  const auto count = static_cast<int64_t>(rows.size());
  arrow::ArrayVector arrays;
  if (!insert_full) {
    for (int index : given_columns) arrays.push_back(taken->column(index));
    return insert_writer->Write(
        *arrow::RecordBatch::Make(given_schema, count, std::move(arrays)));
  }
  for (size_t c = 0; c < from_source.size(); ++c) {
    if (from_source[c] >= 0) {
      arrays.push_back(taken->column(from_source[c]));
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(
        auto nulls,
        arrow::MakeArrayOfNull(full_schema->field(static_cast<int>(c))->type(), count));
    arrays.push_back(std::move(nulls));
  }
  return insert_writer->Write(
      *arrow::RecordBatch::Make(full_schema, count, std::move(arrays)));
}

Status MergeWriter::Impl::NoteInsertedKeys(const BatchPtr& piece,
                                           const std::vector<int64_t>& rows,
                                           const KeyCodec& codec) {
  if (rows.empty() || many_inserted_keys) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const KeyBatch keys, codec.Decode(source.KeysOf(*piece)));
  for (int64_t row : rows) {
    if (keys.IsNull(row)) continue;
    if (inserted_keys.size() >= kMaxListedKeys) {
      many_inserted_keys = true;
      return Status::OK();
    }
    // The same in every process.
    inserted_keys.push_back(codec.fixed()
                                ? HashWord(keys.words[row], 0)
                                : HashBytes(keys.views[static_cast<size_t>(row)], 0));
  }
  return Status::OK();
}

// The fields are named twice: our hashes are not those of other writers, which compare
// filters of equal fields only.
std::string MergeWriter::Impl::KeyFilter(const KeyCodec& codec) const {
  if (inserted_keys.empty()) return {};
  lance::table::KeyExistenceFilter filter;
  for (int twice = 0; twice < 2; ++twice) {
    for (const auto& column : codec.fields()) {
      filter.add_field_ids(dataset.schema().FindTopLevel(column->name())->id);
    }
  }
  if (many_inserted_keys) {
    // A filter that may hold any key.
    constexpr size_t kBytes = 32;
    filter.mutable_bloom()->set_bitmap(std::string(kBytes, '\xff'));
    filter.mutable_bloom()->set_num_bits(kBytes * 8);
    filter.mutable_bloom()->set_number_of_items(kMaxListedKeys);
    filter.mutable_bloom()->set_probability(1.0);
  } else {
    for (uint64_t key : inserted_keys) filter.mutable_exact()->add_key_hashes(key);
  }
  return filter.SerializeAsString();
}

Status MergeWriter::Impl::WritePiece(const BatchPtr& piece, int64_t first_row,
                                     const Matches& matches, const KeyCodec& codec) {
  const int64_t end = first_row + piece->num_rows();
  const arrow::BooleanArray* dead = nullptr;
  if (!options.tombstone_column.empty()) {
    dead = static_cast<const arrow::BooleanArray*>(
        piece->GetColumnByName(options.tombstone_column).get());
  }
  const size_t first_pair = next_pair;
  while (next_pair < matches.pairs.size() && matches.pairs[next_pair].source < end) {
    ++next_pair;
  }
  if (options.matched == MatchedAction::kUpdate) {
    auto pairs = std::span(matches.pairs).subspan(first_pair, next_pair - first_pair);
    std::vector<Match> alive;
    if (dead != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(alive, RemoveDead(*dead, first_row, pairs));
      pairs = alive;
    }
    GLAIVE_ASSIGN_OR_RETURN(auto chosen, ChooseUpdates(piece, first_row, pairs));
    GLAIVE_RETURN_NOT_OK(WriteUpdates(piece, first_row, std::move(chosen)));
  }
  if (!options.insert_not_matched) return Status::OK();
  std::vector<int64_t> rows;
  for (int64_t row = first_row; row < end; ++row) {
    if (!Matches::Get(matches.source_matched, row) &&
        !Matches::Get(matches.source_repeated, row) &&
        (dead == nullptr || !dead->Value(row - first_row))) {
      rows.push_back(row - first_row);
    }
  }
  GLAIVE_RETURN_NOT_OK(NoteInsertedKeys(piece, rows, codec));
  return WriteInserts(piece, rows);
}

Status MergeWriter::Impl::Finish(const Matches& matches, table::RowUpdate* update,
                                 MergeResult* result) {
  if (updates != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(update->new_fragments,
                            updates->Finish(table::LastFile::kLeftToCommit));
    GLAIVE_RETURN_NOT_OK(identity.Stamp(&update->new_fragments));
  }
  if (inserts != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(auto added, inserts->Finish(table::LastFile::kLeftToCommit));
    for (auto& fragment : added) update->new_fragments.push_back(std::move(fragment));
  }
  for (const auto& fragment : update->new_fragments) {
    result->num_files_written += fragment.files_size();
    result->bytes_written += table::DataFileBytes(fragment);
  }
  result->num_inserted_rows = num_inserted;
  std::vector<Match> gone =
      options.matched == MatchedAction::kDelete ? matches.pairs : std::move(replaced);
  const auto num_replaced = static_cast<int64_t>(gone.size());
  result->num_deleted_rows += static_cast<int64_t>(removed.size());
  gone.insert(gone.end(), removed.begin(), removed.end());
  std::sort(gone.begin(), gone.end(), PlaceBefore);
  const auto twice = std::adjacent_find(gone.begin(), gone.end(), SamePlace);
  if (twice != gone.end()) return AmbiguousError(source, twice->source);
  (options.matched == MatchedAction::kDelete ? result->num_deleted_rows
                                             : result->num_updated_rows) = num_replaced;
  update->deleted = ToDeletedRows(dataset, matches.not_in_source);
  for (const FoundRows& range : matches.not_in_source) {
    result->num_deleted_rows += static_cast<int64_t>(range.offsets.size());
  }
  int current = -1;
  std::vector<uint32_t>* offsets = nullptr;
  std::vector<int64_t> both;  // fragments that lose rows for either reason
  for (const Match& match : gone) {
    if (match.fragment != current) {
      current = match.fragment;
      offsets = &update->deleted[dataset.fragment_id(current)];
      if (!offsets->empty()) both.push_back(dataset.fragment_id(current));
    }
    offsets->push_back(match.offset);
  }
  for (int64_t fragment : both) {
    auto& rows = update->deleted[fragment];
    std::sort(rows.begin(), rows.end());
  }
  return Status::OK();
}

MergeWriter::MergeWriter(const table::Dataset& dataset, const MergeSource& source,
                         const MergeOptions& options, const UpdateCondition* condition)
    : impl_(std::make_unique<Impl>(dataset, source, options, condition)) {}

MergeWriter::~MergeWriter() = default;

void MergeWriter::Keep() {
  if (impl_->updates) impl_->updates->Keep();
  if (impl_->inserts) impl_->inserts->Keep();
}

Status MergeWriter::Run(const Matches& matches, const KeyCodec& codec,
                        table::RowUpdate* update, MergeResult* result) {
  Impl& impl = *impl_;
  GLAIVE_RETURN_NOT_OK(impl.Prepare());
  if (impl.updates != nullptr || impl.insert_writer != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(const auto reader, impl.source.ReadRows());
    int64_t first_row = 0;
    while (true) {
      if (impl.options.cancel != nullptr) {
        GLAIVE_RETURN_NOT_OK(impl.options.cancel->CheckOnCaller());
      }
      GLAIVE_ASSIGN_OR_RETURN(const BatchPtr batch, reader->Next());
      if (batch == nullptr) break;
      int64_t step = kPieceRows;
      if (auto bytes = arrow::util::ReferencedBufferSize(*batch); bytes.ok()) {
        const int64_t row_bytes = std::max<int64_t>(1, *bytes / batch->num_rows());
        step = std::clamp<int64_t>(kPieceBytes / row_bytes, 1, kPieceRows);
      }
      for (int64_t start = 0; start < batch->num_rows(); start += step) {
        const int64_t count = std::min(step, batch->num_rows() - start);
        GLAIVE_RETURN_NOT_OK(impl.WritePiece(batch->Slice(start, count),
                                             first_row + start, matches, codec));
      }
      first_row += batch->num_rows();
    }
  }
  GLAIVE_RETURN_NOT_OK(impl.Finish(matches, update, result));
  update->inserted_keys = impl.KeyFilter(codec);
  // An index that covers a column stays valid for rows that keep their value in it; rows
  // that are new are in no index.
  if (impl.num_inserted == 0 && !impl.missing->empty()) {
    for (const auto& column : impl.given_schema->fields()) {
      const auto add = [&](auto&& self, const file::Field& field) -> void {
        update->fields_modified.push_back(static_cast<uint32_t>(field.id));
        for (const file::Field& child : field.children) self(self, child);
      };
      add(add, *impl.dataset.schema().FindTopLevel(column->name()));
    }
  }
  return Status::OK();
}

}  // namespace glaive::exec
