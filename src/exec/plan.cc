#include "exec/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/assemble.h"
#include "file/blob_v2_writer.h"
#include "file/json_columns.h"
#include "runtime/runtime.h"

namespace glaive::exec {
namespace {

constexpr size_t kMaxPlans = 64;
constexpr size_t kMaxCachedFilterBytes = 4096;

expr::ExtraColumns ExtraColumnsOf(SearchColumns search) {
  expr::ExtraColumns extra = expr::RowMetaColumns();
  if (search != SearchColumns::kScan) extra.emplace_back(kDistance, arrow::float32());
  if (search == SearchColumns::kManyQueries)
    extra.emplace_back(kQueryIndex, arrow::int32());
  return extra;
}

std::string KeyOf(const Selection& select, SearchColumns search) {
  std::string key;
  key.push_back(static_cast<char>('0' + static_cast<int>(search)));
  key.push_back(select.with_row_id ? 'i' : '-');
  key.push_back(select.with_row_address ? 'a' : '-');
  key.push_back(select.columns ? (select.nested ? 'n' : 's') : '*');
  if (select.columns) {
    for (const auto& [name, expression] : *select.columns) {
      key += name;
      key.push_back('\0');
      key += expression;
      key.push_back('\0');
    }
  }
  return key;
}

std::shared_ptr<arrow::Field> MetaField(const std::string& name,
                                        const std::string& meta) {
  if (meta == kDistance) return arrow::field(name, arrow::float32());
  if (meta == kQueryIndex) return arrow::field(name, arrow::int32());
  return arrow::field(name, arrow::uint64());
}

class OutputPlanner {
 public:
  OutputPlanner(const table::Dataset& dataset, SearchColumns search)
      : dataset_(dataset),
        extra_(ExtraColumnsOf(search)),
        plan_(std::make_shared<OutputPlan>()) {}

  Result<std::shared_ptr<const OutputPlan>> Run(const Selection& select,
                                                SearchColumns search) {
    const auto selected = [&](const char* meta) {
      return std::any_of(
          plan_->columns.begin(), plan_->columns.end(),
          [&](const OutputPlan::Column& column) { return column.meta == meta; });
    };
    GLAIVE_RETURN_NOT_OK(CheckSearchColumns(search));
    if (select.columns && select.nested) {
      GLAIVE_RETURN_NOT_OK(AddNested(*select.columns));
    } else if (select.columns) {
      for (const auto& [name, expression] : *select.columns) {
        GLAIVE_RETURN_NOT_OK(AddSelected(name, expression));
      }
    } else {
      for (const file::Field& field : dataset_.schema().fields())
        AddWhole(field.name, field);
    }
    if (search == SearchColumns::kManyQueries && !selected(kQueryIndex)) {
      fields_.insert(fields_.begin(), MetaField(kQueryIndex, kQueryIndex));
      plan_->columns.insert(plan_->columns.begin(), MetaColumn(kQueryIndex));
    }
    if (search != SearchColumns::kScan && !selected(kDistance))
      AddMeta(kDistance, kDistance);
    if (select.with_row_id && !selected(kRowId)) AddMeta(kRowId, kRowId);
    if (select.with_row_address && !selected(kRowAddress))
      AddMeta(kRowAddress, kRowAddress);
    return Finish();
  }

 private:
  // A search's own columns and those of the table would share a name.
  Status CheckSearchColumns(SearchColumns search) const {
    if (search == SearchColumns::kScan) return Status::OK();
    if (dataset_.schema().FindTopLevel(kDistance) != nullptr) {
      return SchemaMismatch(
          "the table has a column '", kDistance,
          "', which is what a search calls its distances; rename it to search the table");
    }
    if (search == SearchColumns::kManyQueries &&
        dataset_.schema().FindTopLevel(kQueryIndex) != nullptr) {
      return InvalidInput(
          "batch nearest neighbor search cannot be used on datasets "
          "with column '",
          kQueryIndex, "'");
    }
    return Status::OK();
  }

