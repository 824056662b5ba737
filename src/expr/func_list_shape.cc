// Functions on the shape of lists: dimensions, resizing, zipping, leaving elements out.
#include <algorithm>
#include <string>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/lists.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// How many elements the lists of one evaluation may have together.
constexpr int64_t kMostElements = int64_t{1} << 26;

TypePtr ListOf(const TypePtr& element, bool large = false) {
  const auto field = arrow::field("item", element);
  return large ? arrow::large_list(field) : arrow::list(field);
}

// The argument's element type, when it is a list.
Result<TypePtr> ElementOf(const CallSite& call, size_t i) {
  const TypePtr element = ElementType(*call.arguments[i]->type());
  if (element == nullptr) return WrongArgument(call, i, "a list");
  return element;
}

// The lists, the lists in them, and so on.
std::vector<Lists> Levels(const Arg& arg) {
  std::vector<Lists> levels;
  levels.emplace_back(arg);
  while (IsList(*levels.back().values()->type())) {
    levels.emplace_back(Arg{levels.back().values(), 1});
  }
  return levels;
}

Result<ValuePtr> ListArgument(const CallSite& call, size_t i, const TypePtr& element) {
  const bool large = call.arguments[i]->type()->id() == Type::LARGE_LIST;
  return MakeCast(call.arguments[i], ListOf(element, large));
}

// array_length(list[, dimension]): of the first elements, where the dimension is not the
// first.
Result<ValuePtr> ArrayLength(CallSite call) {
  GLAIVE_RETURN_NOT_OK(ElementOf(call, 0).status());
  if (call.arguments.size() == 2) {
    GLAIVE_ASSIGN_OR_RETURN(call.arguments[1], NumberArgument(call, 1, arrow::int64()));
  }
  return MakeKernel(
      arrow::uint64(), std::move(call.arguments), [](const KernelArgs& args) {
        const std::vector<Lists> levels = Levels(args[0]);
        return TryMapNumbers<uint64_t>(
            args, arrow::uint64(), [&](int64_t i, uint64_t* out) -> Result<bool> {
              const int64_t wanted = args.size() == 2 ? Numbers<int64_t>(args[1])[i] : 1;
              if (wanted < 1 || wanted > static_cast<int64_t>(levels.size())) {
                return false;
              }
              int64_t row = i;
              for (size_t k = 0; k + 1 < static_cast<size_t>(wanted); ++k) {
                if (levels[k].IsNull(row) || levels[k].begin(row) == levels[k].end(row)) {
                  return false;
                }
                row = levels[k].begin(row);
              }
              const Lists& last = levels[static_cast<size_t>(wanted) - 1];
              if (last.IsNull(row)) return false;
              *out = static_cast<uint64_t>(last.end(row) - last.begin(row));
              return true;
            });
      });
}

// The entries of a map. Of lists, what array_dims() says multiplied: how many values
// there are where inner lists are as long as the first.
Result<ValuePtr> Cardinality(CallSite call) {
  if (call.arguments[0]->type()->id() == Type::MAP) {
    return MakeKernel(
        arrow::uint64(), std::move(call.arguments), [](const KernelArgs& args) {
          const auto& maps = static_cast<const arrow::MapArray&>(*args[0].array);
          return MapNumbers<uint64_t>(args, arrow::uint64(), [&](int64_t i) {
            return static_cast<uint64_t>(maps.value_length(i * args[0].stride));
          });
        });
  }
  GLAIVE_RETURN_NOT_OK(ElementOf(call, 0).status());
  return MakeKernel(
      arrow::uint64(), std::move(call.arguments), [](const KernelArgs& args) {
        const std::vector<Lists> levels = Levels(args[0]);
        return MapNumbers<uint64_t>(args, arrow::uint64(), [&](int64_t i) {
          uint64_t product = 1;
          int64_t row = i;
          for (const Lists& level : levels) {
            if (level.IsNull(row)) return uint64_t{0};
            product *= static_cast<uint64_t>(level.end(row) - level.begin(row));
            if (product == 0) break;
            row = level.begin(row);
          }
          return product;
        });
      });
}

