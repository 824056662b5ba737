// A Pratt parser over the tokens of token.h. parser.cc has the operators,
// parser_primary.cc what an operand can be.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expr/ast.h"
#include "expr/token.h"

namespace glaive::expr {

class Parser {
 public:
  Parser(std::string_view sql, std::vector<Token> tokens)
      : sql_(sql), tokens_(std::move(tokens)) {}

  Result<std::unique_ptr<Node>> Run();

 private:
  using NodePtr = std::unique_ptr<Node>;

  // Binding powers, weakest first; the order is that of upstream's parser.
  enum Power : int {
    kPowerOr = 5,
    kPowerAnd = 10,
    kPowerNot = 15,
    kPowerIs = 17,
    kPowerLike = 19,
    kPowerCompare = 20,
    kPowerBitOr = 21,
    kPowerBitXor = 22,  // shifts too
    kPowerBitAnd = 23,
    kPowerAdd = 30,
    kPowerMultiply = 40,
    kPowerZone = 41,
    kPowerPostfix = 50,
  };

  const Token& Peek(size_t ahead = 0) const;
  bool PeekSymbol(std::string_view symbol, size_t ahead = 0) const;
  bool PeekWord(std::string_view lower, size_t ahead = 0) const;
  bool AcceptSymbol(std::string_view symbol);
  bool AcceptWord(std::string_view lower);
  Status ExpectSymbol(std::string_view symbol);
  Status ExpectWord(std::string_view lower);
  // SQL that upstream does not take either.
  Status Refused(size_t begin, std::string_view what) const;
  static NodePtr Make(NodeKind kind, size_t begin);
  static NodePtr MakeString(std::string text, size_t begin);
  Status Adopt(Node* parent, NodePtr child) const;

  // Operators.
  Result<NodePtr> Expression(int min_power);
  // `left` and the operators after it that bind tighter than `min_power`.
  Result<NodePtr> Operators(NodePtr left, int min_power);
  Status AdoptExpression(Node* parent, int min_power);
  int InfixPower() const;
  static int SymbolPowerOf(std::string_view symbol);
  Result<NodePtr> Infix(NodePtr left, int power);
  Result<NodePtr> SymbolInfix(NodePtr left, int power, const Token& token);
  Result<NodePtr> AtTimeZone(NodePtr left, const Token& token);
  Result<NodePtr> AnyOf(NodePtr left, const Token& token);
  Result<NodePtr> AllOf(NodePtr left, const Token& token);
  Result<NodePtr> Compared(NodePtr left, const Token& token, NodePtr right);
  Result<NodePtr> InTuples(const Node& left, NodePtr in);
  // (a, b), which is struct(a, b) marked by its flag.
  static bool IsTuple(const Node& node);
  Result<NodePtr> Subscript(NodePtr left, const Token& token);
  Result<NodePtr> Is(NodePtr left, const Token& token);
  Result<NodePtr> In(NodePtr left, bool negated, const Token& token);
  Result<NodePtr> Between(NodePtr left, bool negated, const Token& token);
  Result<NodePtr> Like(NodePtr left, bool negated, const std::string& op,
                       const Token& token);

  // Operands.
  Result<NodePtr> Prefix();
  Result<NodePtr> InBrackets();
  Result<NodePtr> CloseBracket(NodePtr first);
  Result<NodePtr> Negative(const Token& token);
  Result<NodePtr> Literal(NodeKind kind, const Token& token);
  Result<NodePtr> Array(const Token& token);
  Result<NodePtr> Word();
  // Nullptr when `word` starts none of the forms with key words inside.
  Result<NodePtr> SpecialForm(const std::string& word, const Token& token);
  Result<NodePtr> Interval(const Token& token);
  Result<NodePtr> Case(const Token& token);
  Result<NodePtr> Extract(const Token& token);
  Result<NodePtr> Trim(const Token& token);
  Result<NodePtr> Substring(const Token& token);
  Result<NodePtr> Position(const Token& token);
  Result<NodePtr> Overlay(const Token& token);
  Result<NodePtr> Name();
  Result<NodePtr> Cast(const std::string& word);
  Result<std::string> TypeName();
  Result<NodePtr> Call(const std::string& name);

  std::string_view sql_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace glaive::expr