  static OutputPlan::Column MetaColumn(const std::string& meta) {
    OutputPlan::Column column;
    column.meta = meta;
    return column;
  }

  void AddMeta(const std::string& name, const std::string& meta) {
    fields_.push_back(MetaField(name, meta));
    plan_->columns.push_back(MetaColumn(meta));
    plan_->needs.Add({meta});
  }

  // A column of the batch that is read, as users see it.
  static std::shared_ptr<arrow::Field> ShownPart(const file::Field& field) {
    return file::JsonToUser(
               arrow::schema({field.ToArrow()->WithType(file::ReadType(field))}))
        ->field(0);
  }

  // A whole top-level column.
  void AddWhole(const std::string& name, const file::Field& field) {
    // Blobs are read as descriptors.
    const file::Schema read = file::Schema({field}).WithBlobDescriptors();
    AddRead(field.name, ShownPart(read.fields()[0])->WithName(name));
    const std::vector<std::string> path = {field.name};
    AddPath(file::FormatFieldPath(path));
  }

  // A column as it is read, all of it or some members.
  void AddRead(const std::string& column_name, std::shared_ptr<arrow::Field> shown) {
    fields_.push_back(std::move(shown));
    OutputPlan::Column column;
    column.read_index = 0;  // the place is known when all columns are
    plan_->columns.push_back(std::move(column));
    whole_.push_back(column_name);
  }

  void AddPath(const std::string& path) {
    if (std::find(paths_.begin(), paths_.end(), path) == paths_.end())
      paths_.push_back(path);
  }

  Status AddSelected(const std::string& name, const std::string& text) {
    if (std::any_of(fields_.begin(), fields_.end(),
                    [&](const auto& field) { return field->name() == name; })) {
      return InvalidInput("Duplicate column name: ", name);
    }
    // A path comes first: `a-b` in a list of names is a column, not a difference.
    std::vector<std::string> path;
    if (auto parsed = file::ParseFieldPath(text); parsed.ok()) path = *parsed;
    bool nullable = true;
    const file::Field* field = FindExact(path, &nullable);
    if (field == nullptr) {
      path = {text};
      field = dataset_.schema().FindTopLevel(text);
    }
    if (field != nullptr && path.size() == 1) {
      AddWhole(name, *field);
      return Status::OK();
    }
    if (field == nullptr) {
      for (const auto& [meta, type] : extra_) {
        if (text != meta) continue;
        AddMeta(name, meta);
        return Status::OK();
      }
    }
    std::string sql = text;
    if (field != nullptr) {
      sql.clear();
      for (const std::string& segment : path) {
        sql += sql.empty() ? "`" : ".`";
        for (char c : segment) sql += c == '`' ? std::string("``") : std::string(1, c);
        sql += '`';
      }
    }
    // Blobs below structs are read as descriptors too.
    const bool blobs = field != nullptr && file::HoldsBlobsV2(*field);
    file::Schema described;
    if (blobs) described = dataset_.schema().WithBlobDescriptors();
    GLAIVE_ASSIGN_OR_RETURN(
        auto expression,
        expr::ScalarExpr::Make(sql, blobs ? described : dataset_.schema(), extra_));
    for (const std::string& column : expression->columns()) AddPath(column);
    plan_->needs.Add(expression->extra_columns());
    auto shown = arrow::field(name, expression->type(), nullable || field == nullptr);
    if (blobs) {
      shown = shown->WithMetadata(
          file::Schema({*field}).WithBlobDescriptors().fields()[0].ToArrow()->metadata());
    }
    fields_.push_back(std::move(shown));
    OutputPlan::Column column;
    column.expression = std::move(expression);
    plan_->columns.push_back(std::move(column));
    plan_->computes = true;
    return Status::OK();
  }

  // Ids of the fields that end a branch of `field`.
  static void CollectEnds(const file::Field& field, std::vector<int32_t>* ids) {
    if (field.children.empty()) ids->push_back(field.id);
    for (const file::Field& child : field.children) CollectEnds(child, ids);
  }

