#include "expr/binder.h"

#include <algorithm>
#include <limits>
#include <map>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/token.h"
#include "expr/user_cast.h"

namespace glaive::expr {

const file::Field* FindMember(const std::vector<file::Field>& fields,
                              const PathSegment& segment) {
  for (const file::Field& field : fields) {
    if (field.name == segment.name) return &field;
  }
  if (segment.exact) return nullptr;
  const std::string lower = ToLowerAscii(segment.name);
  const file::Field* found = nullptr;
  for (const file::Field& field : fields) {
    if (ToLowerAscii(field.name) != lower) continue;
    if (found != nullptr) return nullptr;
    found = &field;
  }
  return found;
}

namespace {

bool IsTextFunction(std::string_view name, TextTest* test) {
  if (name == "contains") {
    *test = TextTest::kContains;
  } else if (name == "starts_with") {
    *test = TextTest::kStartsWith;
  } else if (name == "ends_with") {
    *test = TextTest::kEndsWith;
  } else {
    return false;
  }
  return true;
}

enum class ListTest : uint8_t { kNone, kOne, kAny, kAll };
ListTest ListTestOf(std::string_view name) {
  if (name == "array_has" || name == "array_contains" || name == "list_has" ||
      name == "list_contains") {
    return ListTest::kOne;
  }
  if (name == "array_has_any" || name == "list_has_any" || name == "arrays_overlap") {
    return ListTest::kAny;
  }
  if (name == "array_has_all" || name == "list_has_all") return ListTest::kAll;
  return ListTest::kNone;
}

// Whether the elements of the list stand in the expression.
bool IsMadeList(const Node& node) {
  if (node.children.empty()) return false;
  return node.kind == NodeKind::kArray ||
         (node.kind == NodeKind::kCall &&
          (node.text == "make_array" || node.text == "make_list"));
}

// Upstream tests such a list as a whole once it is a constant or cast for the needle.
bool IsTestedByElement(const ValueExpr& list, const ValueExpr& needle) {
  if (list.constant() != nullptr && needle.constant() != nullptr) return false;
  const auto element = ElementType(*list.type());
  if (element == nullptr) return false;
  const auto common = ComparisonType(element, needle.type());
  return common.ok() && (*common)->Equals(*element);
}

// The path that a name with members in dots or brackets spells; empty when it is none.
std::vector<PathSegment> PathOf(const Node& node) {
  if (node.kind == NodeKind::kName) return node.path;
  if (node.kind != NodeKind::kSubscript || node.children[1]->kind != NodeKind::kString) {
    return {};
  }
  std::vector<PathSegment> path = PathOf(*node.children[0]);
  if (!path.empty()) path.push_back({node.children[1]->text, true});
  return path;
}

// Outside of the outermost conditions a number with a fraction stays a float64.
ValuePtr Widen(ValuePtr value, const ValuePtr& other, bool outer) {
  const Literal* literal = value->literal();
  if (outer || literal == nullptr || literal->kind != LiteralKind::kNumber ||
      literal->number.is_integer) {
    return value;
  }
  const auto id = ValueType(other->type())->id();
  if (id != arrow::Type::FLOAT && id != arrow::Type::HALF_FLOAT) return value;
  return ConstantOf(std::make_shared<arrow::DoubleScalar>(literal->number.value));
}

void AddUnique(std::vector<std::string>* names, std::string name) {
  if (std::find(names->begin(), names->end(), name) == names->end())
    names->push_back(std::move(name));
}

}  // namespace

Status Binder::UnknownColumn(size_t begin, std::string_view segment) const {
  std::string known;
  constexpr size_t kMostNames = 50;
  for (size_t i = 0; i < schema_.fields().size() && i < kMostNames; ++i) {
    const std::vector<std::string> path = {schema_.fields()[i].name};
    known += (i == 0 ? "" : ", ") + file::FormatFieldPath(path);
  }
  if (schema_.fields().size() > kMostNames) known += ", ...";
  return ErrorAt(
      sql_, begin,
      "there is no column '" + std::string(segment) + "' (columns: " + known + ")");
}

Status Binder::Place(const Node& node, const Status& status) const {
  if (status.ok() || status.message().find(" position ") != std::string::npos) {
    return status;
  }
  return status.WithMessage(status.message(), " (at position ", node.begin + 1, ")");
}

Result<ValuePtr> Binder::Cast(ValuePtr operand, std::shared_ptr<arrow::DataType> type,
                              bool null_on_failure) {
  if (const Status status = CheckUserCast(*operand->type(), *type); !status.ok()) {
    return EvaluationError(status.message());
  }
  const bool constant = operand->constant() != nullptr;
  auto made = MakeCast(std::move(operand), std::move(type), null_on_failure);
  if (!made.ok()) return EvaluationError(made.status().message());
  ValuePtr cast = std::move(*made);
  if (check_constants && constant && cast->constant() == nullptr) {
    GLAIVE_RETURN_NOT_OK(EvaluateOnce(*cast).status());
  }
  return cast;
}

Result<ValuePtr> Binder::Name(const Node& node) {
  const file::Field* field = FindMember(schema_.fields(), node.path[0]);
  if (field == nullptr && node.path.size() == 1) {
    for (const auto& [name, type] : extra_) {
      const bool same = node.path[0].exact ? node.path[0].name == name
                                           : ToLowerAscii(node.path[0].name) == name;
      if (!same) continue;
      AddUnique(&extra_columns, name);
      return MakeColumn({name}, type);
    }
    if (node.double_quoted) {
      Literal literal;
      literal.kind = LiteralKind::kString;
      literal.bytes = node.path[0].name;
      return MakeConstant(literal);
    }
  }
  return Path(node.path, node.begin);
}

Result<ValuePtr> Binder::Path(const std::vector<PathSegment>& segments, size_t begin) {
  const file::Field* field = FindMember(schema_.fields(), segments[0]);
  if (field == nullptr) return UnknownColumn(begin, segments[0].name);
  std::vector<std::string> path = {field->name};
  for (size_t i = 1; i < segments.size(); ++i) {
    const bool is_struct = field->type->id() == arrow::Type::STRUCT;
    const file::Field* child =
        is_struct ? FindMember(field->children, segments[i]) : nullptr;
    if (child == nullptr) {
      return ErrorAt(sql_, begin,
                     "column '" + file::FormatFieldPath(path) + "' has no member '" +
                         segments[i].name + "'");
    }
    field = child;
    path.push_back(field->name);
  }
  AddUnique(&columns, file::FormatFieldPath(path));
  return MakeColumn(std::move(path), field->type);
}

bool Binder::IsBoolNode(const Node& node) const {
  switch (node.kind) {
    case NodeKind::kCompare:
    case NodeKind::kAnd:
    case NodeKind::kOr:
    case NodeKind::kNot:
    case NodeKind::kIsNull:
    case NodeKind::kIsTrue:
    case NodeKind::kIsFalse:
    case NodeKind::kDistinct:
    case NodeKind::kIn:
    case NodeKind::kBetween:
    case NodeKind::kLike:
    case NodeKind::kRegex:
      return true;
    default:
      return false;
  }
}

Result<ValuePtr> Binder::Value(const Node& node, bool outer) {
  auto value = BindValue(node, outer);
  if (!value.ok()) return Place(node, value.status());
  return value;
}
Result<BoolPtr> Binder::Bool(const Node& node, bool outer) {
  auto condition = BindBool(node, outer);
  if (!condition.ok()) return Place(node, condition.status());
  return condition;
}

Result<std::vector<ValuePtr>> Binder::Values(const Node& node) {
  std::vector<ValuePtr> values;
  for (const auto& child : node.children) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*child, false));
    values.push_back(std::move(value));
  }
  return values;
}

