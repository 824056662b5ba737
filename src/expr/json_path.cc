// Where a JsonPath leads in a document.
#include "expr/json_path.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <deque>

#include "base/evaluation_error.h"

namespace glaive::expr {
namespace {

using ItemKind = JsonItem::Kind;
using Items = std::vector<JsonItem>;

// Upstream has no bound; `.**.**` over a deep document would take all memory.
constexpr size_t kMaxItems = size_t{1} << 24;

enum class Truth : uint8_t { kFalse, kTrue, kNull };

Truth TruthOf(bool value) { return value ? Truth::kTrue : Truth::kFalse; }

// A literal, or an item without its surroundings.
struct Value {
  ItemKind kind = ItemKind::kNull;
  bool flag = false;
  JsonNumber number;
  std::string_view text;
};

double AsDouble(const JsonNumber& number) {
  return number.is_integer ? static_cast<double>(number.integer) : number.floating;
}

std::weak_ordering OrderOf(const JsonNumber& a, const JsonNumber& b) {
  if (a.is_integer && b.is_integer) return a.integer <=> b.integer;
  const double x = AsDouble(a);
  const double y = AsDouble(b);
  // NaN is the greatest number.
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) <=> std::isnan(y);
  if (x < y) return std::weak_ordering::less;
  return x > y ? std::weak_ordering::greater : std::weak_ordering::equivalent;
}

// Values of different kinds differ, and have no order; arrays and objects have neither.
Truth Compare(char op, const Value& a, const Value& b) {
  const auto container = [](const Value& value) {
    return value.kind == ItemKind::kArray || value.kind == ItemKind::kObject;
  };
  if (container(a) || container(b)) return Truth::kNull;
  if (a.kind != b.kind) return op == '!' ? Truth::kTrue : Truth::kNull;
  std::weak_ordering order = std::weak_ordering::equivalent;
  switch (a.kind) {
    case ItemKind::kBool:
      order = a.flag <=> b.flag;
      break;
    case ItemKind::kNumber:
      order = OrderOf(a.number, b.number);
      break;
    case ItemKind::kString:
      order = a.text.compare(b.text) <=> 0;
      break;
    default:
      break;  // null is null
  }
  switch (op) {
    case '=':
      return TruthOf(order == 0);
    case '!':
      return TruthOf(order != 0);
    case '<':
      return TruthOf(order < 0);
    case '>':
      return TruthOf(order > 0);
    case 'l':
      return TruthOf(order <= 0);
    default:
      return TruthOf(order >= 0);
  }
}

Status NoNumber() {
  return EvaluationError(
      "expression: a JSON path calculates with what is not one number");
}

Status Overflow() {
  return EvaluationError("expression: a number of a JSON path is out of range");
}

// Whole numbers are unsigned where neither is negative. Otherwise both are taken for
// int64, as upstream does it, so that large ones wrap.
Result<JsonNumber> Calculate(char op, const JsonNumber& a, const JsonNumber& b) {
  JsonNumber out;
  const double x = AsDouble(a);
  const double y = AsDouble(b);
  if ((op == '/' || op == '%') && y == 0) {
    return EvaluationError("expression: a JSON path divides by zero");
  }
  if (op == '/' || !a.is_integer || !b.is_integer) {
    out.floating = op == '+'   ? x + y
                   : op == '-' ? x - y
                   : op == '*' ? x * y
                   : op == '/' ? x / y
                               : std::fmod(x, y);
    return out;
  }
  out.is_integer = true;
  if (a.integer >= 0 && b.integer >= 0 && op != '-') {
    const auto u = static_cast<uint64_t>(a.integer);
    const auto v = static_cast<uint64_t>(b.integer);
    uint64_t value = 0;
    const bool overflow = op == '+'   ? __builtin_add_overflow(u, v, &value)
                          : op == '*' ? __builtin_mul_overflow(u, v, &value)
                                      : false;
    if (overflow) return Overflow();
    out.integer = op == '%' ? u % v : value;
    return out;
  }
  out.is_signed = true;
  const auto i = static_cast<int64_t>(a.integer);
  const auto k = static_cast<int64_t>(b.integer);
  int64_t value = 0;
  const bool overflow = op == '+'   ? __builtin_add_overflow(i, k, &value)
                        : op == '-' ? __builtin_sub_overflow(i, k, &value)
                        : op == '*' ? __builtin_mul_overflow(i, k, &value)
                                    : i == INT64_MIN && k == -1;
  if (overflow) return Overflow();
  out.integer = op == '%' ? i % k : value;
  return out;
}

class Evaluation {
 public:
  explicit Evaluation(JsonItem root) : root_(root) {}