  // Columns cut down to the members asked for, which stay in the order of the schema.
  Status AddNested(const std::vector<std::pair<std::string, std::string>>& columns) {
    std::vector<std::string> paths;
    std::vector<std::string> order;  // top-level columns and meta columns, each once
    const auto is_extra = [&](const std::string& text) {
      return std::any_of(extra_.begin(), extra_.end(),
                         [&](const auto& column) { return column.first == text; });
    };
    for (const auto& [name, text] : columns) {
      std::string top = text;
      if (!is_extra(text)) {
        GLAIVE_ASSIGN_OR_RETURN(const file::Schema one,
                                dataset_.schema().Project({&text, 1}));
        top = one.fields()[0].name;
        paths.push_back(text);
      }
      if (std::find(order.begin(), order.end(), top) == order.end()) order.push_back(top);
    }
    GLAIVE_ASSIGN_OR_RETURN(const file::Schema chosen, dataset_.schema().Project(paths));
    std::vector<int32_t> ids;
    for (const file::Field& field : chosen.fields()) CollectEnds(field, &ids);
    nested_read_ = dataset_.schema().ProjectByIds(ids);
    for (const std::string& name : order) {
      const file::Field* field = nested_read_->FindTopLevel(name);
      if (field == nullptr) {
        AddMeta(name, name);
      } else if (*field->type == *dataset_.schema().FindTopLevel(name)->type) {
        AddWhole(name, *field);
      } else {
        const file::Schema described = file::Schema({*field}).WithBlobDescriptors();
        const file::Field& part = described.fields()[0];
        const auto read = arrow::schema({part.ToArrow()->WithType(file::ReadType(part))});
        AddRead(name, file::JsonToUser(read)->field(0));
      }
    }
    return Status::OK();
  }

  // `nullable`: the field or a struct above it can be null.
  const file::Field* FindExact(const std::vector<std::string>& path,
                               bool* nullable) const {
    if (path.empty()) return nullptr;
    const file::Field* field = dataset_.schema().FindTopLevel(path[0]);
    *nullable = field != nullptr && field->nullable;
    for (size_t i = 1; i < path.size() && field != nullptr; ++i) {
      if (field->type->id() != arrow::Type::STRUCT) return nullptr;
      const file::Field* child = nullptr;
      for (const file::Field& candidate : field->children) {
        if (candidate.name == path[i]) child = &candidate;
      }
      field = child;
      *nullable |= field != nullptr && field->nullable;
    }
    return field;
  }

  Result<std::shared_ptr<const OutputPlan>> Finish() {
    // A whole column also serves the expressions that need a member of it.
    file::Schema read;
    if (nested_read_) {
      read = std::move(*nested_read_);
    } else {
      GLAIVE_ASSIGN_OR_RETURN(read, dataset_.schema().Project(paths_));
    }
    read = read.WithBlobDescriptors();
    const auto arrow_read = read.ToArrow();
    size_t next_whole = 0;
    for (size_t i = 0; i < plan_->columns.size(); ++i) {
      OutputPlan::Column& column = plan_->columns[i];
      if (column.read_index >= 0) {
        column.read_index = arrow_read->GetFieldIndex(whole_[next_whole++]);
        if (column.read_index < 0) return InternalError("a projected column is missing");
        const auto& stored = arrow_read->field(column.read_index);
        if (file::HasStoredJson(*stored)) column.json = stored;
      }
    }
    plan_->read =
        std::make_unique<BoundColumns>(std::move(read), dataset_.num_fragments());
    plan_->schema =
        arrow::schema(std::move(fields_), dataset_.arrow_schema()->metadata());
    return plan_;
  }

