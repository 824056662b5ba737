// What stands between operators: literals, names, calls and forms with key words inside.
#include <array>

#include "expr/parser.h"

namespace glaive::expr {
namespace {

constexpr std::array<std::string_view, 21> kReserved = {
    "and",     "or",      "not",   "in",    "is",    "like",  "ilike",
    "similar", "between", "null",  "case",  "when",  "then",  "else",
    "end",     "from",    "where", "order", "group", "limit", "select"};

bool IsReserved(std::string_view lower) {
  for (std::string_view word : kReserved) {
    if (word == lower) return true;
  }
  return false;
}

}  // namespace

Result<Parser::NodePtr> Parser::Prefix() {
  const Token token = Peek();
  switch (token.kind) {
    case TokenKind::kEnd:
      return ErrorAt(sql_, token.begin, "expected a value");
    case TokenKind::kString:
      return Literal(NodeKind::kString, token);
    case TokenKind::kHex:
      return Literal(NodeKind::kBinary, token);
    case TokenKind::kNumber:
      return Literal(NodeKind::kNumber, token);
    case TokenKind::kQuotedName:
    case TokenKind::kDoubleQuoted:
      return Name();
    case TokenKind::kWord:
      return Word();
    case TokenKind::kSymbol:
      break;
  }
  if (PeekSymbol("(")) return InBrackets();
  if (AcceptSymbol("-")) return Negative(token);
  if (AcceptSymbol("+")) return Expression(kPowerMultiply);
  if (AcceptSymbol("[")) return Array(token);
  if (PeekSymbol("~")) return Refused(token.begin, "operator ~ before a value");
  return ErrorAt(sql_, token.begin, "expected a value");
}

// What builders of conditions write, (((a AND b) AND c) AND d), opens many brackets in a
// row: no recursion for them.
Result<Parser::NodePtr> Parser::InBrackets() {
  size_t open = 0;
  while (AcceptSymbol("(")) {
    if (++open > kMaxBrackets) {
      return ErrorAt(sql_, Peek().begin, "the expression is nested too deeply");
    }
  }
  if (PeekWord("select")) return Refused(Peek().begin, "a sub-query");
  GLAIVE_ASSIGN_OR_RETURN(NodePtr inner, Expression(0));
  GLAIVE_ASSIGN_OR_RETURN(inner, CloseBracket(std::move(inner)));
  while (--open > 0) {
    GLAIVE_ASSIGN_OR_RETURN(inner, Operators(std::move(inner), 0));
    GLAIVE_ASSIGN_OR_RETURN(inner, CloseBracket(std::move(inner)));
  }
  return inner;
}

// What is between the brackets: one expression, or a tuple of several.
Result<Parser::NodePtr> Parser::CloseBracket(NodePtr first) {
  if (PeekSymbol(",")) {
    NodePtr tuple = Make(NodeKind::kCall, first->begin);
    tuple->text = "struct";
    tuple->flag = true;
    GLAIVE_RETURN_NOT_OK(Adopt(tuple.get(), std::move(first)));
    while (AcceptSymbol(",")) GLAIVE_RETURN_NOT_OK(AdoptExpression(tuple.get(), 0));
    first = std::move(tuple);
  }
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return first;
}

Result<Parser::NodePtr> Parser::Negative(const Token& token) {
  GLAIVE_ASSIGN_OR_RETURN(NodePtr operand, Expression(kPowerMultiply));
  if (operand->kind == NodeKind::kNumber) {
    if (operand->text[0] == '-') {
      operand->text.erase(0, 1);
    } else {
      operand->text.insert(0, "-");
    }
    return operand;
  }
  NodePtr node = Make(NodeKind::kNegate, token.begin);
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(operand)));
  return node;
}

Result<Parser::NodePtr> Parser::Literal(NodeKind kind, const Token& token) {
  NodePtr node = Make(kind, token.begin);
  node->text = token.text;
  ++at_;
  return node;
}