// The length of a list, of its first element, and so on; null for empty lists.
Result<ValuePtr> Dimensions(CallSite call) {
  GLAIVE_RETURN_NOT_OK(ElementOf(call, 0).status());
  const TypePtr type = ListOf(arrow::uint64());
  return MakeKernel(
      type, std::move(call.arguments),
      [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const std::vector<Lists> levels = Levels(args[0]);
        std::vector<uint64_t> sizes;
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (levels[0].IsNull(i) || levels[0].begin(i) == levels[0].end(i)) {
            picker.CloseNull();
            continue;
          }
          int64_t row = i;
          for (size_t k = 0; k < levels.size(); ++k) {
            const bool null = levels[k].IsNull(row);  // as long as an empty one
            const int64_t begin = null ? 0 : levels[k].begin(row);
            const int64_t end = null ? 0 : levels[k].end(row);
            picker.Pick(static_cast<int64_t>(sizes.size()));
            sizes.push_back(static_cast<uint64_t>(end - begin));
            if (begin == end) break;
            row = begin;
          }
          picker.Close();
        }
        const auto count = static_cast<int64_t>(sizes.size());
        return picker.Finish(std::make_shared<arrow::UInt64Array>(
                                 count, arrow::Buffer::FromVector(std::move(sizes))),
                             type);
      });
}

// list, size[, what to fill with]
Result<ValuePtr> Resize(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(TypePtr element, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr size, NumberArgument(call, 1, arrow::int64()));
  ValuePtr filler = MakeNull(element);
  if (call.arguments.size() == 3) {
    GLAIVE_ASSIGN_OR_RETURN(element, UnionType({element, call.arguments[2]->type()}));
    GLAIVE_ASSIGN_OR_RETURN(filler, MakeCast(call.arguments[2], element));
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, ListArgument(call, 0, element));
  const TypePtr type = list->type();
  return MakeKernel(
      type, {std::move(list), std::move(size), std::move(filler)},
      [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        const Numbers<int64_t> sizes(args[1]);
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr elements,
                                arrow::Concatenate({lists.values(), args[2].array}));
        const int64_t fillers = lists.values()->length();
        ListPicker picker(args.rows);
        int64_t total = 0;
        for (int64_t i = 0; i < args.rows; ++i) {
          if (lists.IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          // As upstream: a size that is NULL is 0.
          const int64_t wanted = args[1].IsNull(i) ? 0 : sizes[i];
          if (wanted < 0) {
            return EvaluationError("expression: array_resize() to ", wanted, " elements");
          }
          if (wanted > kMostElements || (total += wanted) > kMostElements) {
            return EvaluationError("expression: array_resize() to ", wanted,
                                   " elements is too much");
          }
          const int64_t kept = std::min(wanted, lists.end(i) - lists.begin(i));
          for (int64_t k = 0; k < kept; ++k) picker.Pick(lists.begin(i) + k);
          for (int64_t k = kept; k < wanted; ++k) {
            picker.Pick(fillers + i * args[2].stride);
          }
          picker.Close();
        }
        return picker.Finish(elements, type);
      });
}

