// Tests of one array against constants: the leaves of a predicate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "expr/literal.h"

namespace glaive::expr {

// Immutable; thread-safe.
class ArrayPredicate {
 public:
  virtual ~ArrayPredicate() = default;

  // Bit i of `out` (WordCount(length) words) is set iff row i is not null and the test
  // gives `want`.
  void Eval(const arrow::Array& array, bool want, uint64_t* out) const;

 private:
  // The test alone; the result for null rows does not matter.
  virtual void Test(const arrow::Array& array, uint64_t* out) const = 0;
};

using ArrayPredicatePtr = std::shared_ptr<const ArrayPredicate>;

// Each predicate accepts arrays of exactly `type`. InvalidInput when the literal cannot
// be compared with it (the message says what with what); the literal must not be null.
Result<ArrayPredicatePtr> MakeComparePredicate(
    const std::shared_ptr<arrow::DataType>& type, CompareOp op, const Literal& literal);
// value IN (literals), none of them null.
Result<ArrayPredicatePtr> MakeInPredicate(const std::shared_ptr<arrow::DataType>& type,
                                          const std::vector<Literal>& literals);

enum class TextTest : uint8_t { kLike, kContains, kStartsWith, kEndsWith };
// Strings (and dictionaries of them) against a constant pattern.
Result<ArrayPredicatePtr> MakeTextPredicate(const std::shared_ptr<arrow::DataType>& type,
                                            TextTest test, std::string pattern,
                                            char escape);

// Applies `values` to the dictionary once and looks the results up by index.
ArrayPredicatePtr MakeDictionaryPredicate(ArrayPredicatePtr values);

// Bit i of `out`: left[i] op right[i], for rows where neither is null and the outcome is
// `want`. Both arrays have the same type and length. NotSupported for types without an
// order.
Status ComparePairs(const arrow::Array& left, CompareOp op, const arrow::Array& right,
                    bool want, uint64_t* out);

// out &= not null
void AndValidity(const arrow::Array& array, uint64_t* out);

}  // namespace glaive::expr