  const table::Dataset& dataset_;
  expr::ExtraColumns extra_;
  std::shared_ptr<OutputPlan> plan_;
  std::vector<std::shared_ptr<arrow::Field>> fields_;
  std::vector<std::string> whole_;  // names of the columns with a read_index, in order
  std::vector<std::string> paths_;
  std::optional<file::Schema> nested_read_;  // instead of `paths_`
};

Result<std::shared_ptr<const FilterPlan>> MakeFilterPlan(const table::Dataset& dataset,
                                                         const std::string& sql,
                                                         SearchColumns search) {
  auto plan = std::make_shared<FilterPlan>();
  GLAIVE_ASSIGN_OR_RETURN(plan->predicate, expr::Predicate::Make(sql, dataset.schema(),
                                                                 ExtraColumnsOf(search)));
  GLAIVE_ASSIGN_OR_RETURN(file::Schema read,
                          dataset.schema().Project(plan->predicate->columns()));
  read = read.WithBlobDescriptors();
  plan->read = std::make_unique<BoundColumns>(std::move(read), dataset.num_fragments());
  plan->needs.Add(plan->predicate->extra_columns());
  return plan;
}

// The cached value of `key`, or the new one of `make`.
template <typename Map, typename Make>
auto Lookup(ForkSafeMutex& mutex, Map& map, const std::string& key, const Make& make)
    -> Result<typename Map::mapped_type> {
  {
    std::lock_guard lock(mutex);
    if (auto it = map.find(key); it != map.end()) return it->second;
  }
  GLAIVE_ASSIGN_OR_RETURN(typename Map::mapped_type value, make());
  std::lock_guard lock(mutex);
  if (map.size() >= kMaxPlans) map.clear();
  return map.emplace(key, std::move(value)).first->second;
}

}  // namespace

const std::shared_ptr<arrow::Array>* MetaColumns::Find(const std::string& name) const {
  if (name == kRowId) return &row_id;
  if (name == kRowAddress) return &row_address;
  if (name == kRowOffset) return &row_offset;
  if (name == kRowCreatedAt) return &row_created_at;
  if (name == kRowUpdatedAt) return &row_updated_at;
  if (name == kDistance) return &distance;
  if (name == kQueryIndex) return &query_index;
  return nullptr;
}

void MetaNeeds::Add(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    row_id |= name == kRowId;
    row_address |= name == kRowAddress;
    row_offset |= name == kRowOffset;
    row_created_at |= name == kRowCreatedAt;
    row_updated_at |= name == kRowUpdatedAt;
  }
}

Result<std::shared_ptr<arrow::RecordBatch>> OutputPlan::Assemble(
    const std::shared_ptr<arrow::RecordBatch>& read_batch, int64_t rows,
    const MetaColumns& meta) const {
  std::shared_ptr<arrow::RecordBatch> input;
  if (computes) {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    if (read_batch != nullptr) {
      fields = read_batch->schema()->fields();
      arrays = read_batch->columns();
    }
    for (const char* name : {kRowId, kRowAddress, kRowOffset, kRowCreatedAt,
                             kRowUpdatedAt, kDistance, kQueryIndex}) {
      const auto& array = *meta.Find(name);
      if (array == nullptr) continue;
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(array);
    }
    input = arrow::RecordBatch::Make(arrow::schema(std::move(fields)), rows,
                                     std::move(arrays));
  }
  std::vector<std::shared_ptr<arrow::Array>> out;
  out.reserve(columns.size());
  for (const Column& column : columns) {
    if (column.json) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto text,
          file::JsonToUser(read_batch->column(column.read_index), *column.json));
      out.push_back(std::move(text));
    } else if (column.read_index >= 0) {
      out.push_back(read_batch->column(column.read_index));
    } else if (!column.meta.empty()) {
      const auto& array = *meta.Find(column.meta);
      if (array == nullptr)
        return InternalError("meta column ", column.meta, " was not made");
      out.push_back(array);
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto array, column.expression->Evaluate(*input));
      out.push_back(std::move(array));
    }
  }
  return arrow::RecordBatch::Make(schema, rows, std::move(out));
}