Result<Parser::NodePtr> Parser::Array(const Token& token) {
  NodePtr node = Make(NodeKind::kArray, token.begin);
  if (AcceptSymbol("]")) return node;
  do {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  } while (AcceptSymbol(","));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol("]"));
  return node;
}

Result<Parser::NodePtr> Parser::Word() {
  const Token token = Peek();
  const std::string word = ToLowerAscii(token.text);
  if (word == "not") {
    ++at_;
    NodePtr node = Make(NodeKind::kNot, token.begin);
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), kPowerNot));
    return node;
  }
  if (word == "null") {
    ++at_;
    return Make(NodeKind::kNull, token.begin);
  }
  if (word == "true" || word == "false") {
    ++at_;
    NodePtr node = Make(NodeKind::kBool, token.begin);
    node->flag = word == "true";
    return node;
  }
  if (word == "timestamp" && (PeekWord("with", 1) || PeekWord("without", 1)) &&
      PeekWord("time", 2) && PeekWord("zone", 3) && Peek(4).kind == TokenKind::kString) {
    at_ += 4;
    return Literal(NodeKind::kTimestamp, Peek());
  }
  if (Peek(1).kind == TokenKind::kString && word == "timestamptz") {
    ++at_;
    return Literal(NodeKind::kTimestamp, Peek());
  }
  if (Peek(1).kind == TokenKind::kString &&
      (word == "date" || word == "time" || word == "timestamp" || word == "datetime")) {
    ++at_;
    return Literal(word == "date"   ? NodeKind::kDate
                   : word == "time" ? NodeKind::kTime
                                    : NodeKind::kTimestamp,
                   Peek());
  }
  GLAIVE_ASSIGN_OR_RETURN(NodePtr special, SpecialForm(word, token));
  if (special != nullptr) return special;
  if (PeekSymbol("(", 1)) {
    if (word == "cast" || word == "try_cast" || word == "safe_cast") return Cast(word);
    if (IsReserved(word)) return ErrorAt(sql_, token.begin, "expected a value");
    return Call(word);
  }
  // Where a value must come, words of the language are columns' names, as upstream has
  // it: tables have columns called order, group or end.
  if (word == "select") return ErrorAt(sql_, token.begin, "expected a value");
  return Name();
}

Result<Parser::NodePtr> Parser::SpecialForm(const std::string& word, const Token& token) {
  if (word == "case") return Case(token);
  if (word == "exists" && PeekSymbol("(", 1) && PeekWord("select", 2)) {
    return Refused(token.begin, "a sub-query");
  }
  if (word == "interval" && (Peek(1).kind == TokenKind::kString ||
                             Peek(1).kind == TokenKind::kNumber || PeekSymbol("-", 1))) {
    return Interval(token);
  }
  if (word == "array" && PeekSymbol("[", 1)) {
    at_ += 2;
    return Array(token);
  }
  if (PeekSymbol("(", 1)) {
    if (word == "extract") return Extract(token);
    if (word == "trim") return Trim(token);
    if (word == "substring" || word == "substr") return Substring(token);
    if (word == "position") return Position(token);
    if (word == "overlay") return Overlay(token);
    return NodePtr();
  }
  if (word == "current_date" || word == "current_time" || word == "current_timestamp") {
    ++at_;
    NodePtr node = Make(NodeKind::kCall, token.begin);
    node->text = word;
    return node;
  }
  return NodePtr();
}

