// The operators of SQL expressions, by binding power.
#include "expr/parser.h"

#include <algorithm>
#include <array>

namespace glaive::expr {
namespace {

struct SymbolPower {
  std::string_view symbol;
  int power;
};

}  // namespace

// -1 for what is no operator between values.
int Parser::SymbolPowerOf(std::string_view symbol) {
  static constexpr std::array<SymbolPower, 32> kSymbols = {{
      {"=", kPowerCompare},   {"==", kPowerCompare},  {"!=", kPowerCompare},
      {"<>", kPowerCompare},  {"<", kPowerCompare},   {"<=", kPowerCompare},
      {">", kPowerCompare},   {">=", kPowerCompare},  {"<=>", kPowerCompare},
      {"~", kPowerCompare},   {"~*", kPowerCompare},  {"!~", kPowerCompare},
      {"~~", kPowerLike},     {"~~*", kPowerLike},    {"!~~", kPowerLike},
      {"!~~*", kPowerLike},   {"!~*", kPowerCompare}, {"|", kPowerBitOr},
      {"^", kPowerBitXor},    {"<<", kPowerBitXor},   {">>", kPowerBitXor},
      {"&", kPowerBitAnd},    {"+", kPowerAdd},       {"-", kPowerAdd},
      {"*", kPowerMultiply},  {"/", kPowerMultiply},  {"%", kPowerMultiply},
      {"||", kPowerMultiply}, {"::", kPowerPostfix},  {"[", kPowerPostfix},
      {"?", kPowerPostfix},   {".", kPowerPostfix},
  }};
  for (const SymbolPower& entry : kSymbols) {
    if (entry.symbol == symbol) return entry.power;
  }
  return -1;
}

const Token& Parser::Peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}
bool Parser::PeekSymbol(std::string_view symbol, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kSymbol && Peek(ahead).text == symbol;
}
bool Parser::PeekWord(std::string_view lower, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kWord && ToLowerAscii(Peek(ahead).text) == lower;
}
bool Parser::AcceptSymbol(std::string_view symbol) {
  if (!PeekSymbol(symbol)) return false;
  ++at_;
  return true;
}
bool Parser::AcceptWord(std::string_view lower) {
  if (!PeekWord(lower)) return false;
  ++at_;
  return true;
}
Status Parser::ExpectSymbol(std::string_view symbol) {
  if (AcceptSymbol(symbol)) return Status::OK();
  return ErrorAt(sql_, Peek().begin, "expected '" + std::string(symbol) + "'");
}
Status Parser::ExpectWord(std::string_view lower) {
  if (AcceptWord(lower)) return Status::OK();
  return ErrorAt(sql_, Peek().begin, "expected '" + std::string(lower) + "'");
}
Status Parser::Refused(size_t begin, std::string_view what) const {
  return InvalidInput("expression: ", what, " is not supported (at position ", begin + 1,
                      ")");
}

Parser::NodePtr Parser::Make(NodeKind kind, size_t begin) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->begin = begin;
  return node;
}
Parser::NodePtr Parser::MakeString(std::string text, size_t begin) {
  NodePtr node = Make(NodeKind::kString, begin);
  node->text = std::move(text);
  return node;
}

Status Parser::Adopt(Node* parent, NodePtr child) const {
  parent->depth = std::max(parent->depth, child->depth + 1);
  if (parent->depth > kMaxDepth) {
    return ErrorAt(sql_, parent->begin, "the expression is nested too deeply");
  }
  parent->children.push_back(std::move(child));
  return Status::OK();
}

Status Parser::AdoptExpression(Node* parent, int min_power) {
  GLAIVE_ASSIGN_OR_RETURN(NodePtr child, Expression(min_power));
  return Adopt(parent, std::move(child));
}

Result<Parser::NodePtr> Parser::Run() {
  if (Peek().kind == TokenKind::kEnd) return ErrorAt(sql_, 0, "the expression is empty");
  GLAIVE_ASSIGN_OR_RETURN(NodePtr root, Expression(0));
  AcceptSymbol(";");
  if (Peek().kind != TokenKind::kEnd) {
    return ErrorAt(sql_, Peek().begin, "unexpected text after the expression");
  }
  return root;
}

Result<Parser::NodePtr> Parser::Expression(int min_power) {
  // Counts recursion of the parser itself: brackets make no nodes.
  struct DepthGuard {
    explicit DepthGuard(size_t* counter) : depth(counter) { ++*depth; }
    ~DepthGuard() { --*depth; }
    size_t* depth;
  } guard(&depth_);
  if (depth_ > kMaxDepth) {
    return ErrorAt(sql_, Peek().begin, "the expression is nested too deeply");
  }
  GLAIVE_ASSIGN_OR_RETURN(NodePtr left, Prefix());
  return Operators(std::move(left), min_power);
}