Result<std::shared_ptr<arrow::RecordBatch>> FilterPlan::Input(
    const std::shared_ptr<arrow::RecordBatch>& read_batch, int64_t rows,
    const MetaColumns& meta) const {
  if (predicate->extra_columns().empty() && read_batch != nullptr) return read_batch;
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  if (read_batch != nullptr) {
    fields = read_batch->schema()->fields();
    arrays = read_batch->columns();
  }
  for (const std::string& name : predicate->extra_columns()) {
    const auto* array = meta.Find(name);
    if (array == nullptr || *array == nullptr) {
      return InternalError("meta column ", name, " was not made");
    }
    fields.push_back(arrow::field(name, (*array)->type()));
    arrays.push_back(*array);
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), rows,
                                  std::move(arrays));
}

SnapshotState::SnapshotState(const table::Dataset& dataset)
    : owner_(dataset.weak_from_this()) {
  live_begin_.reserve(static_cast<size_t>(dataset.num_fragments()) + 1);
  int64_t rows = 0;
  for (int i = 0; i < dataset.num_fragments(); ++i) {
    live_begin_.push_back(rows);
    rows += dataset.live_rows(i);
  }
  live_begin_.push_back(rows);
}

std::shared_ptr<const SnapshotState> SnapshotState::Of(const table::Dataset& dataset) {
  // Addresses are reused, so the entry also knows its owner.
  std::string key = "exec/";
  const auto address = reinterpret_cast<uintptr_t>(&dataset);
  key.append(reinterpret_cast<const char*>(&address), sizeof address);
  Cache& cache = dataset.env().runtime->cache();
  const std::weak_ptr<const table::Dataset> self = dataset.weak_from_this();
  if (auto state = cache.Get<SnapshotState>(key)) {
    const auto owner = state->owner_.lock();
    if (owner.get() == &dataset) return state;
  }
  auto state = std::make_shared<const SnapshotState>(dataset);
  constexpr int64_t kBytesPerFragment = 256;  // with the slots of a few plans
  constexpr int64_t kBaseBytes = 16384;
  if (!self.expired()) {
    cache.Put(key, state, kBaseBytes + kBytesPerFragment * dataset.num_fragments());
  }
  return state;
}

int SnapshotState::FragmentOfOrdinal(int64_t ordinal) const {
  const auto after = std::upper_bound(live_begin_.begin(), live_begin_.end(), ordinal);
  return static_cast<int>(after - live_begin_.begin()) - 1;
}

Result<std::shared_ptr<const OutputPlan>> MakeOutputPlan(const table::Dataset& dataset,
                                                         const Selection& select,
                                                         SearchColumns search) {
  return OutputPlanner(dataset, search).Run(select, search);
}

Result<SnapshotState::OutputPtr> SnapshotState::Output(const table::Dataset& dataset,
                                                       const Selection& select,
                                                       SearchColumns search) const {
  return Lookup(mutex_, outputs_, KeyOf(select, search),
                [&] { return MakeOutputPlan(dataset, select, search); });
}

Result<SnapshotState::FilterPtr> SnapshotState::Filter(const table::Dataset& dataset,
                                                       const std::string& sql,
                                                       SearchColumns search) const {
  // Long lists of values: not worth the memory.
  if (sql.size() > kMaxCachedFilterBytes) return MakeFilterPlan(dataset, sql, search);
  const std::string key = static_cast<char>('0' + static_cast<int>(search)) + sql;
  return Lookup(mutex_, filters_, key,
                [&] { return MakeFilterPlan(dataset, sql, search); });
}

Result<std::shared_ptr<const BoundColumns>> SnapshotState::Columns(
    const table::Dataset& dataset, const std::vector<std::string>& paths) const {
  std::string key;
  for (const std::string& path : paths) key += path + '\0';
  using Ptr = std::shared_ptr<const BoundColumns>;
  return Lookup(mutex_, columns_, key, [&]() -> Result<Ptr> {
    GLAIVE_ASSIGN_OR_RETURN(file::Schema read, dataset.schema().Project(paths));
    read = read.WithBlobDescriptors();
    return std::make_shared<const BoundColumns>(std::move(read), dataset.num_fragments());
  });
}

}  // namespace glaive::exec
