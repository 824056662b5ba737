// Functions that take lists of numbers for vectors.
#include <cmath>
#include <optional>

#include <arrow/array.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/lists.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// The argument as a list, or large list, of float64.
Result<ValuePtr> VectorArgument(const CallSite& call, size_t i) {
  const TypePtr from = call.arguments[i]->type();
  const auto item = arrow::field("item", arrow::float64());
  if (from->id() == Type::NA) return MakeNull(arrow::list(item));
  const TypePtr element = ElementType(*from);
  if (element == nullptr || (!IsNumeric(*element) && element->id() != Type::NA)) {
    return WrongArgument(call, i, "a list of numbers");
  }
  return MakeCast(call.arguments[i], from->id() == Type::LARGE_LIST
                                         ? arrow::large_list(item)
                                         : arrow::list(item));
}

// The numbers of row i; nothing where one is null.
class Vectors {
 public:
  explicit Vectors(const Arg& arg)
      : lists_(arg), values_(lists_.values()->data()->GetValues<double>(1)) {}
  bool HasNull(int64_t row) const {
    if (lists_.values()->null_count() == 0) return false;
    for (int64_t k = lists_.begin(row); k < lists_.end(row); ++k) {
      if (lists_.values()->IsNull(k)) return true;
    }
    return false;
  }
  int64_t size(int64_t row) const { return lists_.end(row) - lists_.begin(row); }
  const double* data(int64_t row) const { return values_ + lists_.begin(row); }

 private:
  Lists lists_;
  const double* values_;
};

// A sum of nothing is -0.0, as in upstream's language.
double Distance(const double* a, const double* b, int64_t n) {
  double sum = -0.0;
  for (int64_t k = 0; k < n; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(sum);
}

double Product(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

// Nothing for vectors without a direction.
std::optional<double> Cosine(const double* a, const double* b, int64_t n) {
  const double left = Product(a, a, n);
  const double right = Product(b, b, n);
  if (left == 0 || right == 0) return std::nullopt;
  return 1.0 - Product(a, b, n) / (std::sqrt(left) * std::sqrt(right));
}

template <typename Measure>
Result<ValuePtr> OfPair(const CallSite& call, const Measure& measure) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr left, VectorArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr right, VectorArgument(call, 1));
  return MakeKernel(
      arrow::float64(), {std::move(left), std::move(right)},
      [measure, name = std::string(call.name)](const KernelArgs& args) {
        const Vectors a(args[0]);
        const Vectors b(args[1]);
        return TryMapNumbers<double>(
            args, arrow::float64(), [&](int64_t i, double* out) -> Result<bool> {
              if (a.size(i) != b.size(i)) {
                return EvaluationError("expression: function ", name, " of lists of ",
                                       a.size(i), " and ", b.size(i), " numbers");
              }
              if (a.HasNull(i) || b.HasNull(i)) return false;
              const std::optional<double> value =
                  measure(a.data(i), b.data(i), a.size(i));
              if (value) *out = *value;
              return value.has_value();
            });
      });
}

Result<ValuePtr> DistanceCall(CallSite call) { return OfPair(call, Distance); }
Result<ValuePtr> ProductCall(CallSite call) { return OfPair(call, Product); }
Result<ValuePtr> CosineCall(CallSite call) { return OfPair(call, Cosine); }

// To length 1; null for vectors without a direction.
Result<ValuePtr> Normalize(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, VectorArgument(call, 0));
  const TypePtr type = list->type();
  return MakeKernel(
      type, {std::move(list)}, [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        const Vectors vectors(args[0]);
        std::vector<double> values;
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (lists.IsNull(i) || vectors.HasNull(i)) {
            picker.CloseNull();
            continue;
          }
          const int64_t size = vectors.size(i);
          const double* from = vectors.data(i);
          const double length = std::sqrt(Product(from, from, size));
          if (size > 0 && length == 0) {
            picker.CloseNull();
            continue;
          }
          for (int64_t k = 0; k < size; ++k) {
            picker.Pick(static_cast<int64_t>(values.size()));
            values.push_back(from[k] / length);
          }
          picker.Close();
        }
        const auto count = static_cast<int64_t>(values.size());
        return picker.Finish(std::make_shared<arrow::DoubleArray>(
                                 count, arrow::Buffer::FromVector(std::move(values))),
                             type);
      });
}

Result<ValuePtr> ToHalf(CallSite call) {
  const TypePtr from = call.arguments[0]->type();
  const TypePtr element = ElementType(*from);
  if (element == nullptr ||
      (element->id() != Type::FLOAT && element->id() != Type::HALF_FLOAT)) {
    return WrongArgument(call, 0, "a list of float32 or float16");
  }
  const auto item = arrow::field("item", arrow::float16());
  TypePtr type = arrow::list(item);
  if (from->id() == Type::LARGE_LIST) type = arrow::large_list(item);
  if (from->id() == Type::FIXED_SIZE_LIST) {
    type = arrow::fixed_size_list(
        item, static_cast<const arrow::FixedSizeListType&>(*from).list_size());
  }
  return MakeCast(std::move(call.arguments[0]), type);
}

}  // namespace

const std::vector<FunctionEntry>& VectorFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"_cast_list_f16", 1, 1, ToHalf},      {"array_distance", 2, 2, DistanceCall},
      {"array_normalize", 1, 1, Normalize},  {"cosine_distance", 2, 2, CosineCall},
      {"dot_product", 2, 2, ProductCall},    {"inner_product", 2, 2, ProductCall},
      {"list_distance", 2, 2, DistanceCall}, {"list_normalize", 1, 1, Normalize},
  };
  return functions;
}

}  // namespace glaive::expr