Result<ValuePtr> Binder::BindValue(const Node& node, bool outer) {
  GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal, LiteralOf(node));
  if (literal) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr constant, MakeConstant(*literal));
    const bool nanos = calls_ > 0 && literal->kind == LiteralKind::kTimestamp &&
                       literal->nanos <= std::numeric_limits<int64_t>::max() &&
                       literal->nanos >= std::numeric_limits<int64_t>::min();
    if (!nanos) return constant;
    return ConstantOf(std::make_shared<arrow::TimestampScalar>(
        static_cast<int64_t>(literal->nanos), arrow::timestamp(arrow::TimeUnit::NANO)));
  }
  if (IsBoolNode(node)) {
    GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(node, outer));
    return MakeBoolValue(std::move(operand));
  }
  switch (node.kind) {
    case NodeKind::kName:
      return Name(node);
    case NodeKind::kInterval: {
      const auto interval = ParseInterval(node.text);
      if (!interval) {
        return InvalidInput("expression: '", node.text,
                            "' is not an interval (like '1 day 2 hours')");
      }
      return ConstantOf(std::make_shared<arrow::MonthDayNanoIntervalScalar>(
          arrow::MonthDayNanoIntervalType::MonthDayNanos{interval->months, interval->days,
                                                         interval->nanos}));
    }
    case NodeKind::kArithmetic: {
      GLAIVE_ASSIGN_OR_RETURN(auto operands, Values(node));
      return MakeArithmeticChain(node.ops, std::move(operands), outer);
    }
    case NodeKind::kNegate: {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(*node.children[0], false));
      return MakeNegate(std::move(operand));
    }
    case NodeKind::kCast: {
      const bool nanos =
          calls_ > 0 && (node.text == "timestamp" || node.text == "datetime" ||
                         node.text == "timestamptz" || node.text == "timestamp tz");
      GLAIVE_ASSIGN_OR_RETURN(auto type,
                              ParseCastType(nanos ? "timestamp(9)" : node.text));
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(*node.children[0], false));
      return Cast(std::move(operand), std::move(type), node.flag);
    }
    case NodeKind::kAtZone: {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(*node.children[0], false));
      return Cast(std::move(operand), arrow::timestamp(arrow::TimeUnit::NANO, node.text),
                  false);
    }
    case NodeKind::kCase:
      return Case(node);
    case NodeKind::kSubscript:
      return Subscript(node);
    case NodeKind::kSlice: {
      GLAIVE_ASSIGN_OR_RETURN(auto operands, Values(node));
      return ListSlice(std::move(operands));
    }
    case NodeKind::kCall:
      return Call(node);
    case NodeKind::kArray: {
      GLAIVE_ASSIGN_OR_RETURN(auto elements, Values(node));
      return MakeListValue(std::move(elements));
    }
    default:
      return InternalError("expression: unknown node");
  }
}

