#include "expr/binder.h"

#include <algorithm>
#include <map>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "expr/token.h"

namespace glaive::expr {
namespace {

// Exact first, then case-insensitive when that is unambiguous and the name is not quoted.
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

bool IsTextFunction(const std::string& name, TextTest* test) {
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

bool IsListFunction(const std::string& name) {
  return name == "array_has" || name == "array_contains" || name == "list_has" ||
         name == "list_contains" || name == "array_has_any" || name == "list_has_any" ||
         name == "arrays_overlap" || name == "array_has_all" || name == "list_has_all";
}

void AddUnique(std::vector<std::string>* names, std::string name) {
  if (std::find(names->begin(), names->end(), name) == names->end())
    names->push_back(std::move(name));
}

}  // namespace

Status Binder::UnknownColumn(const Node& node, std::string_view segment) const {
  std::string known;
  constexpr size_t kMostNames = 50;
  for (size_t i = 0; i < schema_.fields().size() && i < kMostNames; ++i) {
    const std::vector<std::string> path = {schema_.fields()[i].name};
    known += (i == 0 ? "" : ", ") + file::FormatFieldPath(path);
  }
  if (schema_.fields().size() > kMostNames) known += ", ...";
  return ErrorAt(
      sql_, node.begin,
      "there is no column '" + std::string(segment) + "' (columns: " + known + ")");
}

Result<ValuePtr> Binder::Name(const Node& node) {
  const file::Field* field = FindMember(schema_.fields(), node.path[0]);
  if (field == nullptr) {
    if (node.path.size() == 1) {
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
    return UnknownColumn(node, node.path[0].name);
  }
  std::vector<std::string> path = {field->name};
  for (size_t i = 1; i < node.path.size(); ++i) {
    const bool is_struct = field->type->id() == arrow::Type::STRUCT;
    const file::Field* child =
        is_struct ? FindMember(field->children, node.path[i]) : nullptr;
    if (child == nullptr) {
      return ErrorAt(sql_, node.begin,
                     "column '" + file::FormatFieldPath(path) + "' has no member '" +
                         node.path[i].name + "'");
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
      return true;
    case NodeKind::kCall: {
      TextTest test;
      return IsTextFunction(node.text, &test) || IsListFunction(node.text) ||
             node.text == "regexp_like" || node.text == "isnan";
    }
    default:
      return false;
  }
}

Result<ValuePtr> Binder::Value(const Node& node) {
  GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal, LiteralOf(node));
  if (literal) return MakeConstant(*literal);
  if (IsBoolNode(node)) {
    GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(node));
    return MakeBoolValue(std::move(operand));
  }
  switch (node.kind) {
    case NodeKind::kName:
      return Name(node);
    case NodeKind::kArithmetic: {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr left, Value(*node.children[0]));
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr right, Value(*node.children[1]));
      return MakeArithmetic(node.op, std::move(left), std::move(right), adapt_literals_);
    }
    case NodeKind::kNegate: {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(*node.children[0]));
      return MakeNegate(std::move(operand));
    }
    case NodeKind::kCast: {
      GLAIVE_ASSIGN_OR_RETURN(auto type, ParseCastType(node.text));
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(*node.children[0]));
      return MakeCast(std::move(operand), std::move(type));
    }
    case NodeKind::kCall: {
      std::vector<ValuePtr> arguments;
      for (const auto& child : node.children) {
        GLAIVE_ASSIGN_OR_RETURN(ValuePtr argument, Value(*child));
        arguments.push_back(std::move(argument));
      }
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr call, MakeCall(node.text, std::move(arguments)));
      if (call == nullptr) {
        return NotSupported("expression: function ", node.text,
                            " is not supported (at position ", node.begin + 1, ")");
      }
      return call;
    }
    case NodeKind::kArray:
      return NotSupported(
          "expression: an array literal is supported only as argument of "
          "array_has_any and array_has_all (at position ",
          node.begin + 1, ")");
    default:
      return InternalError("expression: unknown node");
  }
}

