// Functions on lists.
#include <algorithm>
#include <unordered_set>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "base/evaluation_error.h"
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/lists.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

using arrow::Type;

TypePtr ListOf(const TypePtr& element, bool large = false) {
  const auto field = arrow::field("item", element);
  return large ? arrow::large_list(field) : arrow::list(field);
}

Result<TypePtr> ElementOf(const CallSite& call, size_t i) {
  const TypePtr type = call.arguments[i]->type();
  if (type->id() == Type::NA) return arrow::null();
  const TypePtr element = ElementType(*type);
  if (element == nullptr) return WrongArgument(call, i, "a list");
  return element;
}

bool IsLargeList(const ValuePtr& value) {
  return value->type()->id() == Type::LARGE_LIST;
}

// The argument as a list or large list of `element`.
Result<ValuePtr> ListArgument(const CallSite& call, size_t i, const TypePtr& element) {
  const ValuePtr& argument = call.arguments[i];
  return MakeCast(argument, ListOf(element, IsLargeList(argument)));
}

// A list and a value, brought to one element type.
struct ListAndValue {
  ValuePtr list;
  ValuePtr value;
  TypePtr element;
};
Result<ListAndValue> Meet(const CallSite& call, size_t list_at, size_t value_at) {
  ListAndValue met;
  GLAIVE_ASSIGN_OR_RETURN(met.element, ElementOf(call, list_at));
  GLAIVE_ASSIGN_OR_RETURN(met.element,
                          ComparisonType(met.element, call.arguments[value_at]->type()));
  GLAIVE_ASSIGN_OR_RETURN(met.list, ListArgument(call, list_at, met.element));
  GLAIVE_ASSIGN_OR_RETURN(met.value, MakeCast(call.arguments[value_at], met.element));
  return met;
}
Result<ListAndValue> MeetLists(const CallSite& call) {
  ListAndValue met;
  GLAIVE_ASSIGN_OR_RETURN(met.element, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr other, ElementOf(call, 1));
  GLAIVE_ASSIGN_OR_RETURN(met.element, ComparisonType(met.element, other));
  GLAIVE_ASSIGN_OR_RETURN(met.list, ListArgument(call, 0, met.element));
  GLAIVE_ASSIGN_OR_RETURN(met.value, ListArgument(call, 1, met.element));
  return met;
}

Result<ValuePtr> Has(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ListAndValue met, Meet(call, 0, 1));
  return MakeKernel(
      arrow::boolean(), {met.list, met.value},
      [](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), args[1].array}));
        return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
          const auto wanted = codes[1][static_cast<size_t>(i * args[1].stride)];
          for (int64_t k = lists.begin(i); k < lists.end(i) && !*out; ++k) {
            *out = codes[0][static_cast<size_t>(k)] == wanted;
          }
          return true;
        });
      });
}

template <bool kAll>
Result<ValuePtr> HasSeveral(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ListAndValue met, MeetLists(call));
  return MakeKernel(
      arrow::boolean(), {met.list, met.value},
      [](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        const Lists wanted(args[1]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), wanted.values()}));
        return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
          const auto* begin = codes[0].data() + lists.begin(i);
          const auto* end = codes[0].data() + lists.end(i);
          *out = kAll;
          for (int64_t k = wanted.begin(i); k < wanted.end(i); ++k) {
            const bool found =
                std::find(begin, end, codes[1][static_cast<size_t>(k)]) != end;
            if (found != kAll) {
              *out = found;
              break;
            }
          }
          return true;
        });
      });
}

Result<ValuePtr> Empty(CallSite call) {
  GLAIVE_RETURN_NOT_OK(ElementOf(call, 0).status());
  return MakeKernel(arrow::boolean(), std::move(call.arguments),
                    [](const KernelArgs& args) {
                      const Lists lists(args[0]);
                      return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
                        *out = lists.begin(i) == lists.end(i);
                        return true;
                      });
                    });
}

Result<ValuePtr> Element(CallSite call) {
  return ListElement(std::move(call.arguments[0]), std::move(call.arguments[1]));
}
Result<ValuePtr> Slice(CallSite call) { return ListSlice(std::move(call.arguments)); }
Result<ValuePtr> MakeArrayCall(CallSite call) {
  return MakeListValue(std::move(call.arguments));
}