Result<std::vector<ValuePtr>> Binder::RepeatedValues(const Node& node) {
  GLAIVE_RETURN_NOT_OK(EnterRepeated(node));
  auto bound = Values(node);
  --repeats_;
  return bound;
}

Result<ValuePtr> Binder::RepeatedValue(const Node& around, const Node& node) {
  GLAIVE_RETURN_NOT_OK(EnterRepeated(around));
  auto bound = Value(node, false);
  --repeats_;
  return bound;
}

Status Binder::EnterRepeated(const Node& node) {
  constexpr int kMost = 8;
  if (repeats_ == kMost) {
    return ErrorAt(sql_, node.begin,
                   "nested too deeply: in each of " + std::to_string(kMost) +
                       " expressions around it, its value is used several times");
  }
  ++repeats_;
  return Status::OK();
}

Result<ValuePtr> Binder::Call(const Node& node) {
  if (node.text == "arrow_metadata" || node.text == "with_metadata") {
    return MetadataCall(node);
  }
  ++calls_;
  const bool repeated = node.text == "nullif" || node.text == "nvl2";
  auto bound = repeated ? RepeatedValues(node) : Values(node);
  --calls_;
  GLAIVE_ASSIGN_OR_RETURN(auto arguments, std::move(bound));
  if (ListTestOf(node.text) == ListTest::kOne && arguments.size() == 2 &&
      IsMadeList(*node.children[0]) && IsTestedByElement(*arguments[0], *arguments[1])) {
    // As upstream: `needle IN (elements)`, NULL where an element is and none is equal.
    ++calls_;
    auto in = InValues(*node.children[1], node.children[0]->children, false);
    --calls_;
    GLAIVE_ASSIGN_OR_RETURN(BoolPtr found, std::move(in));
    return MakeBoolValue(std::move(found));
  }
  if (node.text == "is_valid" && arguments.size() == 1) {
    return MakeBoolValue(MakeNot(MakeIsNull(std::move(arguments[0]))));
  }
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr quick, QuickCall(node, arguments));
  if (quick != nullptr) return MakeBoolValue(std::move(quick));
  return MakeCall({node.text, std::move(arguments)});
}

