// Functions that make maps and list their entries.
#include <unordered_set>

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

TypePtr ListOf(const TypePtr& element) {
  return arrow::list(arrow::field("item", element));
}

// From a list of keys and a list of as many values, which may be null.
ValuePtr MapOfLists(ValuePtr keys, ValuePtr values) {
  const TypePtr type =
      arrow::map(ElementType(*keys->type()), ElementType(*values->type()));
  return MakeKernel(
      type, {std::move(keys), std::move(values)},
      [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists keys_lists(args[0]);
        const Lists value_lists(args[1]);
        GLAIVE_ASSIGN_OR_RETURN(const auto codes, Encode({keys_lists.values()}));
        ListPicker key_picker(args.rows);
        ListPicker value_picker(args.rows);
        std::unordered_set<int32_t> seen;
        for (int64_t i = 0; i < args.rows; ++i) {
          if (keys_lists.IsNull(i)) {
            key_picker.CloseNull();
            value_picker.CloseNull();
            continue;
          }
          const int64_t size = keys_lists.end(i) - keys_lists.begin(i);
          if (value_lists.IsNull(i) ||
              value_lists.end(i) - value_lists.begin(i) != size) {
            return EvaluationError(
                "expression: a map needs as many values as it has keys");
          }
          seen.clear();
          for (int64_t k = 0; k < size; ++k) {
            const int64_t key = keys_lists.begin(i) + k;
            if (keys_lists.values()->IsNull(key)) {
              return EvaluationError("expression: a key of a map is NULL");
            }
            if (!seen.insert(codes[0][static_cast<size_t>(key)]).second) {
              return EvaluationError("expression: a map has a key twice");
            }
            key_picker.Pick(key);
            value_picker.Pick(value_lists.begin(i) + k);
          }
          key_picker.Close();
          value_picker.Close();
        }
        GLAIVE_ASSIGN_OR_RETURN(
            const ArrayPtr key_list,
            key_picker.Finish(keys_lists.values(), ListOf(keys_lists.values()->type())));
        GLAIVE_ASSIGN_OR_RETURN(
            const ArrayPtr value_list,
            value_picker.Finish(value_lists.values(),
                                ListOf(value_lists.values()->type())));
        const auto& list = static_cast<const arrow::ListArray&>(*key_list);
        auto entries = arrow::ArrayData::Make(
            type->field(0)->type(), list.values()->length(), {nullptr},
            {list.values()->data(),
             static_cast<const arrow::ListArray&>(*value_list).values()->data()},
            0);
        const std::shared_ptr<arrow::ArrayData>& data = key_list->data();
        return arrow::MakeArray(arrow::ArrayData::Make(
            type, args.rows, {data->buffers[0], data->buffers[1]}, {std::move(entries)}));
      });
}

Result<ValuePtr> AsPlainList(const CallSite& call, size_t i) {
  const TypePtr element = ElementType(*call.arguments[i]->type());
  if (element == nullptr) return WrongArgument(call, i, "a list");
  return MakeCast(call.arguments[i], ListOf(ValueType(element)));
}

// map(keys, values): lists, or one key and its value.
Result<ValuePtr> MapCall(CallSite call) {
  if (!IsList(*call.arguments[0]->type()) && !IsList(*call.arguments[1]->type())) {
    for (ValuePtr& argument : call.arguments) {
      GLAIVE_ASSIGN_OR_RETURN(argument, MakeListValue({std::move(argument)}));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr keys, AsPlainList(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr values, AsPlainList(call, 1));
  return MapOfLists(std::move(keys), std::move(values));
}

// make_map(key, value, key, value, ...)
Result<ValuePtr> MakeMapCall(CallSite call) {
  if (call.arguments.size() % 2 != 0) {
    return InvalidInput("expression: make_map takes pairs of key and value");
  }
  std::vector<ValuePtr> keys;
  std::vector<ValuePtr> values;
  for (size_t i = 0; i < call.arguments.size(); i += 2) {
    keys.push_back(std::move(call.arguments[i]));
    values.push_back(std::move(call.arguments[i + 1]));
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr key_list, MakeListValue(std::move(keys)));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value_list, MakeListValue(std::move(values)));
  return MapOfLists(std::move(key_list), std::move(value_list));
}

// The entries as structs of key and value.
Result<ValuePtr> MapEntries(CallSite call) {
  if (call.arguments[0]->type()->id() != Type::MAP) {
    return WrongArgument(call, 0, "a map");
  }
  const auto& map = static_cast<const arrow::MapType&>(*call.arguments[0]->type());
  const TypePtr type = arrow::list(arrow::field(
      "item",
      arrow::struct_({arrow::field("key", map.key_type(), false), map.item_field()}),
      false));
  return MakeKernel(type, std::move(call.arguments),
                    [type](const KernelArgs& args) -> Result<ArrayPtr> {
                      ArrayPtr full = args[0].array;
                      if (args[0].constant() && args.rows != 1) {
                        GLAIVE_ASSIGN_OR_RETURN(auto scalar, full->GetScalar(0));
                        GLAIVE_ASSIGN_OR_RETURN(
                            full, arrow::MakeArrayFromScalar(*scalar, args.rows));
                      }
                      const auto data = full->data()->Copy();
                      data->type = type;
                      data->child_data[0] = data->child_data[0]->Copy();
                      data->child_data[0]->type = type->field(0)->type();
                      return arrow::MakeArray(data);
                    });
}

}  // namespace

const std::vector<FunctionEntry>& MapFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"make_map", 0, SIZE_MAX, MakeMapCall},
      {"map", 2, 2, MapCall},
      {"map_entries", 1, 1, MapEntries},
  };
  return functions;
}

}  // namespace glaive::expr