// What stands for a missing list is an empty one, as upstream has it.
Result<ValuePtr> Attach(const CallSite& call, size_t list_at, size_t value_at) {
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr own, ElementOf(call, list_at));
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element,
                          UnionType({own, call.arguments[value_at]->type()}));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, ListArgument(call, list_at, element));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, MakeCast(call.arguments[value_at], element));
  const TypePtr type = list->type();
  const bool front = value_at == 0;
  return MakeKernel(type, {std::move(list), std::move(value)},
                    [type, front](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      GLAIVE_ASSIGN_OR_RETURN(
                          ArrayPtr elements,
                          arrow::Concatenate({lists.values(), args[1].array}));
                      const int64_t first = lists.values()->length();
                      ListPicker picker(args.rows);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (front) picker.Pick(first + i * args[1].stride);
                        if (!lists.IsNull(i)) {
                          for (int64_t k = lists.begin(i); k < lists.end(i); ++k)
                            picker.Pick(k);
                        }
                        if (!front) picker.Pick(first + i * args[1].stride);
                        picker.Close();
                      }
                      return picker.Finish(elements, type);
                    });
}
Result<ValuePtr> Append(CallSite call) { return Attach(call, 0, 1); }
Result<ValuePtr> Prepend(CallSite call) { return Attach(call, 1, 0); }

int ListDepth(const arrow::DataType& type) {
  int depth = 0;
  for (const arrow::DataType* at = &type; IsList(*at); at = at->field(0)->type().get()) {
    ++depth;
  }
  return depth;
}

Result<ValuePtr> ConcatCall(CallSite call) {
  // A list among lists of lists is one of their elements.
  int deepest = 0;
  for (const ValuePtr& argument : call.arguments) {
    deepest = std::max(deepest, ListDepth(*argument->type()));
  }
  for (ValuePtr& argument : call.arguments) {
    while (IsList(*argument->type()) && ListDepth(*argument->type()) < deepest) {
      GLAIVE_ASSIGN_OR_RETURN(argument, MakeListValue({std::move(argument)}));
    }
  }
  std::vector<TypePtr> elements;
  bool large = false;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(TypePtr element, ElementOf(call, i));
    elements.push_back(std::move(element));
    large |= IsLargeList(call.arguments[i]);
  }
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, UnionType(elements));
  const TypePtr type = ListOf(element, large);
  std::vector<ValuePtr> lists;
  for (ValuePtr& argument : call.arguments) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, MakeCast(std::move(argument), type));
    lists.push_back(std::move(list));
  }
  return MakeKernel(
      type, std::move(lists), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        std::vector<Lists> parts;
        arrow::ArrayVector values;
        std::vector<int64_t> first;
        int64_t total = 0;
        for (const Arg& arg : args.args) {
          parts.emplace_back(arg);
          values.push_back(parts.back().values());
          first.push_back(total);
          total += values.back()->length();
        }
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr joined, arrow::Concatenate(values));
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          bool any = false;
          for (size_t p = 0; p < parts.size(); ++p) {
            if (parts[p].IsNull(i)) continue;
            any = true;
            for (int64_t k = parts[p].begin(i); k < parts[p].end(i); ++k) {
              picker.Pick(first[p] + k);
            }
          }
          if (any) {
            picker.Close();
          } else {
            picker.CloseNull();
          }
        }
        return picker.Finish(joined, type);
      });
}

