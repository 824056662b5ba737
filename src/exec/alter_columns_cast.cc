// The casts of alter_columns, on arrays.
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "exec/alter_columns.h"
#include "expr/predicate.h"
#include "file/schema.h"

namespace glaive::exec {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using TypePtr = std::shared_ptr<arrow::DataType>;

Result<ArrayPtr> ArrowCast(const ArrayPtr& array, const TypePtr& type, bool checked) {
  arrow::compute::CastOptions options = checked
                                            ? arrow::compute::CastOptions::Safe(type)
                                            : arrow::compute::CastOptions::Unsafe(type);
  options.allow_time_truncate = true;
  options.allow_float_truncate = true;
  auto cast = arrow::compute::Cast(*array, options.to_type, options);
  if (!cast.ok()) return InvalidInput("Cast error: ", cast.status().message());
  return cast;
}

// SQL's cast rounds decimals, Arrow's cuts them off.
Result<ArrayPtr> SqlCast(const ArrayPtr& array, const TypePtr& type) {
  const auto schema = arrow::schema({arrow::field("v", array->type())});
  GLAIVE_ASSIGN_OR_RETURN(const auto fields, file::Schema::FromArrow(*schema));
  GLAIVE_ASSIGN_OR_RETURN(const auto cast,
                          expr::ScalarExpr::MakeCastTo("v", fields, type));
  return cast->Evaluate(*arrow::RecordBatch::Make(schema, array->length(), {array}));
}

}  // namespace

Result<ArrayPtr> CastColumn(const ArrayPtr& array, const TypePtr& type, bool checked) {
  if (array->type()->Equals(*type)) return array;
  if (array->type_id() == arrow::Type::DICTIONARY) {
    const auto& from = static_cast<const arrow::DictionaryType&>(*array->type());
    GLAIVE_ASSIGN_OR_RETURN(auto plain, ArrowCast(array, from.value_type(), checked));
    return CastColumn(plain, type, checked);
  }
  if (type->id() == arrow::Type::DICTIONARY) {
    const auto& to = static_cast<const arrow::DictionaryType&>(*type);
    GLAIVE_ASSIGN_OR_RETURN(auto plain, CastColumn(array, to.value_type(), checked));
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum encoded,
                            arrow::compute::DictionaryEncode(plain));
    const auto array_of_codes = encoded.make_array();
    const auto& codes = static_cast<const arrow::DictionaryArray&>(*array_of_codes);
    auto indices = arrow::compute::Cast(*codes.indices(), to.index_type());
    if (!indices.ok()) {
      return InvalidInput("Cast error: there are more different values than ",
                          to.index_type()->ToString(), " can tell apart");
    }
    return arrow::DictionaryArray::FromArrays(type, *indices, codes.dictionary());
  }
  if (arrow::is_decimal(array->type_id())) return SqlCast(array, type);
  return ArrowCast(array, type, checked);
}

}  // namespace glaive::exec