Result<BoolPtr> Binder::Bool(const Node& node) {
  switch (node.kind) {
    case NodeKind::kAnd:
    case NodeKind::kOr:
      return Chain(node);
    case NodeKind::kNot: {
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(*node.children[0]));
      return MakeNot(std::move(operand));
    }
    case NodeKind::kCompare: {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr left, Value(*node.children[0]));
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr right, Value(*node.children[1]));
      return MakeComparison(node.compare, std::move(left), std::move(right));
    }
    case NodeKind::kIsNull: {
      const Node& child = *node.children[0];
      BoolPtr is_null;
      if (child.kind == NodeKind::kCall && child.text == "regexp_match") {
        // Null exactly when nothing matches.
        GLAIVE_ASSIGN_OR_RETURN(BoolPtr matches, RegexCall(child));
        is_null = MakeNot(MakeIs(std::move(matches), true));
      } else if (node.op == "unknown" || IsBoolNode(child)) {
        GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(child));
        is_null = MakeIsNull(std::move(operand));
      } else {
        GLAIVE_ASSIGN_OR_RETURN(ValuePtr operand, Value(child));
        is_null = MakeIsNull(std::move(operand));
      }
      return node.flag ? MakeNot(std::move(is_null)) : is_null;
    }
    case NodeKind::kIsTrue:
    case NodeKind::kIsFalse: {
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(*node.children[0]));
      BoolPtr is = MakeIs(std::move(operand), node.kind == NodeKind::kIsTrue);
      return node.flag ? MakeNot(std::move(is)) : is;
    }
    case NodeKind::kDistinct:
      return Distinct(node);
    case NodeKind::kIn:
      return In(node);
    case NodeKind::kBetween:
      return Between(node);
    case NodeKind::kLike:
      return Like(node);
    case NodeKind::kBool:
      return MakeTruth(node.flag ? Truth::kTrue : Truth::kFalse);
    case NodeKind::kNull:
      return MakeTruth(Truth::kNull);
    case NodeKind::kCall: {
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr call, BoolCall(node));
      if (call != nullptr) return call;
      break;
    }
    default:
      break;
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(node));
  const auto type = value->type()->id();
  if (type == arrow::Type::NA) return MakeTruth(Truth::kNull);
  if (type != arrow::Type::BOOL) {
    return ErrorAt(
        sql_, node.begin,
        "expected a condition, found a value of type " + value->type()->ToString());
  }
  return MakeFromValue(std::move(value));
}

Result<BoolPtr> Binder::Chain(const Node& node) {
  std::vector<BoolPtr> operands;
  // `x = 1 OR x = 2 OR ...` is one lookup per row as `x IN (1, 2, ...)`.
  struct Group {
    ValuePtr column;
    std::vector<Literal> literals;
  };
  std::map<std::string, Group> groups;
  for (const auto& child : node.children) {
    const bool equal = node.kind == NodeKind::kOr && child->kind == NodeKind::kCompare &&
                       child->compare == CompareOp::kEq;
    if (equal && child->children[0]->kind == NodeKind::kName) {
      GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal,
                              LiteralOf(*child->children[1]));
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr column, Value(*child->children[0]));
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
    GLAIVE_ASSIGN_OR_RETURN(BoolPtr operand, Bool(*child));
    operands.push_back(std::move(operand));
  }
  for (auto& [key, group] : groups) {
    GLAIVE_ASSIGN_OR_RETURN(auto test,
                            MakeInPredicate(group.column->type(), group.literals));
    operands.push_back(MakeTest(std::move(group.column), std::move(test)));
  }
  if (operands.size() == 1) return operands[0];
  return node.kind == NodeKind::kAnd ? MakeAnd(std::move(operands))
                                     : MakeOr(std::move(operands));
}

Result<BoolPtr> Binder::In(const Node& node) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*node.children[0]));
  std::vector<Literal> literals;
  std::vector<BoolPtr> operands;
  bool has_null = false;
  for (size_t i = 1; i < node.children.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal, LiteralOf(*node.children[i]));
    if (literal && literal->kind == LiteralKind::kNull) {
      has_null = true;
    } else if (literal && value->literal() == nullptr) {
      literals.push_back(std::move(*literal));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr item, Value(*node.children[i]));
      GLAIVE_ASSIGN_OR_RETURN(BoolPtr equal,
                              MakeComparison(CompareOp::kEq, value, std::move(item)));
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
  BoolPtr in;
  if (operands.empty()) {
    in = MakeTruth(Truth::kFalse);
  } else {
    in = operands.size() == 1 ? operands[0] : MakeOr(std::move(operands));
  }
  return node.flag ? MakeNot(std::move(in)) : in;
}

Result<BoolPtr> Binder::Between(const Node& node) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*node.children[0]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr low, Value(*node.children[1]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr high, Value(*node.children[2]));
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr above,
                          MakeComparison(CompareOp::kGe, value, std::move(low)));
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr below,
                          MakeComparison(CompareOp::kLe, value, std::move(high)));
  BoolPtr between = MakeAnd({std::move(above), std::move(below)});
  return node.flag ? MakeNot(std::move(between)) : between;
}