// array_position(list, value[, where to start, from 1])
Result<ValuePtr> Position(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ListAndValue met, Meet(call, 0, 1));
  std::vector<ValuePtr> operands = {met.list, met.value};
  if (call.arguments.size() == 3) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr start, NumberArgument(call, 2, arrow::int64()));
    operands.push_back(std::move(start));
  }
  return MakeKernel(
      arrow::uint64(), std::move(operands),
      [](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), args[1].array}));
        KernelArgs only_list = args;
        only_list.args.resize(1);
        return TryMapNumbers<uint64_t>(
            only_list, arrow::uint64(), [&](int64_t i, uint64_t* out) -> Result<bool> {
              int64_t start = 1;
              if (args.size() == 3) {
                if (args[2].IsNull(i)) return false;
                start = Numbers<int64_t>(args[2])[i];
                if (start < 1 || start - 1 > lists.end(i) - lists.begin(i)) {
                  return EvaluationError("expression: array_position() from element ",
                                         start, " of a list of ",
                                         lists.end(i) - lists.begin(i));
                }
              }
              const auto wanted = codes[1][static_cast<size_t>(i * args[1].stride)];
              for (int64_t k = lists.begin(i) + start - 1; k < lists.end(i); ++k) {
                if (codes[0][static_cast<size_t>(k)] != wanted) continue;
                *out = static_cast<uint64_t>(k - lists.begin(i)) + 1;
                return true;
              }
              return false;
            });
      });
}

Result<ValuePtr> Positions(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ListAndValue met, Meet(call, 0, 1));
  const TypePtr type = ListOf(arrow::uint64());
  return MakeKernel(
      type, {met.list, met.value}, [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), args[1].array}));
        std::vector<uint64_t> places;
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (lists.IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          const auto wanted = codes[1][static_cast<size_t>(i * args[1].stride)];
          for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
            if (codes[0][static_cast<size_t>(k)] != wanted) continue;
            picker.Pick(static_cast<int64_t>(places.size()));
            places.push_back(static_cast<uint64_t>(k - lists.begin(i)) + 1);
          }
          picker.Close();
        }
        const auto count = static_cast<int64_t>(places.size());
        const ArrayPtr elements = std::make_shared<arrow::UInt64Array>(
            count, arrow::Buffer::FromVector(std::move(places)));
        return picker.Finish(elements, type);
      });
}

Result<ValuePtr> Remove(CallSite call) {
  const bool all = call.name.ends_with("_all");
  GLAIVE_ASSIGN_OR_RETURN(ListAndValue met, Meet(call, 0, 1));
  const TypePtr type = met.list->type();
  return MakeKernel(
      type, {met.list, met.value},
      [type, all](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), args[1].array}));
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (lists.IsNull(i) || args[1].IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          const auto unwanted = codes[1][static_cast<size_t>(i * args[1].stride)];
          bool removed = false;
          for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
            if (codes[0][static_cast<size_t>(k)] == unwanted && (all || !removed)) {
              removed = true;
            } else {
              picker.Pick(k);
            }
          }
          picker.Close();
        }
        return picker.Finish(lists.values(), type);
      });
}

// pick(lists, row, picker) for rows that are no null; the elements stay what they are.
template <typename Pick>
Result<ValuePtr> Rearranged(const CallSite& call, const Pick& pick) {
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, ListArgument(call, 0, element));
  const TypePtr type = list->type();
  return MakeKernel(type, {std::move(list)},
                    [type, pick](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      ListPicker picker(args.rows);
                      GLAIVE_RETURN_NOT_OK(pick(lists, args.rows, &picker));
                      return picker.Finish(lists.values(), type);
                    });
}

Result<ValuePtr> Reverse(CallSite call) {
  return Rearranged(call, [](const Lists& lists, int64_t rows, ListPicker* picker) {
    for (int64_t i = 0; i < rows; ++i) {
      if (lists.IsNull(i)) {
        picker->CloseNull();
        continue;
      }
      for (int64_t k = lists.end(i); k > lists.begin(i); --k) picker->Pick(k - 1);
      picker->Close();
    }
    return Status::OK();
  });
}

Result<ValuePtr> Distinct(CallSite call) {
  return Rearranged(call,
                    [](const Lists& lists, int64_t rows, ListPicker* picker) -> Status {
                      GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values()}));
                      std::unordered_set<int32_t> seen;
                      for (int64_t i = 0; i < rows; ++i) {
                        if (lists.IsNull(i)) {
                          picker->CloseNull();
                          continue;
                        }
                        seen.clear();
                        for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
                          if (seen.insert(codes[0][static_cast<size_t>(k)]).second)
                            picker->Pick(k);
                        }
                        picker->Close();
                      }
                      return Status::OK();
                    });
}