Result<ValuePtr> Binder::Case(const Node& node) {
  const size_t first = node.flag ? 1 : 0;
  const bool has_else = node.op == "else";
  const size_t last = node.children.size() - (has_else ? 1 : 0);
  ValuePtr operand;
  if (node.flag) {
    GLAIVE_ASSIGN_OR_RETURN(operand, RepeatedValue(node, *node.children[0]));
  }
  std::vector<BoolPtr> conditions;
  std::vector<ValuePtr> values;
  for (size_t i = first; i + 1 < last; i += 2) {
    BoolPtr condition;
    if (operand != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr match, Value(*node.children[i], false));
      match = Widen(std::move(match), operand, false);
      const bool may_fail = match->constant() == nullptr;
      GLAIVE_ASSIGN_OR_RETURN(condition, MakeSame(operand, std::move(match)));
      // Rows without an operand do not evaluate what it is compared with.
      if (may_fail) condition = MakeAnd({MakeNot(MakeIsNull(operand)), condition});
    } else {
      GLAIVE_ASSIGN_OR_RETURN(condition, Bool(*node.children[i], false));
    }
    conditions.push_back(std::move(condition));
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*node.children[i + 1], false));
    values.push_back(std::move(value));
  }
  ValuePtr otherwise;
  if (has_else) {
    GLAIVE_ASSIGN_OR_RETURN(otherwise, Value(*node.children.back(), false));
  }
  return MakeCase(std::move(conditions), std::move(values), std::move(otherwise));
}

// value['member'] of a struct or map, value[position] of a list.
Result<ValuePtr> Binder::Subscript(const Node& node) {
  const std::vector<PathSegment> path = PathOf(node);
  if (!path.empty()) {
    // Members of structs are columns of their own: only they are read.
    const file::Field* field = FindMember(schema_.fields(), path[0]);
    size_t i = 1;
    while (field != nullptr && field->type->id() == arrow::Type::STRUCT &&
           i < path.size()) {
      const file::Field* child = FindMember(field->children, path[i]);
      if (child == nullptr) break;
      field = child;
      ++i;
    }
    const bool in_struct = field != nullptr && field->type->id() == arrow::Type::STRUCT;
    if (i == path.size() || in_struct || field == nullptr) return Path(path, node.begin);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Values(node));
  const auto type = operands[0]->type()->id();
  if (type == arrow::Type::STRUCT && ConstantText(operands[1]) != nullptr) {
    return StructMember(std::move(operands[0]), ConstantText(operands[1])->ToString());
  }
  if (type == arrow::Type::MAP) {
    return MapElement(std::move(operands[0]), std::move(operands[1]));
  }
  return ListElement(std::move(operands[0]), std::move(operands[1]));
}

