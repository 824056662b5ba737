// A Pratt parser over the tokens of token.h.
#include <array>
#include <optional>

#include "expr/ast.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

using NodePtr = std::unique_ptr<Node>;

// Binding powers, weakest first; the order is that of PostgreSQL-like SQL dialects.
enum Power : int {
  kPowerOr = 5,
  kPowerAnd = 10,
  kPowerNot = 15,
  kPowerIs = 17,
  kPowerLike = 19,
  kPowerCompare = 20,
  kPowerAdd = 30,
  kPowerMultiply = 40,
  kPowerPostfix = 50,
};

constexpr std::array<std::string_view, 20> kReserved = {
    "and",  "or",   "not",  "in",   "is",  "like", "ilike", "between", "null",  "select",
    "case", "when", "then", "else", "end", "from", "where", "order",   "group", "limit"};

bool IsReserved(std::string_view lower) {
  for (std::string_view word : kReserved) {
    if (word == lower) return true;
  }
  return false;
}

class Parser {
 public:
  Parser(std::string_view sql, std::vector<Token> tokens)
      : sql_(sql), tokens_(std::move(tokens)) {}

  Result<NodePtr> Run() {
    if (Peek().kind == TokenKind::kEnd)
      return ErrorAt(sql_, 0, "the expression is empty");
    GLAIVE_ASSIGN_OR_RETURN(NodePtr root, Expression(0));
    if (Peek().kind != TokenKind::kEnd) {
      return ErrorAt(sql_, Peek().begin, "unexpected text after the expression");
    }
    return root;
  }

 private:
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool PeekSymbol(std::string_view symbol, size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kSymbol && Peek(ahead).text == symbol;
  }
  bool PeekWord(std::string_view lower, size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kWord &&
           ToLowerAscii(Peek(ahead).text) == lower;
  }
  bool AcceptSymbol(std::string_view symbol) {
    if (!PeekSymbol(symbol)) return false;
    ++at_;
    return true;
  }
  bool AcceptWord(std::string_view lower) {
    if (!PeekWord(lower)) return false;
    ++at_;
    return true;
  }
  Status ExpectSymbol(std::string_view symbol) {
    if (AcceptSymbol(symbol)) return Status::OK();
    return ErrorAt(sql_, Peek().begin, "expected '" + std::string(symbol) + "'");
  }
  Status ExpectWord(std::string_view lower) {
    if (AcceptWord(lower)) return Status::OK();
    return ErrorAt(sql_, Peek().begin, "expected '" + std::string(lower) + "'");
  }
  Status Unsupported(size_t begin, std::string_view what) const {
    return NotSupported("expression: ", what, " is not supported (at position ",
                        begin + 1, ")");
  }