Result<ValuePtr> Sort(CallSite call) {
  bool descending = false;
  bool nulls_first = true;
  for (size_t i = 1; i < call.arguments.size(); ++i) {
    const arrow::Buffer* word = ConstantText(call.arguments[i]);
    if (word == nullptr) return WrongArgument(call, i, "a constant string");
    const std::string lower = ToLowerAscii(word->ToString());
    if (i == 1 && (lower == "asc" || lower == "desc")) {
      descending = lower == "desc";
    } else if (i == 2 && (lower == "nulls first" || lower == "nulls last")) {
      nulls_first = lower == "nulls first";
    } else {
      return WrongArgument(call, i, i == 1 ? "ASC or DESC" : "NULLS FIRST or NULLS LAST");
    }
  }
  return Rearranged(
      call, [=](const Lists& lists, int64_t rows, ListPicker* picker) -> Status {
        GLAIVE_ASSIGN_OR_RETURN(const auto ranks, Ranks(lists.values()));
        std::vector<int64_t> row;
        const arrow::Array& values = *lists.values();
        for (int64_t i = 0; i < rows; ++i) {
          if (lists.IsNull(i)) {
            picker->CloseNull();
            continue;
          }
          row.clear();
          for (int64_t k = lists.begin(i); k < lists.end(i); ++k) row.push_back(k);
          std::stable_sort(row.begin(), row.end(), [&](int64_t a, int64_t b) {
            const bool a_null = values.IsNull(a);
            const bool b_null = values.IsNull(b);
            if (a_null || b_null) return a_null != b_null && a_null == nulls_first;
            const int64_t x = ranks[static_cast<size_t>(a)];
            const int64_t y = ranks[static_cast<size_t>(b)];
            return descending ? x > y : x < y;
          });
          for (int64_t k : row) picker->Pick(k);
          picker->Close();
        }
        return Status::OK();
      });
}

Result<ValuePtr> Extreme(CallSite call) {
  const bool greatest = call.name.ends_with("max");
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, ElementOf(call, 0));
  return MakeKernel(element, std::move(call.arguments),
                    [greatest](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      GLAIVE_ASSIGN_OR_RETURN(const auto ranks, Ranks(lists.values()));
                      std::vector<int64_t> picks(static_cast<size_t>(args.rows), -1);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (lists.IsNull(i)) continue;
                        int64_t& best = picks[static_cast<size_t>(i)];
                        for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
                          if (lists.values()->IsNull(k)) continue;
                          const auto rank = [&](int64_t e) {
                            return ranks[static_cast<size_t>(e)];
                          };
                          if (best < 0 || (rank(k) > rank(best)) == greatest) best = k;
                        }
                      }
                      return TakeElements(lists.values(), picks);
                    });
}

Result<ValuePtr> RepeatElement(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr count, NumberArgument(call, 1, arrow::int64()));
  const TypePtr element = ValueType(call.arguments[0]->type());
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, MakeCast(call.arguments[0], element));
  const TypePtr type = ListOf(element);
  return MakeKernel(type, {std::move(value), std::move(count)},
                    [type](const KernelArgs& args) -> Result<ArrayPtr> {
                      constexpr int64_t kMost = int64_t{1} << 26;
                      const Numbers<int64_t> counts(args[1]);
                      ListPicker picker(args.rows);
                      int64_t total = 0;
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (args[1].IsNull(i)) {
                          picker.CloseNull();
                          continue;
                        }
                        const int64_t n = std::max<int64_t>(counts[i], 0);
                        if (n > kMost || (total += n) > kMost) {
                          return InvalidInput("expression: array_repeat() of ", n,
                                              " elements is too much");
                        }
                        for (int64_t k = 0; k < n; ++k) picker.Pick(i * args[0].stride);
                        picker.Close();
                      }
                      return picker.Finish(args[0].array, type);
                    });
}

}  // namespace

Result<ValuePtr> ConcatLists(ValuePtr left, ValuePtr right) {
  const bool left_list = IsList(*left->type());
  const bool right_list = IsList(*right->type());
  CallSite call;
  call.arguments = {std::move(left), std::move(right)};
  if (left_list && right_list) {
    call.name = "array_concat";
    return ConcatCall(std::move(call));
  }
  call.name = left_list ? "array_append" : "array_prepend";
  return left_list ? Append(std::move(call)) : Prepend(std::move(call));
}