Result<BoolPtr> Binder::BindBool(const Node& node, bool outer) {
  switch (node.kind) {
    case NodeKind::kAnd:
    case NodeKind::kOr:
      return Chain(node, outer);
    case NodeKind::kNot: {
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(*node.children[0], false));
      return MakeNot(std::move(operand));
    }
    case NodeKind::kCompare:
      return Compare(node, outer);
    case NodeKind::kIsNull:
      return IsNull(node);
    case NodeKind::kIsTrue:
    case NodeKind::kIsFalse: {
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(*node.children[0], false));
      BoolPtr is = MakeIs(std::move(operand), node.kind == NodeKind::kIsTrue);
      return node.flag ? MakeNot(std::move(is)) : is;
    }
    case NodeKind::kDistinct:
      return Distinct(node);
    case NodeKind::kIn:
      return In(node, outer);
    case NodeKind::kBetween:
      return Between(node, outer);
    case NodeKind::kLike:
      return Like(node);
    case NodeKind::kRegex: {
      GLAIVE_ASSIGN_OR_RETURN(auto operands, Values(node));
      GLAIVE_ASSIGN_OR_RETURN(
          BoolPtr matches,
          MakeRegexTest(std::move(operands[0]), std::move(operands[1]), node.op == "~*"));
      return node.flag ? MakeNot(std::move(matches)) : matches;
    }
    case NodeKind::kBool:
      return MakeTruth(node.flag ? Truth::kTrue : Truth::kFalse);
    case NodeKind::kNull:
      return MakeTruth(Truth::kNull);
    default:
      break;
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(node, false));
  const auto type = value->type()->id();
  if (type == arrow::Type::NA) return MakeTruth(Truth::kNull);
  if (node.kind == NodeKind::kCall && node.text == "regexp_match") {
    // As a condition: whether anything matches.
    return MakeNot(MakeIsNull(std::move(value)));
  }
  if (type != arrow::Type::BOOL) {
    return ErrorAt(
        sql_, node.begin,
        "expected a condition, found a value of type " + value->type()->ToString());
  }
  return MakeFromValue(std::move(value));
}

Result<BoolPtr> Binder::IsNull(const Node& node) {
  const Node& child = *node.children[0];
  BoolPtr is_null;
  if (node.op == "unknown" || IsBoolNode(child)) {
    GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(child, false));
    is_null = MakeIsNull(std::move(operand));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(child, false));
    is_null = MakeIsNull(std::move(operand));
  }
  return node.flag ? MakeNot(std::move(is_null)) : is_null;
}

Result<BoolPtr> Binder::Compare(const Node& node, bool outer) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Values(node));
  ValuePtr left = Widen(operands[0], operands[1], outer);
  ValuePtr right = Widen(operands[1], operands[0], outer);
  const auto read = [&](ValuePtr* text, const ValuePtr& other) -> Status {
    const TypePtr type = ValueType(other->type());
    if (outer || (*text)->literal() == nullptr || !IsText(*(*text)->type())) {
      return Status::OK();
    }
    if (!IsNumeric(*type) && type->id() != arrow::Type::BOOL) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(*text, Cast(std::move(*text), type, false));
    return Status::OK();
  };
  GLAIVE_RETURN_NOT_OK(read(&left, operands[1]));
  GLAIVE_RETURN_NOT_OK(read(&right, operands[0]));
  // Text that an expression makes is read as the number that it meets; a column is not.
  const auto read_made = [&](size_t i, ValuePtr* text, const ValuePtr& other) -> Status {
    const TypePtr type = ValueType(other->type());
    if (node.children[i]->kind == NodeKind::kName || (*text)->literal() != nullptr ||
        !IsText(*ValueType((*text)->type())) || !IsNumeric(*type)) {
      return Status::OK();
    }
    GLAIVE_ASSIGN_OR_RETURN(*text, Cast(std::move(*text), type, false));
    return Status::OK();
  };
  GLAIVE_RETURN_NOT_OK(read_made(0, &left, operands[1]));
  GLAIVE_RETURN_NOT_OK(read_made(1, &right, operands[0]));
  return MakeComparison(node.compare, std::move(left), std::move(right));
}