  static NodePtr Make(NodeKind kind, size_t begin) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->begin = begin;
    return node;
  }
  Status Adopt(Node* parent, NodePtr child) const {
    parent->depth = std::max(parent->depth, child->depth + 1);
    if (parent->depth > kMaxDepth) {
      return ErrorAt(sql_, parent->begin, "the expression is nested too deeply");
    }
    parent->children.push_back(std::move(child));
    return Status::OK();
  }

  // Counts recursion of the parser itself: brackets make no nodes.
  struct DepthGuard {
    explicit DepthGuard(size_t* counter) : depth(counter) { ++*depth; }
    ~DepthGuard() { --*depth; }
    size_t* depth;
  };

  Result<NodePtr> Expression(int min_power) {
    DepthGuard guard(&depth_);
    if (depth_ > kMaxDepth) {
      return ErrorAt(sql_, Peek().begin, "the expression is nested too deeply");
    }
    GLAIVE_ASSIGN_OR_RETURN(NodePtr left, Prefix());
    for (;;) {
      const int power = InfixPower();
      if (power <= min_power) return left;
      GLAIVE_ASSIGN_OR_RETURN(left, Infix(std::move(left), power));
    }
  }

  int InfixPower() const {
    const Token& token = Peek();
    if (token.kind == TokenKind::kSymbol) {
      const std::string& s = token.text;
      if (s == "=" || s == "==" || s == "!=" || s == "<>" || s == "<" || s == "<=" ||
          s == ">" || s == ">=" || s == "<=>" || s == "~") {
        return kPowerCompare;
      }
      if (s == "+" || s == "-") return kPowerAdd;
      if (s == "<<" || s == ">>") return kPowerAdd - 1;
      if (s == "*" || s == "/" || s == "%" || s == "||") return kPowerMultiply;
      if (s == "::" || s == "[") return kPowerPostfix;
      return -1;
    }
    if (token.kind != TokenKind::kWord) return -1;
    const std::string word = ToLowerAscii(token.text);
    if (word == "or") return kPowerOr;
    if (word == "xor") return kPowerOr + 1;
    if (word == "and") return kPowerAnd;
    if (word == "is") return kPowerIs;
    if (word == "like" || word == "ilike" || word == "similar" || word == "rlike" ||
        word == "regexp") {
      return kPowerLike;
    }
    if (word == "in" || word == "between") return kPowerCompare;
    if (word == "not") {
      if (PeekWord("in", 1) || PeekWord("between", 1)) return kPowerCompare;
      if (PeekWord("like", 1) || PeekWord("ilike", 1) || PeekWord("similar", 1)) {
        return kPowerLike;
      }
    }
    return -1;
  }

  Result<NodePtr> Infix(NodePtr left, int power) {
    const Token token = Peek();
    ++at_;
    if (token.kind == TokenKind::kSymbol)
      return SymbolInfix(std::move(left), power, token);
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
    if (op == "like" || op == "ilike") return Like(std::move(left), negated, op, token);
    return Unsupported(token.begin, "operator " + op);
  }

  Result<NodePtr> SymbolInfix(NodePtr left, int power, const Token& token) {
    const std::string& s = token.text;
    if (s == "<=>" || s == "~" || s == "<<" || s == ">>") {
      return Unsupported(token.begin, "operator " + s);
    }
    if (s == "::") {
      NodePtr node = Make(NodeKind::kCast, token.begin);
      GLAIVE_ASSIGN_OR_RETURN(node->text, TypeName());
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
      return node;
    }
    if (s == "[") return Subscript(std::move(left), token);
    NodePtr node = Make(NodeKind::kArithmetic, token.begin);
    node->op = s;
    if (power == kPowerCompare) {
      node->kind = NodeKind::kCompare;
      node->compare = s == "=" || s == "=="    ? CompareOp::kEq
                      : s == "!=" || s == "<>" ? CompareOp::kNe
                      : s == "<"               ? CompareOp::kLt
                      : s == "<="              ? CompareOp::kLe
                      : s == ">"               ? CompareOp::kGt
                                               : CompareOp::kGe;
    }
    GLAIVE_ASSIGN_OR_RETURN(NodePtr right, Expression(power));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(right)));
    return node;
  }

  // column['member'] is a path; positions in lists are not built.
  Result<NodePtr> Subscript(NodePtr left, const Token& token) {
    if (left->kind != NodeKind::kName || Peek().kind != TokenKind::kString) {
      return Unsupported(token.begin, "a subscript other than column['member']");
    }
    left->double_quoted = false;
    left->path.push_back({Peek().text, true});
    ++at_;
    GLAIVE_RETURN_NOT_OK(ExpectSymbol("]"));
    return left;
  }

  Result<NodePtr> Is(NodePtr left, const Token& token) {
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
      GLAIVE_ASSIGN_OR_RETURN(NodePtr right, Expression(kPowerIs));
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(right)));
      return node;
    } else {
      return ErrorAt(sql_, Peek().begin,
                     "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS");
    }
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    return node;
  }

  Result<NodePtr> In(NodePtr left, bool negated, const Token& token) {
    NodePtr node = Make(NodeKind::kIn, token.begin);
    node->flag = negated;
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_RETURN_NOT_OK(ExpectSymbol("("));
    if (PeekWord("select")) return Unsupported(Peek().begin, "a sub-query");
    if (AcceptSymbol(")")) return node;  // an empty list holds nothing
    do {
      GLAIVE_ASSIGN_OR_RETURN(NodePtr item, Expression(0));
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(item)));
    } while (AcceptSymbol(","));
    GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
    return node;
  }

  Result<NodePtr> Between(NodePtr left, bool negated, const Token& token) {
    NodePtr node = Make(NodeKind::kBetween, token.begin);
    node->flag = negated;
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_ASSIGN_OR_RETURN(NodePtr low, Expression(kPowerCompare));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(low)));
    GLAIVE_RETURN_NOT_OK(ExpectWord("and"));
    GLAIVE_ASSIGN_OR_RETURN(NodePtr high, Expression(kPowerCompare));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(high)));
    return node;
  }

  Result<NodePtr> Like(NodePtr left, bool negated, const std::string& op,
                       const Token& token) {
    NodePtr node = Make(NodeKind::kLike, token.begin);
    node->flag = negated;
    node->op = op;
    node->text = "\\";
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(left)));
    GLAIVE_ASSIGN_OR_RETURN(NodePtr pattern, Expression(kPowerLike));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(pattern)));
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

  Result<NodePtr> Prefix() {
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
    if (AcceptSymbol("(")) {
      if (PeekWord("select")) return Unsupported(token.begin, "a sub-query");
      GLAIVE_ASSIGN_OR_RETURN(NodePtr inner, Expression(0));
      GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
      return inner;
    }
    if (AcceptSymbol("-")) {
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
    if (AcceptSymbol("+")) return Expression(kPowerMultiply);
    if (AcceptSymbol("[")) return Array(token);
    return ErrorAt(sql_, token.begin, "expected a value");
  }

  Result<NodePtr> Literal(NodeKind kind, const Token& token) {
    NodePtr node = Make(kind, token.begin);
    node->text = token.text;
    ++at_;
    return node;
  }

  Result<NodePtr> Array(const Token& token) {
    NodePtr node = Make(NodeKind::kArray, token.begin);
    if (AcceptSymbol("]")) return node;
    do {
      GLAIVE_ASSIGN_OR_RETURN(NodePtr item, Expression(0));
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(item)));
    } while (AcceptSymbol(","));
    GLAIVE_RETURN_NOT_OK(ExpectSymbol("]"));
    return node;
  }

  Result<NodePtr> Word() {
    const Token token = Peek();
    const std::string word = ToLowerAscii(token.text);
    if (word == "not") {
      ++at_;
      NodePtr node = Make(NodeKind::kNot, token.begin);
      GLAIVE_ASSIGN_OR_RETURN(NodePtr operand, Expression(kPowerNot));
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(operand)));
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
    if (Peek(1).kind == TokenKind::kString &&
        (word == "date" || word == "time" || word == "timestamp" || word == "datetime")) {
      ++at_;
      return Literal(word == "date"   ? NodeKind::kDate
                     : word == "time" ? NodeKind::kTime
                                      : NodeKind::kTimestamp,
                     Peek());
    }
    if (word == "interval" && Peek(1).kind == TokenKind::kString) {
      return Unsupported(token.begin, "INTERVAL");
    }
    if (word == "case" || word == "exists" || word == "select") {
      return Unsupported(token.begin, token.text);
    }
    if (PeekSymbol("(", 1)) {
      if (word == "cast" || word == "try_cast") return Cast(word);
      if (!IsReserved(word)) return Call(word);
    }
    if (IsReserved(word)) return ErrorAt(sql_, token.begin, "expected a value");
    return Name();
  }

  Result<NodePtr> Name() {
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

  Result<NodePtr> Cast(const std::string& word) {
    NodePtr node = Make(NodeKind::kCast, Peek().begin);
    if (word == "try_cast") return Unsupported(node->begin, "TRY_CAST");
    at_ += 2;
    GLAIVE_ASSIGN_OR_RETURN(NodePtr operand, Expression(0));
    GLAIVE_RETURN_NOT_OK(ExpectWord("as"));
    GLAIVE_ASSIGN_OR_RETURN(node->text, TypeName());
    GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
    GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(operand)));
    return node;
  }

  // "decimal(10,2)", "bigint unsigned": words and numbers in one string, lower case.
  Result<std::string> TypeName() {
    if (Peek().kind != TokenKind::kWord)
      return ErrorAt(sql_, Peek().begin, "expected a type name");
    std::string name = ToLowerAscii(Peek().text);
    ++at_;
    if (AcceptSymbol("(")) {
      name += "(";
      for (;;) {
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
    return name;
  }

  Result<NodePtr> Call(const std::string& name) {
    NodePtr node = Make(NodeKind::kCall, Peek().begin);
    node->text = name;
    at_ += 2;
    if (AcceptSymbol(")")) return node;
    do {
      GLAIVE_ASSIGN_OR_RETURN(NodePtr argument, Expression(0));
      GLAIVE_RETURN_NOT_OK(Adopt(node.get(), std::move(argument)));
    } while (AcceptSymbol(","));
    GLAIVE_RETURN_NOT_OK(ExpectSymbol(")"));
    return node;
  }

  std::string_view sql_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace

Result<std::unique_ptr<Node>> Parse(std::string_view sql) {
  GLAIVE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(sql));
  return Parser(sql, std::move(tokens)).Run();
}

}  // namespace glaive::expr
