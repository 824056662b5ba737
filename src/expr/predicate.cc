#include "expr/predicate.h"

#include <algorithm>
#include <cstring>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "base/evaluation_error.h"
#include "expr/ast.h"
#include "expr/binder.h"
#include "expr/bitmap.h"
#include "expr/bound.h"
#include "expr/cast.h"
#include "expr/format.h"
#include "expr/kernel.h"
#include "expr/user_cast.h"
#include "runtime/cancel_scope.h"

namespace glaive::expr {
namespace {

// Rows that are evaluated together, so that what one step leaves is still in the cache
// when the next reads it. A multiple of 64.
constexpr int64_t kChunkRows = 16384;

// What goes wrong with the rows is another kind than what is wrong in the expression.
Status AtRunTime(const Status& status) {
  if (KindOf(status) != ErrorKind::kInvalidInput) return status;
  return EvaluationError(status.message());
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Joins the results for consecutive chunks. Plain values without nulls are copied while
// they are in the cache.
class ChunkJoiner {
 public:
  using ArrayPtr = std::shared_ptr<arrow::Array>;

  ChunkJoiner(std::shared_ptr<arrow::DataType> type, int64_t rows)
      : type_(std::move(type)), rows_(rows) {
    if (arrow::is_primitive(type_->id()) && type_->bit_width() % 8 == 0) {
      width_ = type_->bit_width() / 8;
    }
  }

  Status Add(ArrayPtr array) {
    if (!chunks_.empty() || width_ == 0 || array->null_count() > 0 ||
        !array->type()->Equals(*type_)) {
      EndValues();
      chunks_.push_back(std::move(array));
      return Status::OK();
    }
    if (values_ == nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(values_, arrow::AllocateBuffer(rows_ * width_));
    }
    const arrow::ArrayData& data = *array->data();
    std::memcpy(values_->mutable_data() + done_ * width_,
                data.buffers[1]->data() + data.offset * width_,
                static_cast<size_t>(data.length * width_));
    done_ += data.length;
    return Status::OK();
  }

  Result<ArrayPtr> Finish() {
    if (chunks_.empty()) EndValues();
    return chunks_.size() == 1 ? chunks_[0] : arrow::Concatenate(chunks_);
  }

 private:
  // What was copied so far becomes the first chunk.
  void EndValues() {
    if (values_ == nullptr) return;
    chunks_.push_back(arrow::MakeArray(arrow::ArrayData::Make(
        type_, done_, {nullptr, std::shared_ptr<arrow::Buffer>(std::move(values_))}, 0)));
  }

  const std::shared_ptr<arrow::DataType> type_;
  const int64_t rows_;
  int64_t width_ = 0;  // bytes; 0: not plain
  std::unique_ptr<arrow::Buffer> values_;
  int64_t done_ = 0;  // rows of `values_`
  arrow::ArrayVector chunks_;
};

}  // namespace

const ExtraColumns& RowMetaColumns() {
  static const ExtraColumns columns = {{"_rowid", arrow::uint64()},
                                       {"_rowaddr", arrow::uint64()},
                                       {"_rowoffset", arrow::uint64()},
                                       {"_row_created_at_version", arrow::uint64()},
                                       {"_row_last_updated_at_version", arrow::uint64()}};
  return columns;
}

struct Predicate::Impl {
  BoolPtr root;
  std::vector<std::string> columns;
  std::vector<std::string> extra;
  std::string text;
};

Predicate::Predicate() : impl_(std::make_unique<Impl>()) {}
Predicate::~Predicate() = default;

Result<std::shared_ptr<const Predicate>> Predicate::Make(std::string_view sql,
                                                         const file::Schema& schema,
                                                         const ExtraColumns& extra) {
  GLAIVE_ASSIGN_OR_RETURN(std::unique_ptr<Node> tree, Parse(sql));
  Binder binder(sql, schema, extra, /*adapt_literals=*/false);
  binder.check_constants = true;
  std::shared_ptr<Predicate> predicate(new Predicate());
  GLAIVE_ASSIGN_OR_RETURN(predicate->impl_->root, binder.Bool(*tree));
  predicate->impl_->columns = std::move(binder.columns);
  predicate->impl_->extra = std::move(binder.extra_columns);
  predicate->impl_->text = FormatNode(*tree, schema);
  return predicate;
}

const std::vector<std::string>& Predicate::columns() const { return impl_->columns; }
const std::vector<std::string>& Predicate::extra_columns() const { return impl_->extra; }
bool Predicate::needs_row_id() const { return Has(impl_->extra, "_rowid"); }
bool Predicate::needs_row_address() const { return Has(impl_->extra, "_rowaddr"); }
bool Predicate::needs_row_offset() const { return Has(impl_->extra, "_rowoffset"); }
std::string Predicate::ToString() const { return impl_->text; }

Result<int64_t> Predicate::Evaluate(const arrow::RecordBatch& batch,
                                    uint8_t* keep) const {
  const int64_t rows = batch.num_rows();
  if (rows == 0) return 0;
  Words words(static_cast<size_t>(WordCount(rows)));
  if (rows < 2 * kChunkRows) {
    GLAIVE_RETURN_NOT_OK(AtRunTime(impl_->root->Eval({batch, rows}, true, words.data())));
  } else {
    for (int64_t begin = 0; begin < rows; begin += kChunkRows) {
      GLAIVE_RETURN_NOT_OK(CancelScope::Check());
      const auto chunk = batch.Slice(begin, kChunkRows);
      GLAIVE_RETURN_NOT_OK(AtRunTime(impl_->root->Eval({*chunk, chunk->num_rows()}, true,
                                                       words.data() + begin / 64)));
    }
  }
  std::memcpy(keep, words.data(), static_cast<size_t>((rows + 7) / 8));
  return CountMask(words.data(), rows);
}

Result<std::shared_ptr<arrow::BooleanArray>> Predicate::EvaluateToArray(
    const arrow::RecordBatch& batch) const {
  auto array = MakeBoolValue(impl_->root)->EvalArray({batch, batch.num_rows()});
  if (!array.ok()) return AtRunTime(array.status());
  return std::static_pointer_cast<arrow::BooleanArray>(*array);
}

struct ScalarExpr::Impl {
  ValuePtr root;
  std::vector<std::string> columns;
  std::vector<std::string> extra;
  bool plain = false;
};

ScalarExpr::ScalarExpr() : impl_(std::make_unique<Impl>()) {}
ScalarExpr::~ScalarExpr() = default;

Result<std::shared_ptr<const ScalarExpr>> ScalarExpr::Make(std::string_view sql,
                                                           const file::Schema& schema,
                                                           const ExtraColumns& extra) {
  GLAIVE_ASSIGN_OR_RETURN(std::unique_ptr<Node> tree, Parse(sql));
  Binder binder(sql, schema, extra, /*adapt_literals=*/true);
  std::shared_ptr<ScalarExpr> expression(new ScalarExpr());
  GLAIVE_ASSIGN_OR_RETURN(expression->impl_->root, binder.Value(*tree));
  expression->impl_->columns = std::move(binder.columns);
  expression->impl_->extra = std::move(binder.extra_columns);
  expression->impl_->plain =
      tree->kind == NodeKind::kName && expression->impl_->columns.size() == 1;
  return expression;
}

Result<std::shared_ptr<const ScalarExpr>> ScalarExpr::MakeCastTo(
    std::string_view sql, const file::Schema& schema,
    std::shared_ptr<arrow::DataType> type, const ExtraColumns& extra) {
  GLAIVE_ASSIGN_OR_RETURN(const std::unique_ptr<Node> tree, Parse(sql));
  Binder strict(sql, schema, extra, /*adapt_literals=*/true);
  strict.check_constants = true;
  GLAIVE_RETURN_NOT_OK(strict.Value(*tree).status());
  GLAIVE_ASSIGN_OR_RETURN(auto plain, Make(sql, schema, extra));
  if (plain->type()->Equals(*type)) return plain;
  GLAIVE_RETURN_NOT_OK(CheckUserCast(*plain->type(), *type));
  std::shared_ptr<ScalarExpr> cast(new ScalarExpr());
  GLAIVE_ASSIGN_OR_RETURN(cast->impl_->root,
                          MakeCast(plain->impl_->root, std::move(type)));
  cast->impl_->columns = plain->impl_->columns;
  cast->impl_->extra = plain->impl_->extra;
  if (plain->impl_->root->constant() != nullptr &&
      cast->impl_->root->constant() == nullptr) {
    // It failed for the one value there is: say so now.
    GLAIVE_RETURN_NOT_OK(EvaluateOnce(*cast->impl_->root).status());
  }
  return cast;
}

const std::vector<std::string>& ScalarExpr::columns() const { return impl_->columns; }
const std::vector<std::string>& ScalarExpr::extra_columns() const { return impl_->extra; }
const std::string* ScalarExpr::plain_column() const {
  return impl_->plain ? &impl_->columns[0] : nullptr;
}
std::shared_ptr<arrow::DataType> ScalarExpr::type() const { return impl_->root->type(); }

Result<std::shared_ptr<arrow::Array>> ScalarExpr::Evaluate(
    const arrow::RecordBatch& batch) const {
  const int64_t rows = batch.num_rows();
  if (rows == 0) return arrow::MakeEmptyArray(type());
  if (rows < 2 * kChunkRows || impl_->plain || impl_->root->constant() != nullptr) {
    auto array = impl_->root->EvalArray({batch, rows});
    if (!array.ok()) return AtRunTime(array.status());
    return array;
  }
  ChunkJoiner joiner(type(), rows);
  for (int64_t begin = 0; begin < rows; begin += kChunkRows) {
    const auto chunk = batch.Slice(begin, kChunkRows);
    auto array = impl_->root->EvalArray({*chunk, chunk->num_rows()});
    if (!array.ok()) return AtRunTime(array.status());
    GLAIVE_RETURN_NOT_OK(joiner.Add(std::move(*array)));
  }
  return joiner.Finish();
}

}  // namespace glaive::expr