// Lists of structs with members "1", "2", ...; shorter lists are filled up with nulls. A
// row is null where all lists are.
Result<ValuePtr> Zip(CallSite call) {
  arrow::FieldVector fields;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    TypePtr element = arrow::null();
    if (call.arguments[i]->type()->id() == Type::NA) {
      call.arguments[i] = MakeNull(ListOf(element));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(element, ElementOf(call, i));
    }
    fields.push_back(arrow::field(std::to_string(i + 1), element));
  }
  const TypePtr row_type = arrow::struct_(std::move(fields));
  const TypePtr type = ListOf(row_type);
  return MakeKernel(type, std::move(call.arguments),
                    [type, row_type](const KernelArgs& args) -> Result<ArrayPtr> {
                      std::vector<Lists> lists;
                      for (const Arg& arg : args.args) lists.emplace_back(arg);
                      std::vector<std::vector<int64_t>> picks(args.size());
                      ListPicker picker(args.rows);
                      int64_t total = 0;
                      for (int64_t i = 0; i < args.rows; ++i) {
                        bool null = true;
                        int64_t longest = 0;
                        for (const Lists& list : lists) {
                          if (list.IsNull(i)) continue;
                          null = false;
                          longest = std::max(longest, list.end(i) - list.begin(i));
                        }
                        if (null) {
                          picker.CloseNull();
                          continue;
                        }
                        for (size_t k = 0; k < lists.size(); ++k) {
                          const int64_t size = lists[k].IsNull(i)
                                                   ? 0
                                                   : lists[k].end(i) - lists[k].begin(i);
                          for (int64_t e = 0; e < longest; ++e) {
                            picks[k].push_back(e < size ? lists[k].begin(i) + e : -1);
                          }
                        }
                        for (int64_t e = 0; e < longest; ++e) picker.Pick(total++);
                        picker.Close();
                      }
                      arrow::ArrayVector members;
                      for (size_t k = 0; k < lists.size(); ++k) {
                        GLAIVE_ASSIGN_OR_RETURN(
                            ArrayPtr member, TakeElements(lists[k].values(), picks[k]));
                        members.push_back(std::move(member));
                      }
                      return picker.Finish(std::make_shared<arrow::StructArray>(
                                               row_type, total, std::move(members)),
                                           type);
                    });
}

// Without the first n elements that are equal to the value.
Result<ValuePtr> RemoveSome(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(TypePtr element, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(element, ComparisonType(element, call.arguments[1]->type()));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, ListArgument(call, 0, element));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, MakeCast(call.arguments[1], element));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr most, NumberArgument(call, 2, arrow::int64()));
  const TypePtr type = list->type();
  return MakeKernel(
      type, {std::move(list), std::move(value), std::move(most)},
      [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        const Numbers<int64_t> most_values(args[2]);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({lists.values(), args[1].array}));
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (lists.IsNull(i) || args[1].IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          const auto unwanted = codes[1][static_cast<size_t>(i * args[1].stride)];
          int64_t left = args[2].IsNull(i) ? 0 : most_values[i];
          for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
            if (left > 0 && codes[0][static_cast<size_t>(k)] == unwanted) {
              --left;
            } else {
              picker.Pick(k);
            }
          }
          picker.Close();
        }
        return picker.Finish(lists.values(), type);
      });
}

// Without the elements that are null.
Result<ValuePtr> Compact(CallSite call) {
  if (call.arguments[0]->type()->id() == Type::NA) return MakeNull(arrow::null());
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr element, ElementOf(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, ListArgument(call, 0, element));
  const TypePtr type = list->type();
  return MakeKernel(type, {std::move(list)},
                    [type](const KernelArgs& args) -> Result<ArrayPtr> {
                      const Lists lists(args[0]);
                      ListPicker picker(args.rows);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (lists.IsNull(i)) {
                          picker.CloseNull();
                          continue;
                        }
                        for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
                          if (lists.values()->IsValid(k)) picker.Pick(k);
                        }
                        picker.Close();
                      }
                      return picker.Finish(lists.values(), type);
                    });
}

}  // namespace

const std::vector<FunctionEntry>& ListShapeFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"array_compact", 1, 1, Compact},    {"array_dims", 1, 1, Dimensions},
      {"array_length", 1, 2, ArrayLength}, {"cardinality", 1, 1, Cardinality},
      {"list_length", 1, 2, ArrayLength},  {"array_remove_n", 3, 3, RemoveSome},
      {"array_resize", 2, 3, Resize},      {"arrays_zip", 1, SIZE_MAX, Zip},
      {"list_compact", 1, 1, Compact},     {"list_dims", 1, 1, Dimensions},
      {"list_remove_n", 3, 3, RemoveSome}, {"list_resize", 2, 3, Resize},
      {"list_zip", 1, SIZE_MAX, Zip},
  };
  return functions;
}

}  // namespace glaive::expr