Result<ValuePtr> MakeListValue(std::vector<ValuePtr> elements) {
  std::vector<TypePtr> types;
  for (const ValuePtr& element : elements) types.push_back(element->type());
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, UnionType(types));
  const TypePtr type = ListOf(element);
  if (elements.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr none, arrow::MakeEmptyArray(element));
    return ConstantOf(std::make_shared<arrow::ListScalar>(std::move(none), type));
  }
  for (ValuePtr& value : elements) {
    GLAIVE_ASSIGN_OR_RETURN(value, MakeCast(std::move(value), element));
  }
  return MakeKernel(
      type, std::move(elements), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        arrow::ArrayVector values;
        std::vector<int64_t> first;
        int64_t total = 0;
        for (const Arg& arg : args.args) {
          values.push_back(arg.array);
          first.push_back(total);
          total += arg.array->length();
        }
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr joined, arrow::Concatenate(values));
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          for (size_t k = 0; k < args.size(); ++k)
            picker.Pick(first[k] + i * args[k].stride);
          picker.Close();
        }
        return picker.Finish(joined, type);
      });
}

Result<ValuePtr> ListElement(ValuePtr list, ValuePtr index) {
  const TypePtr element = ElementType(*list->type());
  if (element == nullptr) {
    return InvalidInput("expression: a position in brackets needs a list, found ",
                        list->type()->ToString());
  }
  GLAIVE_ASSIGN_OR_RETURN(index, MakeCast(std::move(index), arrow::int64()));
  return MakeKernel(element, {std::move(list), std::move(index)},
                    [](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      const Numbers<int64_t> indices(args[1]);
                      std::vector<int64_t> picks(static_cast<size_t>(args.rows), -1);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (lists.IsNull(i) || args[1].IsNull(i)) continue;
                        const int64_t size = lists.end(i) - lists.begin(i);
                        const int64_t n = indices[i];
                        const int64_t at = n > 0 ? n - 1 : n < 0 ? size + n : -1;
                        if (at < 0 || at >= size) continue;
                        picks[static_cast<size_t>(i)] = lists.begin(i) + at;
                      }
                      return TakeElements(lists.values(), picks);
                    });
}

// Arguments: list, first, last[, step], positions from 1, from the end when negative; a
// bound that is NULL by itself is the end of the list.
Result<ValuePtr> ListSlice(std::vector<ValuePtr> arguments) {
  const TypePtr element = ElementType(*arguments[0]->type());
  if (element == nullptr) {
    return InvalidInput("expression: a slice needs a list, found ",
                        arguments[0]->type()->ToString());
  }
  const bool large = IsLargeList(arguments[0]);
  const TypePtr type = ListOf(element, large);
  const bool open_first = arguments[1]->type()->id() == Type::NA;
  const bool open_last = arguments[2]->type()->id() == Type::NA;
  std::vector<ValuePtr> operands;
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, MakeCast(std::move(arguments[0]), type));
  operands.push_back(std::move(list));
  for (size_t i = 1; i < arguments.size(); ++i) {
    const bool open = i < 3 && (i == 1 ? open_first : open_last);
    ValuePtr bound = ConstantOf(std::make_shared<arrow::Int64Scalar>(i == 1 ? 1 : -1));
    if (!open) {
      GLAIVE_ASSIGN_OR_RETURN(bound, MakeCast(std::move(arguments[i]), arrow::int64()));
    }
    operands.push_back(std::move(bound));
  }
  return MakeKernel(
      type, std::move(operands), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        const Numbers<int64_t> firsts(args[1]);
        const Numbers<int64_t> lasts(args[2]);
        ListPicker picker(args.rows);
        Words valid(static_cast<size_t>(WordCount(args.rows)) + 1);
        CommonValidity(args, valid.data());
        for (int64_t i = 0; i < args.rows; ++i) {
          if (!GetBit(valid.data(), i)) {
            picker.CloseNull();
            continue;
          }
          const int64_t size = lists.end(i) - lists.begin(i);
          int64_t first = firsts[i] < 0 ? size + firsts[i] + 1 : firsts[i];
          int64_t last = lasts[i] < 0 ? size + lasts[i] + 1 : lasts[i];
          const int64_t step = args.size() > 3 ? Numbers<int64_t>(args[3])[i] : 1;
          if (step == 0)
            return InvalidInput("expression: the step of a slice must not be 0");
          first = std::max<int64_t>(first, 1);
          last = std::min(last, size);
          if (step > 0) {
            for (int64_t k = first; k <= last; k += std::min(step, size)) {
              picker.Pick(lists.begin(i) + k - 1);
              if (size == 0) break;
            }
          } else if (size > 0) {
            first = std::min(first, size);
            last = std::max<int64_t>(last, 1);
            for (int64_t k = first; k >= last; k += std::max(step, -size)) {
              picker.Pick(lists.begin(i) + k - 1);
            }
          }
          picker.Close();
        }
        return picker.Finish(lists.values(), type);
      });
}