Result<BoolPtr> Binder::Chain(const Node& node, bool outer) {
  std::vector<BoolPtr> operands;
  // `x = 1 OR x = 2 OR ...` is one lookup per row as `x IN (1, 2, ...)`.
  struct Group {
    ValuePtr column;
    std::vector<Literal> literals;
  };
  std::map<std::string, Group> groups;
  for (const auto& child : node.children) {
    const bool equal = outer && node.kind == NodeKind::kOr &&
                       child->kind == NodeKind::kCompare &&
                       child->compare == CompareOp::kEq;
    if (equal && child->children[0]->kind == NodeKind::kName) {
      GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal,
                              LiteralOf(*child->children[1]));
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr column, Value(*child->children[0], false));
      if (literal && literal->kind != LiteralKind::kNull &&
          column->literal() == nullptr) {
        std::string key;
        for (const PathSegment& segment : child->children[0]->path) {
          key += segment.name + '\0' + (segment.exact ? '1' : '0');
        }
        Group& group = groups[key];
        group.column = std::move(column);
        group.literals.push_back(std::move(*literal));
        continue;
      }
    }
    GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(*child, outer));
    operands.push_back(std::move(operand));
  }
  // First: they are quick, and rows that they decide cause no error further on.
  std::vector<BoolPtr> lookups;
  for (auto& [key, group] : groups) {
    GLAIVE_ASSIGN_OR_RETURN(auto test,
                            MakeInPredicate(group.column->type(), group.literals));
    lookups.push_back(MakeTest(std::move(group.column), std::move(test)));
  }
  operands.insert(operands.begin(), lookups.begin(), lookups.end());
  if (operands.size() == 1) return operands[0];
  return node.kind == NodeKind::kAnd ? MakeAnd(std::move(operands))
                                     : MakeOr(std::move(operands));
}

Result<BoolPtr> Binder::In(const Node& node, bool outer) {
  GLAIVE_ASSIGN_OR_RETURN(
      BoolPtr in,
      InValues(*node.children[0], std::span(node.children).subspan(1), outer));
  return node.flag ? MakeNot(std::move(in)) : in;
}

Result<BoolPtr> Binder::InValues(const Node& node,
                                 std::span<const std::unique_ptr<Node>> items,
                                 bool outer) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, RepeatedValue(node, node));
  std::vector<Literal> literals;
  std::vector<BoolPtr> operands;
  bool has_null = false;
  for (const auto& child : items) {
    GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal, LiteralOf(*child));
    if (literal && literal->kind == LiteralKind::kNull) {
      has_null = true;
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr item, Value(*child, false));
    const ValuePtr wide = Widen(item, value, outer);
    if (literal && value->constant() == nullptr && wide == item) {
      literals.push_back(std::move(*literal));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr equal, MakeComparison(CompareOp::kEq, value, wide));
      operands.push_back(std::move(equal));
    }
  }
  if (!literals.empty()) {
    if (value->type()->id() == arrow::Type::NA) {
      operands.push_back(MakeTruth(Truth::kNull));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto test, MakeInPredicate(value->type(), literals));
      operands.push_back(MakeTest(value, std::move(test)));
    }
  }
  if (has_null) operands.push_back(MakeTruth(Truth::kNull));
  if (operands.empty()) return MakeTruth(Truth::kFalse);
  return operands.size() == 1 ? operands[0] : MakeOr(std::move(operands));
}

Result<BoolPtr> Binder::Between(const Node& node, bool outer) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, RepeatedValues(node));
  const ValuePtr& value = operands[0];
  ValuePtr low = Widen(operands[1], value, outer);
  ValuePtr high = Widen(operands[2], value, outer);
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr above,
                          MakeComparison(CompareOp::kGe, value, std::move(low)));
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr below,
                          MakeComparison(CompareOp::kLe, value, std::move(high)));
  BoolPtr between = MakeAnd({std::move(above), std::move(below)});
  return node.flag ? MakeNot(std::move(between)) : between;
}