// INTERVAL '1 day', INTERVAL 1 DAY, INTERVAL '1' DAY: one text with number and unit.
Result<Parser::NodePtr> Parser::Interval(const Token& token) {
  ++at_;
  NodePtr node = Make(NodeKind::kInterval, token.begin);
  if (AcceptSymbol("-")) node->text = "-";
  if (Peek().kind != TokenKind::kString && Peek().kind != TokenKind::kNumber) {
    return ErrorAt(sql_, Peek().begin, "expected a number or a string after INTERVAL");
  }
  node->text += Peek().text;
  ++at_;
  static constexpr std::array<std::string_view, 24> kUnits = {
      "year",         "years",       "month",        "months",     "week",
      "weeks",        "day",         "days",         "hour",       "hours",
      "minute",       "minutes",     "second",       "seconds",    "millisecond",
      "milliseconds", "microsecond", "microseconds", "nanosecond", "nanoseconds",
      "decade",       "decades",     "century",      "centuries"};
  if (Peek().kind == TokenKind::kWord) {
    const std::string unit = ToLowerAscii(Peek().text);
    for (std::string_view known : kUnits) {
      if (known != unit) continue;
      node->text += " " + unit;
      ++at_;
      if (PeekWord("to")) return Refused(Peek().begin, "a range of interval units");
      break;
    }
  }
  return node;
}

Result<Parser::NodePtr> Parser::Case(const Token& token) {
  ++at_;
  NodePtr node = Make(NodeKind::kCase, token.begin);
  if (!PeekWord("when")) {
    node->flag = true;
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  if (!PeekWord("when")) return ErrorAt(sql_, Peek().begin, "expected 'when'");
  while (AcceptWord("when")) {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    GLAIVE_RETURN_NOT_OK(ExpectWord("then"));
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  if (AcceptWord("else")) {
    node->op = "else";
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  GLAIVE_RETURN_NOT_OK(ExpectWord("end"));
  return node;
}

// EXTRACT(part FROM value) is date_part('part', value).
Result<Parser::NodePtr> Parser::Extract(const Token& token) {
  at_ += 2;
  NodePtr node = Make(NodeKind::kCall, token.begin);
  node->text = "date_part";
  if (Peek().kind != TokenKind::kWord && Peek().kind != TokenKind::kString) {
    return ErrorAt(sql_, Peek().begin, "expected a part of a date, like YEAR");
  }
  GLAIVE_RETURN_NOT_OK(
      Adopt(node.get(), MakeString(ToLowerAscii(Peek().text), Peek().begin)));
  ++at_;
  GLAIVE_RETURN_NOT_OK(ExpectWord("from"));
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

// TRIM([BOTH | LEADING | TRAILING] [characters] FROM text), TRIM(text), TRIM(text,
// chars).
Result<Parser::NodePtr> Parser::Trim(const Token& token) {
  at_ += 2;
  NodePtr node = Make(NodeKind::kCall, token.begin);
  node->text = "btrim";
  bool side = true;
  if (AcceptWord("leading")) {
    node->text = "ltrim";
  } else if (AcceptWord("trailing")) {
    node->text = "rtrim";
  } else {
    side = AcceptWord("both");
  }
  if (side && AcceptWord("from")) {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
    return node;
  }
  GLAIVE_ASSIGN_OR_RETURN(NodePtr first, Expression(0));
  if (AcceptWord("from")) {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(first)));
  } else {
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(first)));
    if (AcceptSymbol(",")) GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

// SUBSTRING(text FROM start [FOR length]) and SUBSTRING(text, start[, length]).
Result<Parser::NodePtr> Parser::Substring(const Token& token) {
  at_ += 2;
  NodePtr node = Make(NodeKind::kCall, token.begin);
  node->text = "substr";
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  const bool words = PeekWord("from") || PeekWord("for");
  if (words) {
    if (AcceptWord("from")) {
      GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    } else {
      NodePtr one = Make(NodeKind::kNumber, Peek().begin);
      one->text = "1";
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(one)));
    }
    if (AcceptWord("for")) GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  } else {
    while (AcceptSymbol(",")) GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

// POSITION(part IN text) is strpos(text, part).
Result<Parser::NodePtr> Parser::Position(const Token& token) {
  at_ += 2;
  NodePtr node = Make(NodeKind::kCall, token.begin);
  node->text = "strpos";
  GLAIVE_ASSIGN_OR_RETURN(NodePtr part, Expression(kPowerCompare));
  if (AcceptWord("in")) {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(part)));
  } else {
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(part)));
    GLAIVE_RETURN_NOT_OK(ExpectSymbol(","));
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

