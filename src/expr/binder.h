// From syntax tree and schema to a bound expression.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expr/ast.h"
#include "expr/bound.h"
#include "expr/predicate.h"
#include "file/schema.h"

namespace glaive::expr {

class Binder {
 public:
  // `adapt_literals`: see MakeArithmetic.
  Binder(std::string_view sql, const file::Schema& schema, const ExtraColumns& extra,
         bool adapt_literals)
      : sql_(sql), schema_(schema), extra_(extra), adapt_literals_(adapt_literals) {}

  Result<BoolPtr> Bool(const Node& node);
  Result<ValuePtr> Value(const Node& node);

  // Paths of the columns met, quoted; names of the extra columns met.
  std::vector<std::string> columns;
  std::vector<std::string> extra_columns;

 private:
  Result<ValuePtr> Name(const Node& node);
  Status UnknownColumn(const Node& node, std::string_view segment) const;
  Result<BoolPtr> Chain(const Node& node);
  Result<BoolPtr> In(const Node& node);
  Result<BoolPtr> Between(const Node& node);
  Result<BoolPtr> Like(const Node& node);
  Result<BoolPtr> Distinct(const Node& node);
  // Nullptr when `node` is no call of a boolean function.
  Result<BoolPtr> BoolCall(const Node& node);
  Result<BoolPtr> ListCall(const Node& node);
  Result<BoolPtr> TextCall(const Node& node, TextTest test);
  Result<BoolPtr> RegexCall(const Node& node);
  bool IsBoolNode(const Node& node) const;

  std::string_view sql_;
  const file::Schema& schema_;
  const ExtraColumns& extra_;
  bool adapt_literals_;
};

}  // namespace glaive::expr