Result<BoolPtr> Binder::Like(const Node& node) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*node.children[0]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr pattern, Value(*node.children[1]));
  BoolPtr like;
  if (value->type()->id() == arrow::Type::NA ||
      pattern->type()->id() == arrow::Type::NA) {
    like = MakeTruth(Truth::kNull);
  } else {
    if (node.op == "ilike") {
      GLAIVE_ASSIGN_OR_RETURN(value, MakeCall("lower", {std::move(value)}));
      if (pattern->literal() == nullptr) {
        GLAIVE_ASSIGN_OR_RETURN(pattern, MakeCall("lower", {std::move(pattern)}));
      }
    }
    if (const Literal* text = pattern->literal(); text != nullptr &&
                                                  text->kind == LiteralKind::kString &&
                                                  value->literal() == nullptr) {
      std::string bytes = text->bytes;
      if (node.op == "ilike") {
        GLAIVE_ASSIGN_OR_RETURN(
            auto lower,
            CallArrow("utf8_lower", {std::make_shared<arrow::StringScalar>(bytes)}));
        bytes =
            static_cast<const arrow::StringScalar&>(*lower.scalar()).value->ToString();
      }
      GLAIVE_ASSIGN_OR_RETURN(
          auto test, MakeTextPredicate(value->type(), TextTest::kLike, std::move(bytes),
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
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr left, Value(*node.children[0]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr right, Value(*node.children[1]));
  BoolPtr both_null = MakeAnd({MakeIsNull(left), MakeIsNull(right)});
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr equal, MakeComparison(CompareOp::kEq, left, right));
  BoolPtr same = MakeOr({std::move(both_null), MakeIs(std::move(equal), true)});
  return node.flag ? same : MakeNot(std::move(same));
}

Result<BoolPtr> Binder::BoolCall(const Node& node) {
  TextTest test;
  if (IsTextFunction(node.text, &test)) return TextCall(node, test);
  if (IsListFunction(node.text)) return ListCall(node);
  if (node.text == "regexp_like") return RegexCall(node);
  if (node.text == "isnan") {
    if (node.children.size() != 1)
      return ErrorAt(sql_, node.begin, "isnan takes 1 argument");
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*node.children[0]));
    if (value->type()->id() == arrow::Type::HALF_FLOAT) {
      GLAIVE_ASSIGN_OR_RETURN(value, MakeCast(std::move(value), arrow::float32()));
    }
    GLAIVE_ASSIGN_OR_RETURN(value, MakeFunction("is_nan", {std::move(value)}));
    return MakeFromValue(std::move(value));
  }
  return BoolPtr();
}

Result<BoolPtr> Binder::TextCall(const Node& node, TextTest test) {
  if (node.children.size() != 2) {
    return ErrorAt(sql_, node.begin, node.text + " takes 2 arguments");
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(*node.children[0]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr pattern, Value(*node.children[1]));
  const Literal* text = pattern->literal();
  if (text == nullptr || text->kind != LiteralKind::kString ||
      value->literal() != nullptr) {
    return MakeTextPairs(test, std::move(value), std::move(pattern), '\\');
  }
  GLAIVE_ASSIGN_OR_RETURN(auto predicate,
                          MakeTextPredicate(value->type(), test, text->bytes, '\\'));
  return MakeTest(std::move(value), std::move(predicate));
}

Result<BoolPtr> Binder::ListCall(const Node& node) {
  if (node.children.size() != 2) {
    return ErrorAt(sql_, node.begin, node.text + " takes 2 arguments");
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr list, Value(*node.children[0]));
  const bool one = node.text == "array_has" || node.text == "array_contains" ||
                   node.text == "list_has" || node.text == "list_contains";
  const bool all = node.text == "array_has_all" || node.text == "list_has_all";
  const Node& argument = *node.children[1];
  if (!one && argument.kind != NodeKind::kArray) {
    return NotSupported(
        "expression: function ", node.text,
        " is supported with an array literal like ['a', 'b'] only (at position ",
        node.begin + 1, ")");
  }
  std::vector<Literal> needles;
  const auto add = [&](const Node& item) -> Status {
    GLAIVE_ASSIGN_OR_RETURN(std::optional<Literal> literal, LiteralOf(item));
    // "text" that is no column is a string.
    if (!literal && item.kind == NodeKind::kName) {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, Value(item));
      if (value->literal() != nullptr) literal = *value->literal();
    }
    if (!literal) {
      return NotSupported("expression: function ", node.text,
                          " is supported with literals only (at position ",
                          item.begin + 1, ")");
    }
    needles.push_back(std::move(*literal));
    return Status::OK();
  };
  if (one) {
    GLAIVE_RETURN_NOT_OK(add(argument));
    if (needles[0].kind == LiteralKind::kNull) return MakeTruth(Truth::kNull);
  } else {
    for (const auto& item : argument.children) GLAIVE_RETURN_NOT_OK(add(*item));
  }
  for (const Literal& needle : needles) {
    if (needle.kind == LiteralKind::kNull) {
      return NotSupported("expression: NULL in the array of ", node.text,
                          " is not supported");
    }
  }
  return MakeListHas(std::move(list), needles, all);
}

Result<BoolPtr> Binder::RegexCall(const Node& node) {
  if (node.children.size() != 2) {
    return ErrorAt(sql_, node.begin,
                   node.text + " with other than 2 arguments is not supported");
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, Value(*node.children[0]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr pattern, Value(*node.children[1]));
  if (pattern->literal() == nullptr || pattern->literal()->kind != LiteralKind::kString) {
    return NotSupported("expression: function ", node.text,
                        " is supported with a constant pattern only");
  }
  if (text->type()->id() == arrow::Type::DICTIONARY) {
    GLAIVE_ASSIGN_OR_RETURN(text, MakeCast(text, ValueType(text->type())));
  }
  return MakeRegex(std::move(text), pattern->literal()->bytes);
}

}  // namespace glaive::expr
