// From syntax tree and schema to a bound expression.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expr/ast.h"
#include "expr/bound.h"
#include "expr/predicate.h"
#include "file/schema.h"

namespace glaive::expr {

// Exact first, then case-insensitive when that is unambiguous and the name is not quoted.
// Nullptr when there is none.
const file::Field* FindMember(const std::vector<file::Field>& fields,
                              const PathSegment& segment);

class Binder {
 public:
  // `adapt_literals`: see MakeArithmetic.
  Binder(std::string_view sql, const file::Schema& schema, const ExtraColumns& extra,
         bool adapt_literals)
      : sql_(sql), schema_(schema), extra_(extra), adapt_literals_(adapt_literals) {}

  Result<BoolPtr> Bool(const Node& node) { return Bool(node, true); }
  Result<ValuePtr> Value(const Node& node) { return Value(node, adapt_literals_); }

  // As upstream in conditions: a CAST of a constant that fails is an error of the
  // expression, not of the rows.
  bool check_constants = false;

  // Paths of the columns met, quoted; names of the extra columns met.
  std::vector<std::string> columns;
  std::vector<std::string> extra_columns;

 private:
  // `outer`: the node is the whole expression, or joined to it by AND and OR alone. There
  // upstream gives literals the type of the column they meet: 0.1 is the float32 0.1.
  Result<BoolPtr> Bool(const Node& node, bool outer);
  Result<ValuePtr> Value(const Node& node, bool outer);
  Result<BoolPtr> BindBool(const Node& node, bool outer);
  Result<ValuePtr> BindValue(const Node& node, bool outer);
  // An error that does not say where gets the place of `node`.
  Status Place(const Node& node, const Status& status) const;

  Result<ValuePtr> Cast(ValuePtr operand, std::shared_ptr<arrow::DataType> type,
                        bool null_on_failure);
  Result<ValuePtr> Name(const Node& node);
  // The column that a path through structs leads to; nullptr when `node` is none.
  Result<ValuePtr> Path(const std::vector<PathSegment>& path, size_t begin);
  Status UnknownColumn(size_t begin, std::string_view segment) const;
  Result<BoolPtr> Compare(const Node& node, bool outer);
  Result<BoolPtr> Chain(const Node& node, bool outer);
  Result<BoolPtr> IsNull(const Node& node);
  Result<BoolPtr> In(const Node& node, bool outer);
  Result<BoolPtr> InValues(const Node& value,
                           std::span<const std::unique_ptr<Node>> items, bool outer);
  Result<BoolPtr> Between(const Node& node, bool outer);
  Result<BoolPtr> Like(const Node& node);
  Result<BoolPtr> Distinct(const Node& node);
  Result<ValuePtr> Case(const Node& node);
  Result<ValuePtr> Subscript(const Node& node);
  Result<ValuePtr> Call(const Node& node);
  // arrow_metadata() and with_metadata().
  Result<ValuePtr> MetadataCall(const Node& node);
  std::map<std::string, std::string> MetadataOf(const Node& node) const;
  Result<std::vector<ValuePtr>> Values(const Node& node);
  // The same where the values are evaluated more than once. Nested, that takes time which
  // doubles with each level: so there are few levels.
  Result<std::vector<ValuePtr>> RepeatedValues(const Node& node);
  Result<ValuePtr> RepeatedValue(const Node& around, const Node& node);
  // InvalidInput or one level more, until `--repeats_`.
  Status EnterRepeated(const Node& node);
  // The quick forms of functions that test a column against constants; nullptr when the
  // call is none.
  Result<BoolPtr> QuickCall(const Node& node, const std::vector<ValuePtr>& arguments);
  bool IsBoolNode(const Node& node) const;

  std::string_view sql_;
  const file::Schema& schema_;
  const ExtraColumns& extra_;
  bool adapt_literals_;
  // Calls around what is being bound. Inside of them timestamps have nanoseconds.
  int calls_ = 0;
  // Expressions around it that use its value several times.
  int repeats_ = 0;
};

}  // namespace glaive::expr