Result<Parser::NodePtr> Parser::Operators(NodePtr left, int min_power) {
  for (;;) {
    const int power = InfixPower();
    if (power <= min_power) return left;
    GLAIVE_ASSIGN_OR_RETURN(left, Infix(std::move(left), power));
  }
}

int Parser::InfixPower() const {
  const Token& token = Peek();
  if (token.kind == TokenKind::kSymbol) return SymbolPowerOf(token.text);
  if (token.kind != TokenKind::kWord) return -1;
  const std::string word = ToLowerAscii(token.text);
  if (word == "or") return kPowerOr;
  if (word == "xor") return kPowerBitAnd + 1;
  if (word == "and") return kPowerAnd;
  if (word == "is") return kPowerIs;
  if (word == "like" || word == "ilike" || word == "similar" || word == "rlike" ||
      word == "regexp") {
    return kPowerLike;
  }
  if (word == "in" || word == "between") return kPowerCompare;
  if (word == "at" && PeekWord("time", 1)) return kPowerZone;
  if (word == "not") {
    if (PeekWord("in", 1) || PeekWord("between", 1)) return kPowerCompare;
    if (PeekWord("like", 1) || PeekWord("ilike", 1) || PeekWord("similar", 1)) {
      return kPowerLike;
    }
  }
  return -1;
}

Result<Parser::NodePtr> Parser::Infix(NodePtr left, int power) {
  const Token token = Peek();
  ++at_;
  if (token.kind == TokenKind::kSymbol) return SymbolInfix(std::move(left), power, token);
  const std::string word = ToLowerAscii(token.text);
  if (word == "and" || word == "or") {
    const NodeKind kind = word == "and" ? NodeKind::kAnd : NodeKind::kOr;
    GLAIVE_ASSIGN_OR_RETURN(NodePtr right, Expression(power));
    // A chain grows one wide node instead of a tall tree.
    if (left->kind == kind) {
      GLAIVE_RETURN_NOT_OK(Adopt(left.get(), std::move(right)));
      return left;
    }
    NodePtr node = Make(kind, token.begin);
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(right)));
    return node;
  }
  if (word == "is") return Is(std::move(left), token);
  bool negated = false;
  std::string op = word;
  if (word == "not") {
    negated = true;
    op = ToLowerAscii(Peek().text);
    ++at_;
  }
  if (op == "in") return In(std::move(left), negated, token);
  if (op == "between") return Between(std::move(left), negated, token);
  if (op == "similar") GLAIVE_RETURN_NOT_OK(ExpectWord("to"));
  if (op == "like" || op == "ilike" || op == "similar") {
    return Like(std::move(left), negated, op, token);
  }
  if (op == "at") return AtTimeZone(std::move(left), token);
  return Refused(token.begin, "operator " + op);
}

Result<Parser::NodePtr> Parser::AtTimeZone(NodePtr left, const Token& token) {
  GLAIVE_RETURN_NOT_OK(ExpectWord("time"));
  GLAIVE_RETURN_NOT_OK(ExpectWord("zone"));
  if (Peek().kind != TokenKind::kString && Peek().kind != TokenKind::kDoubleQuoted) {
    return Refused(Peek().begin, "a time zone that is not a string");
  }
  NodePtr node = MakeString(Peek().text, token.begin);
  node->kind = NodeKind::kAtZone;
  ++at_;
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  return node;
}

Result<Parser::NodePtr> Parser::SymbolInfix(NodePtr left, int power, const Token& token) {
  const std::string& s = token.text;
  if (s == "?") return Refused(token.begin, "operator ?");
  if (s == "::") {
    NodePtr node = Make(NodeKind::kCast, token.begin);
    GLAIVE_ASSIGN_OR_RETURN(node->text, TypeName());
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    return node;
  }
  if (s == ".") {
    if (Peek().kind != TokenKind::kWord && Peek().kind != TokenKind::kQuotedName) {
      return ErrorAt(sql_, Peek().begin, "expected a name after '.'");
    }
    NodePtr node = Make(NodeKind::kSubscript, token.begin);
    NodePtr name = MakeString(Peek().text, Peek().begin);
    ++at_;
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(name)));
    return node;
  }
  if (s == "[") return Subscript(std::move(left), token);
  if (power == kPowerLike) {
    return Like(std::move(left), s[0] == '!', s.back() == '*' ? "ilike" : "like", token);
  }
  if (power == kPowerCompare && (PeekWord("any") || PeekWord("some")) &&
      PeekSymbol("(", 1)) {
    return AnyOf(std::move(left), token);
  }
  if (power == kPowerCompare && PeekWord("all") && PeekSymbol("(", 1)) {
    return AllOf(std::move(left), token);
  }
  // A chain grows one wide node, as with AND and OR.
  if (power != kPowerCompare && left->kind == NodeKind::kArithmetic &&
      SymbolPowerOf(left->ops[0]) == power) {
    left->ops.push_back(s);
    GLAIVE_RETURN_NOT_OK(AdoptExpression(left.get(), power));
    return left;
  }
  NodePtr node = Make(NodeKind::kArithmetic, token.begin);
  node->op = s;
  if (s == "~" || s == "~*" || s == "!~" || s == "!~*") {
    node->kind = NodeKind::kRegex;
    node->flag = s[0] == '!';
    node->op = s.back() == '*' ? "~*" : "~";
  } else if (s == "<=>") {
    node->kind = NodeKind::kDistinct;
    node->flag = true;
  } else if (power == kPowerCompare) {
    node->kind = NodeKind::kCompare;
    node->compare = s == "=" || s == "=="    ? CompareOp::kEq
                    : s == "!=" || s == "<>" ? CompareOp::kNe
                    : s == "<"               ? CompareOp::kLt
                    : s == "<="              ? CompareOp::kLe
                    : s == ">"               ? CompareOp::kGt
                                             : CompareOp::kGe;
  } else {
    node->ops.push_back(s);
  }
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), power));
  return node;
}

