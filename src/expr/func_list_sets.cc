// Functions that treat lists as sets or replace elements.
#include <algorithm>
#include <unordered_set>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/lists.h"

namespace glaive::expr {
namespace {

using arrow::Type;

TypePtr ListOf(const TypePtr& element) {
  return arrow::list(arrow::field("item", element));
}

Result<TypePtr> ElementOf(const CallSite& call, size_t i) {
  const TypePtr type = call.arguments[i]->type();
  if (type->id() == Type::NA) return arrow::null();
  const TypePtr element = ElementType(*type);
  if (element == nullptr) return WrongArgument(call, i, "a list");
  return element;
}

// Union, intersection and difference, without duplicates, in the order of the operands.
Result<ValuePtr> SetCall(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr a, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr b, ElementOf(call, 1));
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, UnionType({a, b}));
  const TypePtr type = ListOf(element);
  std::vector<ValuePtr> operands;
  for (ValuePtr& argument : call.arguments) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, MakeCast(std::move(argument), type));
    operands.push_back(std::move(list));
  }
  enum class Kind : uint8_t { kUnion, kIntersect, kExcept };
  const Kind kind = call.name.ends_with("union")       ? Kind::kUnion
                    : call.name.ends_with("intersect") ? Kind::kIntersect
                                                       : Kind::kExcept;
  return MakeKernel(
      type, std::move(operands),
      [type, kind](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists left(args[0]);
        const Lists right(args[1]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({left.values(), right.values()}));
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr elements,
                                arrow::Concatenate({left.values(), right.values()}));
        const int64_t first = left.values()->length();
        ListPicker picker(args.rows);
        std::unordered_set<int32_t> seen;
        std::unordered_set<int32_t> other;
        for (int64_t i = 0; i < args.rows; ++i) {
          if (left.IsNull(i) || right.IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          seen.clear();
          other.clear();
          for (int64_t k = right.begin(i); k < right.end(i); ++k) {
            other.insert(codes[1][static_cast<size_t>(k)]);
          }
          for (int64_t k = left.begin(i); k < left.end(i); ++k) {
            const int32_t code = codes[0][static_cast<size_t>(k)];
            const bool there = other.count(code) != 0;
            const bool wanted =
                kind == Kind::kUnion || there == (kind == Kind::kIntersect);
            if (wanted && seen.insert(code).second) picker.Pick(k);
          }
          for (int64_t k = right.begin(i); kind == Kind::kUnion && k < right.end(i);
               ++k) {
            if (seen.insert(codes[1][static_cast<size_t>(k)]).second) {
              picker.Pick(first + k);
            }
          }
          picker.Close();
        }
        return picker.Finish(elements, type);
      });
}

Result<ValuePtr> Pop(CallSite call) {
  const bool front = call.name.ends_with("front");
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, ElementOf(call, 0));
  const TypePtr type = ListOf(element);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, MakeCast(std::move(call.arguments[0]), type));
  return MakeKernel(type, {std::move(list)},
                    [type, front](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      ListPicker picker(args.rows);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (lists.IsNull(i)) {
                          picker.CloseNull();
                          continue;
                        }
                        const int64_t begin = lists.begin(i) + (front ? 1 : 0);
                        const int64_t end = lists.end(i) - (front ? 0 : 1);
                        for (int64_t k = begin; k < end; ++k) picker.Pick(k);
                        picker.Close();
                      }
                      return picker.Finish(lists.values(), type);
                    });
}

// The first element that is not null.
Result<ValuePtr> AnyValue(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, ElementOf(call, 0));
  return MakeKernel(element, std::move(call.arguments),
                    [](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      std::vector<int64_t> picks(static_cast<size_t>(args.rows), -1);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (lists.IsNull(i)) continue;
                        for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
                          if (lists.values()->IsNull(k)) continue;
                          picks[static_cast<size_t>(i)] = k;
                          break;
                        }
                      }
                      return TakeElements(lists.values(), picks);
                    });
}