  Status Walk(const std::vector<JsonStep>& steps, Items* items) {
    Items next;
    for (const JsonStep& step : steps) {
      next.clear();
      for (const JsonItem& item : *items) {
        GLAIVE_RETURN_NOT_OK(Take(step, item, &next));
        // What one step gives is little more than what it was given, or is in memory.
        if (next.size() > kMaxItems) {
          return EvaluationError("expression: a JSON path leads to too many values");
        }
      }
      std::swap(*items, next);
    }
    return Status::OK();
  }

  Result<Truth> Test(const JsonExpr& expr, const JsonItem& current) {
    switch (expr.kind) {
      case JsonExpr::Kind::kAnd:
      case JsonExpr::Kind::kOr: {
        // One that is null makes all of it null, whatever the others are.
        const bool is_and = expr.kind == JsonExpr::Kind::kAnd;
        bool all = true;
        bool any = false;
        bool null = false;
        for (const auto& child : expr.children) {
          GLAIVE_ASSIGN_OR_RETURN(const Truth truth, Test(*child, current));
          null |= truth == Truth::kNull;
          all &= truth == Truth::kTrue;
          any |= truth == Truth::kTrue;
        }
        return null ? Truth::kNull : TruthOf(is_and ? all : any);
      }
      case JsonExpr::Kind::kExists: {
        Items items = {Start(expr.left, current)};
        GLAIVE_RETURN_NOT_OK(Walk(expr.left.steps, &items));
        return TruthOf(!items.empty());
      }
      case JsonExpr::Kind::kCompare:
      case JsonExpr::Kind::kStartsWith: {
        GLAIVE_ASSIGN_OR_RETURN(const auto left, Values(expr.left, current));
        GLAIVE_ASSIGN_OR_RETURN(const auto right, Values(expr.right, current));
        // The first pair that is true or null decides.
        for (const Value& a : left) {
          for (const Value& b : right) {
            Truth truth = Truth::kNull;
            if (expr.kind == JsonExpr::Kind::kCompare) {
              truth = Compare(expr.op, a, b);
            } else if (a.kind == ItemKind::kString && b.kind == ItemKind::kString) {
              truth = TruthOf(a.text.starts_with(b.text));
            }
            if (truth != Truth::kFalse) return truth;
          }
        }
        return Truth::kFalse;
      }
      default:
        return Truth::kNull;  // arithmetic is no condition
    }
  }

  Result<bool> Arithmetic(const JsonExpr& expr, bool first, std::string* out) {
    GLAIVE_ASSIGN_OR_RETURN(const auto left, Values(expr.left, root_));
    std::deque<std::string> documents;
    Items results;
    const auto add = [&](const JsonNumber& number) -> Status {
      documents.emplace_back();
      AppendJsonNumber(number, &documents.back());
      GLAIVE_ASSIGN_OR_RETURN(const JsonItem item, JsonItem::Root(documents.back()));
      results.push_back(item);
      return Status::OK();
    };
    if (expr.kind == JsonExpr::Kind::kUnary) {
      for (const Value& value : left) {
        if (value.kind != ItemKind::kNumber) return NoNumber();
        JsonNumber number = value.number;
        if (expr.op == '-') {
          if (number.is_integer &&
              (number.integer > INT64_MAX || number.integer == INT64_MIN)) {
            return Overflow();
          }
          number.is_signed = true;
          number.integer = -number.integer;
          number.floating = -number.floating;
        }
        GLAIVE_RETURN_NOT_OK(add(number));
      }
    } else {
      GLAIVE_ASSIGN_OR_RETURN(const auto right, Values(expr.right, root_));
      if (left.size() != 1 || right.size() != 1 || left[0].kind != ItemKind::kNumber ||
          right[0].kind != ItemKind::kNumber) {
        return NoNumber();
      }
      GLAIVE_ASSIGN_OR_RETURN(const JsonNumber number,
                              Calculate(expr.op, left[0].number, right[0].number));
      GLAIVE_RETURN_NOT_OK(add(number));
    }
    if (first && results.size() > 1) results.resize(1);
    return AppendJsonItems(results, out);
  }

 private:
  JsonItem Start(const JsonOperand& operand, const JsonItem& current) const {
    return operand.kind == JsonOperand::Kind::kRoot ? root_ : current;
  }

  // Arrays count as their elements.
  Result<std::vector<Value>> Values(const JsonOperand& operand, const JsonItem& current) {
    std::vector<Value> values;
    if (operand.kind == JsonOperand::Kind::kLiteral) {
      values.push_back({operand.literal, operand.flag, operand.number, operand.text});
      return values;
    }
    const auto add = [&values](const JsonItem& item) -> Status {
      Value value{item.kind(), item.flag(), {}, {}};
      if (item.kind() == ItemKind::kString) value.text = item.text();
      if (item.kind() == ItemKind::kNumber) {
        GLAIVE_ASSIGN_OR_RETURN(value.number, item.number());
      }
      values.push_back(value);
      return Status::OK();
    };
    Items items = {Start(operand, current)};
    GLAIVE_RETURN_NOT_OK(Walk(operand.steps, &items));
    for (const JsonItem& item : items) {
      if (item.kind() != ItemKind::kArray) {
        GLAIVE_RETURN_NOT_OK(add(item));
        continue;
      }
      GLAIVE_ASSIGN_OR_RETURN(const Items elements, item.Children());
      for (const JsonItem& element : elements) GLAIVE_RETURN_NOT_OK(add(element));
    }
    return values;
  }