// value = ANY(list)
Result<Parser::NodePtr> Parser::AnyOf(NodePtr left, const Token& token) {
  if (token.text != "=" && token.text != "==") {
    return Refused(token.begin, "ANY with an operator other than =");
  }
  at_ += 2;
  if (PeekWord("select")) return Refused(Peek().begin, "a sub-query");
  NodePtr node = Make(NodeKind::kCall, token.begin);
  node->text = "array_has";
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  return node;
}

// value > ALL([a, b]): every one of the comparisons.
Result<Parser::NodePtr> Parser::AllOf(NodePtr left, const Token& token) {
  at_ += 1;
  const size_t begin = Peek().begin;
  GLAIVE_RETURN_NOT_OK(ExpectSymbol("("));
  if (PeekWord("select")) return Refused(Peek().begin, "a sub-query");
  GLAIVE_ASSIGN_OR_RETURN(NodePtr list, Expression(0));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  const bool made = list->kind == NodeKind::kArray ||
                    (list->kind == NodeKind::kCall && list->text == "make_array");
  // The value is written out once per element, so it must be simple.
  if (!made || list->children.empty() || left->kind != NodeKind::kName) {
    return Refused(begin, "ALL of anything but a column and a list of values");
  }
  NodePtr all = Make(NodeKind::kAnd, token.begin);
  for (NodePtr& element : list->children) {
    NodePtr column = Make(NodeKind::kName, left->begin);
    column->path = left->path;
    column->double_quoted = left->double_quoted;
    GLAIVE_ASSIGN_OR_RETURN(NodePtr one,
                            Compared(std::move(column), token, std::move(element)));
    GLAIVE_RETURN_NOT_OK(Adopt(all.get(), std::move(one)));
  }
  if (all->children.size() == 1) return std::move(all->children[0]);
  return all;
}

Result<Parser::NodePtr> Parser::Compared(NodePtr left, const Token& token,
                                         NodePtr right) {
  const std::string& s = token.text;
  NodePtr node = Make(NodeKind::kCompare, token.begin);
  if (s == "=" || s == "==") {
    node->compare = CompareOp::kEq;
  } else if (s == "!=" || s == "<>") {
    node->compare = CompareOp::kNe;
  } else if (s == "<") {
    node->compare = CompareOp::kLt;
  } else if (s == "<=") {
    node->compare = CompareOp::kLe;
  } else if (s == ">") {
    node->compare = CompareOp::kGt;
  } else if (s == ">=") {
    node->compare = CompareOp::kGe;
  } else {
    return Refused(token.begin, "ALL with operator " + s);
  }
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(right)));
  return node;
}