// replace(list, from, to[, n]): the first, the first n, or all that are equal.
Result<ValuePtr> Replace(CallSite call) {
  const bool all = call.name.ends_with("_all");
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr own, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(
      const TypePtr element,
      UnionType({own, call.arguments[1]->type(), call.arguments[2]->type()}));
  const TypePtr type = ListOf(element);
  std::vector<ValuePtr> operands;
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, MakeCast(std::move(call.arguments[0]), type));
  operands.push_back(std::move(list));
  for (size_t i = 1; i < 3; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr value,
                            MakeCast(std::move(call.arguments[i]), element));
    operands.push_back(std::move(value));
  }
  ValuePtr most = ConstantOf(std::make_shared<arrow::Int64Scalar>(all ? INT64_MAX : 1));
  if (call.arguments.size() == 4) {
    GLAIVE_ASSIGN_OR_RETURN(most, NumberArgument(call, 3, arrow::int64()));
  }
  operands.push_back(std::move(most));
  return MakeKernel(
      type, std::move(operands), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), args[1].array}));
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr elements,
                                arrow::Concatenate({lists.values(), args[2].array}));
        const Numbers<int64_t> limits(args[3]);
        const int64_t first = lists.values()->length();
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (lists.IsNull(i) || args[3].IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          const int32_t from = codes[1][static_cast<size_t>(i * args[1].stride)];
          int64_t left = limits[i];
          for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
            const bool replaced = codes[0][static_cast<size_t>(k)] == from && left > 0;
            if (replaced) --left;
            picker.Pick(replaced ? first + i * args[2].stride : k);
          }
          picker.Close();
        }
        return picker.Finish(elements, type);
      });
}

// Lists of lists with one level less.
Result<ValuePtr> Flatten(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr inner, ElementOf(call, 0));
  const TypePtr element = ElementType(*inner);
  if (element == nullptr) return std::move(call.arguments[0]);
  const TypePtr inner_type = ListOf(element);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list,
                          MakeCast(std::move(call.arguments[0]), ListOf(inner_type)));
  return MakeKernel(inner_type, {std::move(list)},
                    [inner_type](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists outer(args[0]);
                      const Lists lists(Arg{outer.values(), 1});
                      ListPicker picker(args.rows);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (outer.IsNull(i)) {
                          picker.CloseNull();
                          continue;
                        }
                        for (int64_t k = outer.begin(i); k < outer.end(i); ++k) {
                          if (lists.IsNull(k)) continue;
                          for (int64_t e = lists.begin(k); e < lists.end(k); ++e) {
                            picker.Pick(e);
                          }
                        }
                        picker.Close();
                      }
                      return picker.Finish(lists.values(), inner_type);
                    });
}

Result<ValuePtr> Dimensions(CallSite call) {
  GLAIVE_RETURN_NOT_OK(ElementOf(call, 0).status());
  uint64_t depth = 0;
  for (TypePtr type = call.arguments[0]->type(); type != nullptr && IsList(*type);
       type = ElementType(*type)) {
    ++depth;
  }
  return MakeKernel(arrow::uint64(), std::move(call.arguments),
                    [depth](const KernelArgs& args) {
                      return MapNumbers<uint64_t>(args, arrow::uint64(),
                                                  [&](int64_t) { return depth; });
                    });
}

}  // namespace

const std::vector<FunctionEntry>& ListSetFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"array_any_value", 1, 1, AnyValue}, {"array_except", 2, 2, SetCall},
      {"array_intersect", 2, 2, SetCall},  {"array_ndims", 1, 1, Dimensions},
      {"array_pop_back", 1, 1, Pop},       {"array_pop_front", 1, 1, Pop},
      {"array_replace", 3, 3, Replace},    {"array_replace_all", 3, 3, Replace},
      {"array_replace_n", 4, 4, Replace},  {"array_union", 2, 2, SetCall},
      {"flatten", 1, 1, Flatten},          {"list_any_value", 1, 1, AnyValue},
      {"list_except", 2, 2, SetCall},      {"list_intersect", 2, 2, SetCall},
      {"list_ndims", 1, 1, Dimensions},    {"list_pop_back", 1, 1, Pop},
      {"list_pop_front", 1, 1, Pop},       {"list_replace", 3, 3, Replace},
      {"list_replace_all", 3, 3, Replace}, {"list_replace_n", 4, 4, Replace},
      {"list_union", 2, 2, SetCall},
  };
  return functions;
}

}  // namespace glaive::expr