// OVERLAY(text PLACING new FROM start [FOR count])
Result<Parser::NodePtr> Parser::Overlay(const Token& token) {
  at_ += 2;
  NodePtr node = Make(NodeKind::kCall, token.begin);
  node->text = "overlay";
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  if (AcceptWord("placing")) {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    GLAIVE_RETURN_NOT_OK(ExpectWord("from"));
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
    if (AcceptWord("for")) GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  } else {
    while (AcceptSymbol(",")) GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

Result<Parser::NodePtr> Parser::Name() {
  NodePtr node = Make(NodeKind::kName, Peek().begin);
  node->double_quoted = Peek().kind == TokenKind::kDoubleQuoted;
  for (;;) {
    const Token& token = Peek();
    if (token.kind != TokenKind::kWord && token.kind != TokenKind::kQuotedName &&
        token.kind != TokenKind::kDoubleQuoted) {
      return ErrorAt(sql_, token.begin, "expected a name after '.'");
    }
    node->path.push_back({token.text, token.kind != TokenKind::kWord});
    ++at_;
    if (!AcceptSymbol(".")) break;
    node->double_quoted = false;
  }
  return node;
}

Result<Parser::NodePtr> Parser::Cast(const std::string& word) {
  NodePtr node = Make(NodeKind::kCast, Peek().begin);
  node->flag = word != "cast";
  at_ += 2;
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  GLAIVE_RETURN_NOT_OK(ExpectWord("as"));
  GLAIVE_ASSIGN_OR_RETURN(node->text, TypeName());
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

// "decimal(10,2)", "bigint unsigned", "int[]": words and numbers in one string, lower
// case, synonyms of several words brought to one.
Result<std::string> Parser::TypeName() {
  if (Peek().kind != TokenKind::kWord)
    return ErrorAt(sql_, Peek().begin, "expected a type name");
  std::string name = ToLowerAscii(Peek().text);
  ++at_;
  if (name == "array" && AcceptSymbol("<")) {
    if (++depth_ > kMaxDepth) {
      return ErrorAt(sql_, Peek().begin, "the expression is nested too deeply");
    }
    GLAIVE_ASSIGN_OR_RETURN(const std::string element, TypeName());
    --depth_;
    // ">>" closes two.
    if (PeekSymbol(">>")) {
      tokens_[at_].text = ">";
    } else {
      GLAIVE_RETURN_NOT_OK(ExpectSymbol(">"));
    }
    return element + "[]";
  }
  if (name == "double") AcceptWord("precision");
  if (name == "character" || name == "char") {
    if (AcceptWord("varying")) name = "varchar";
  }
  if (AcceptSymbol("(")) {
    name += "(";
    for (;;) {
      if (AcceptSymbol("-")) name += "-";
      if (Peek().kind != TokenKind::kNumber && Peek().kind != TokenKind::kString) {
        return ErrorAt(sql_, Peek().begin, "expected a number");
      }
      name += Peek().text;
      ++at_;
      if (!AcceptSymbol(",")) break;
      name += ",";
    }
    GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
    name += ")";
  }
  if (AcceptWord("unsigned")) name += " unsigned";
  if ((PeekWord("with") || PeekWord("without")) && PeekWord("time", 1) &&
      PeekWord("zone", 2)) {
    if (PeekWord("with")) name += " tz";
    at_ += 3;
  }
  while (PeekSymbol("[") && PeekSymbol("]", 1)) {
    name += "[]";
    at_ += 2;
  }
  return name;
}

Result<Parser::NodePtr> Parser::Call(const std::string& name) {
  NodePtr node = Make(NodeKind::kCall, Peek().begin);
  node->text = name;
  at_ += 2;
  if (PeekSymbol("*") || PeekWord("distinct")) {
    return ErrorAt(sql_, Peek().begin, "aggregates have no place in an expression");
  }
  if (AcceptSymbol(")")) return node;
  do {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  } while (AcceptSymbol(","));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  return node;
}

}  // namespace glaive::expr