// (a, b) IN ((1, 2), (3, 4)): members are compared by IS NOT DISTINCT FROM, as whole
// structs are.
Result<Parser::NodePtr> Parser::InTuples(const Node& left, NodePtr in) {
  NodePtr any = Make(NodeKind::kOr, in->begin);
  for (size_t i = 1; i < in->children.size(); ++i) {
    Node& tuple = *in->children[i];
    if (!IsTuple(tuple) || tuple.children.size() != left.children.size()) {
      return Refused(tuple.begin, "IN of tuples of different lengths");
    }
    NodePtr all = Make(NodeKind::kAnd, tuple.begin);
    for (size_t k = 0; k < tuple.children.size(); ++k) {
      if (left.children[k]->kind != NodeKind::kName) {
        return Refused(left.begin, "IN of a tuple of anything but columns");
      }
      NodePtr column = Make(NodeKind::kName, left.children[k]->begin);
      column->path = left.children[k]->path;
      column->double_quoted = left.children[k]->double_quoted;
      NodePtr same = Make(NodeKind::kDistinct, tuple.begin);
      same->flag = true;
      GLAIVE_RETURN_NOT_OK(Adopt(same.get(), std::move(column)));
      GLAIVE_RETURN_NOT_OK(Adopt(same.get(), std::move(tuple.children[k])));
      GLAIVE_RETURN_NOT_OK(Adopt(all.get(), std::move(same)));
    }
    GLAIVE_RETURN_NOT_OK(Adopt(any.get(), std::move(all)));
  }
  NodePtr result =
      any->children.size() == 1 ? std::move(any->children[0]) : std::move(any);
  if (!in->flag) return result;
  NodePtr negation = Make(NodeKind::kNot, in->begin);
  GLAIVE_RETURN_NOT_OK(Adopt(negation.get(), std::move(result)));
  return negation;
}

bool Parser::IsTuple(const Node& node) {
  return node.kind == NodeKind::kCall && node.text == "struct" && node.flag;
}

// value[index], value['member'], value[low:high:step]; either bound may be missing.
Result<Parser::NodePtr> Parser::Subscript(NodePtr left, const Token& token) {
  NodePtr node = Make(NodeKind::kSubscript, token.begin);
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  const auto bound = [&]() -> Status {
    if (PeekSymbol(":") || PeekSymbol("]")) {
      return Adopt(node.get(), Make(NodeKind::kNull, Peek().begin));
    }
    return AdoptExpression(node.get(), 0);
  };
  GLAIVE_RETURN_NOT_OK(bound());
  if (AcceptSymbol(":")) {
    node->kind = NodeKind::kSlice;
    GLAIVE_RETURN_NOT_OK(bound());
    if (AcceptSymbol(":")) GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  }
  GLAIVE_RETURN_NOT_OK(ExpectSymbol("]"));
  return node;
}

Result<Parser::NodePtr> Parser::Is(NodePtr left, const Token& token) {
  NodePtr node = Make(NodeKind::kIsNull, token.begin);
  node->flag = AcceptWord("not");
  if (AcceptWord("null")) {
    node->kind = NodeKind::kIsNull;
  } else if (AcceptWord("true")) {
    node->kind = NodeKind::kIsTrue;
  } else if (AcceptWord("false")) {
    node->kind = NodeKind::kIsFalse;
  } else if (AcceptWord("unknown")) {
    node->op = "unknown";  // the NULL of a boolean
  } else if (AcceptWord("distinct")) {
    GLAIVE_RETURN_NOT_OK(ExpectWord("from"));
    node->kind = NodeKind::kDistinct;
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), kPowerIs));
    return node;
  } else {
    return ErrorAt(sql_, Peek().begin,
                   "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS");
  }
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  return node;
}

Result<Parser::NodePtr> Parser::In(NodePtr left, bool negated, const Token& token) {
  NodePtr node = Make(NodeKind::kIn, token.begin);
  node->flag = negated;
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol("("));
  if (PeekWord("select")) return Refused(Peek().begin, "a sub-query");
  if (AcceptSymbol(")")) return node;  // an empty list holds nothing
  do {
    GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), 0));
  } while (AcceptSymbol(","));
  GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
  if (IsTuple(*node->children[0])) {
    const NodePtr tuple = std::move(node->children[0]);
    return InTuples(*tuple, std::move(node));
  }
  return node;
}

Result<Parser::NodePtr> Parser::Between(NodePtr left, bool negated, const Token& token) {
  NodePtr node = Make(NodeKind::kBetween, token.begin);
  node->flag = negated;
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), kPowerCompare));
  GLAIVE_RETURN_NOT_OK(ExpectWord("and"));
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), kPowerCompare));
  return node;
}

Result<Parser::NodePtr> Parser::Like(NodePtr left, bool negated, const std::string& op,
                                     const Token& token) {
  NodePtr node = Make(NodeKind::kLike, token.begin);
  node->flag = negated;
  node->op = op;
  node->text = "\\";
  GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
  GLAIVE_RETURN_NOT_OK(AdoptExpression(node.get(), kPowerLike));
  if (AcceptWord("escape")) {
    const Token& escape = Peek();
    if (escape.kind != TokenKind::kString || escape.text.size() != 1) {
      return ErrorAt(sql_, escape.begin,
                     "expected a string of one ASCII character after ESCAPE");
    }
    node->text = escape.text;
    ++at_;
  }
  return node;
}

Result<std::unique_ptr<Node>> Parse(std::string_view sql) {
  GLAIVE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(sql));
  return Parser(sql, std::move(tokens)).Run();
}

}  // namespace glaive::expr