const std::vector<FunctionEntry>& ListFunctions() {
  static const std::vector<FunctionEntry> functions = [] {
    std::vector<FunctionEntry> all = {
        {"array_append", 2, 2, Append},
        {"array_cat", 1, SIZE_MAX, ConcatCall},
        {"array_concat", 1, SIZE_MAX, ConcatCall},
        {"array_contains", 2, 2, Has},
        {"array_distinct", 1, 1, Distinct},
        {"array_element", 2, 2, Element},
        {"array_empty", 1, 1, Empty},
        {"array_extract", 2, 2, Element},
        {"array_has", 2, 2, Has},
        {"array_has_all", 2, 2, HasSeveral<true>},
        {"array_has_any", 2, 2, HasSeveral<false>},
        {"array_indexof", 2, 3, Position},
        {"array_max", 1, 1, Extreme},
        {"array_min", 1, 1, Extreme},
        {"array_position", 2, 3, Position},
        {"array_positions", 2, 2, Positions},
        {"array_prepend", 2, 2, Prepend},
        {"array_push_back", 2, 2, Append},
        {"array_push_front", 2, 2, Prepend},
        {"array_remove", 2, 2, Remove},
        {"array_remove_all", 2, 2, Remove},
        {"array_repeat", 2, 2, RepeatElement},
        {"array_reverse", 1, 1, Reverse},
        {"array_slice", 3, 4, Slice},
        {"array_sort", 1, 3, Sort},
        {"arrays_overlap", 2, 2, HasSeveral<false>},
        {"empty", 1, 1, Empty},
        {"list_append", 2, 2, Append},
        {"list_cat", 1, SIZE_MAX, ConcatCall},
        {"list_concat", 1, SIZE_MAX, ConcatCall},
        {"list_contains", 2, 2, Has},
        {"list_distinct", 1, 1, Distinct},
        {"list_element", 2, 2, Element},
        {"list_empty", 1, 1, Empty},
        {"list_extract", 2, 2, Element},
        {"list_has", 2, 2, Has},
        {"list_has_all", 2, 2, HasSeveral<true>},
        {"list_has_any", 2, 2, HasSeveral<false>},
        {"list_indexof", 2, 3, Position},
        {"list_max", 1, 1, Extreme},
        {"list_position", 2, 3, Position},
        {"list_positions", 2, 2, Positions},
        {"list_prepend", 2, 2, Prepend},
        {"list_push_back", 2, 2, Append},
        {"list_push_front", 2, 2, Prepend},
        {"list_remove", 2, 2, Remove},
        {"list_remove_all", 2, 2, Remove},
        {"list_repeat", 2, 2, RepeatElement},
        {"list_reverse", 1, 1, Reverse},
        {"list_slice", 3, 4, Slice},
        {"list_sort", 1, 3, Sort},
        {"make_array", 0, SIZE_MAX, MakeArrayCall},
        {"make_list", 0, SIZE_MAX, MakeArrayCall},
    };
    all.insert(all.end(), ListSetFunctions().begin(), ListSetFunctions().end());
    all.insert(all.end(), ListMakeFunctions().begin(), ListMakeFunctions().end());
    return all;
  }();
  return functions;
}

}  // namespace glaive::expr