  Status Take(const JsonStep& step, const JsonItem& item, Items* out) {
    switch (step.kind) {
      case JsonStep::Kind::kName: {
        GLAIVE_ASSIGN_OR_RETURN(const JsonItem member, item.Member(step.name));
        if (member.exists()) out->push_back(member);
        return Status::OK();
      }
      case JsonStep::Kind::kAnyMember:
      case JsonStep::Kind::kAnyElement: {
        const bool members = step.kind == JsonStep::Kind::kAnyMember;
        if (item.kind() != (members ? ItemKind::kObject : ItemKind::kArray)) {
          if (!members) out->push_back(item);
          return Status::OK();
        }
        GLAIVE_ASSIGN_OR_RETURN(const Items children, item.Children());
        out->insert(out->end(), children.begin(), children.end());
        return Status::OK();
      }
      case JsonStep::Kind::kPositions:
        return TakePositions(step, item, out);
      case JsonStep::Kind::kRecursive:
        return TakeRecursive(step, item, out);
      case JsonStep::Kind::kFilter: {
        GLAIVE_ASSIGN_OR_RETURN(const Truth truth, Test(*step.filter, item));
        if (truth == Truth::kTrue) out->push_back(item);
        return Status::OK();
      }
    }
    return Status::OK();
  }

  static Status TakePositions(const JsonStep& step, const JsonItem& item, Items* out) {
    if (item.kind() != ItemKind::kArray) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(const int64_t size, item.ArraySize());
    Items elements;
    for (const JsonRange& range : step.positions) {
      const auto place = [&](const JsonBound& bound) {
        return bound.from_end ? size - 1 + bound.offset : bound.offset;
      };
      const int64_t first = std::max<int64_t>(place(range.first), 0);
      const int64_t last = std::min<int64_t>(place(range.last), size - 1);
      if (place(range.last) < 0 || first > last) continue;
      if (first < last && elements.empty()) {
        GLAIVE_ASSIGN_OR_RETURN(elements, item.Children());
      }
      if (first == last) {
        GLAIVE_ASSIGN_OR_RETURN(const JsonItem element, item.Element(first));
        out->push_back(element);
      } else {
        out->insert(out->end(), elements.begin() + first, elements.begin() + last + 1);
      }
    }
    return Status::OK();
  }

  // Depth first, without recursion: documents come from disk.
  static Status TakeRecursive(const JsonStep& step, const JsonItem& item, Items* out) {
    std::vector<std::pair<JsonItem, uint32_t>> open = {{item, 0}};
    while (!open.empty()) {
      const auto [one, level] = open.back();
      open.pop_back();
      if (level >= step.from_level && level <= step.to_level) out->push_back(one);
      if (level >= step.to_level) continue;
      GLAIVE_ASSIGN_OR_RETURN(const Items children, one.Children());
      for (auto child = children.rbegin(); child != children.rend(); ++child) {
        open.emplace_back(*child, level + 1);
      }
    }
    return Status::OK();
  }

  JsonItem root_;
};

}  // namespace

Result<bool> JsonPath::Select(std::string_view document, std::string* out) const {
  return Select(document, false, out);
}

Result<bool> JsonPath::SelectFirst(std::string_view document, std::string* out) const {
  return Select(document, true, out);
}

Result<bool> JsonPath::Select(std::string_view document, bool first,
                              std::string* out) const {
  GLAIVE_ASSIGN_OR_RETURN(const JsonItem root, JsonItem::Root(document));
  Evaluation evaluation(root);
  if (expr_ == nullptr) {
    Items items = {root};
    GLAIVE_RETURN_NOT_OK(evaluation.Walk(steps_, &items));
    if (first && items.size() > 1) items.resize(1);
    return AppendJsonItems(items, out);
  }
  if (expr_->kind == JsonExpr::Kind::kUnary || expr_->kind == JsonExpr::Kind::kBinary) {
    return evaluation.Arithmetic(*expr_, first, out);
  }
  GLAIVE_ASSIGN_OR_RETURN(const Truth truth, evaluation.Test(*expr_, root));
  if (truth == Truth::kNull) {
    AppendJsonNull(out);
  } else {
    AppendJsonBool(truth == Truth::kTrue, out);
  }
  return true;
}

}  // namespace glaive::expr