Result<BoolPtr> Binder::Like(const Node& node) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Values(node));
  ValuePtr value = std::move(operands[0]);
  ValuePtr pattern = std::move(operands[1]);
  BoolPtr like;
  if (value->type()->id() == arrow::Type::NA ||
      pattern->type()->id() == arrow::Type::NA) {
    like = MakeTruth(Truth::kNull);
  } else if (node.op == "similar") {
    GLAIVE_ASSIGN_OR_RETURN(
        like, MakeRegexTest(std::move(value), std::move(pattern), /*ignore_case=*/false));
  } else {
    if (node.op == "ilike") {
      GLAIVE_ASSIGN_OR_RETURN(value, MakeCall({"lower", {std::move(value)}}));
      GLAIVE_ASSIGN_OR_RETURN(pattern, MakeCall({"lower", {std::move(pattern)}}));
    }
    const arrow::Buffer* text = ConstantText(pattern);
    if (text != nullptr && value->constant() == nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto test, MakeTextPredicate(value->type(), TextTest::kLike, text->ToString(),
                                       node.text[0]));
      like = MakeTest(std::move(value), std::move(test));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(like, MakeTextPairs(TextTest::kLike, std::move(value),
                                                  std::move(pattern), node.text[0]));
    }
  }
  return node.flag ? MakeNot(std::move(like)) : like;
}

// IS NOT DISTINCT FROM: equal, or both null; never null itself.
Result<BoolPtr> Binder::Distinct(const Node& node) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, RepeatedValues(node));
  const ValuePtr left = Widen(operands[0], operands[1], false);
  const ValuePtr right = Widen(operands[1], operands[0], false);
  BoolPtr both_null = MakeAnd({MakeIsNull(left), MakeIsNull(right)});
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr equal, MakeComparison(CompareOp::kEq, left, right));
  BoolPtr same = MakeOr({std::move(both_null), MakeIs(std::move(equal), true)});
  return node.flag ? same : MakeNot(std::move(same));
}

Result<BoolPtr> Binder::QuickCall(const Node& node,
                                  const std::vector<ValuePtr>& arguments) {
  if (arguments.size() != 2 || arguments[0]->constant() != nullptr) return BoolPtr();
  TextTest test;
  if (IsTextFunction(node.text, &test)) {
    const arrow::Buffer* text = ConstantText(arguments[1]);
    if (text == nullptr || !IsText(*ValueType(arguments[0]->type()))) return BoolPtr();
    GLAIVE_ASSIGN_OR_RETURN(auto predicate, MakeTextPredicate(arguments[0]->type(), test,
                                                              text->ToString(), '\\'));
    return MakeTest(arguments[0], std::move(predicate));
  }
  const ListTest list = ListTestOf(node.text);
  if (list == ListTest::kNone || !IsList(*arguments[0]->type())) return BoolPtr();
  std::vector<Literal> needles;
  if (list == ListTest::kOne) {
    if (arguments[1]->literal() == nullptr) return BoolPtr();
    needles.push_back(*arguments[1]->literal());
  } else {
    if (node.children[1]->kind != NodeKind::kArray) return BoolPtr();
    for (const auto& child : node.children[1]->children) {
      GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal, LiteralOf(*child));
      if (!literal) return BoolPtr();
      needles.push_back(std::move(*literal));
    }
  }
  for (const Literal& needle : needles) {
    if (needle.kind == LiteralKind::kNull) return BoolPtr();
  }
  auto has = MakeListHas(arguments[0], needles, list == ListTest::kAll);
  // Values of another kind: the general form knows how to bring both together.
  return has.ok() ? *has : BoolPtr();
}

}  // namespace glaive::expr
