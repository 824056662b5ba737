// Functions on numbers.
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// float32 stays, everything else is computed in float64.
TypePtr FloatFor(const ValuePtr& value) {
  const Type::type id = ValueType(value->type())->id();
  return id == Type::FLOAT || id == Type::HALF_FLOAT ? arrow::float32()
                                                     : arrow::float64();
}

template <typename Function>
Result<ValuePtr> FloatCall(CallSite call) {
  const TypePtr type = FloatFor(call.arguments[0]);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, NumberArgument(call, 0, type));
  return MakeKernel(type, {std::move(value)}, [type](const KernelArgs& args) {
    if (type->id() == Type::FLOAT) {
      const Numbers<float> x(args[0]);
      return MapNumbers<float>(args, type, [&](int64_t i) { return Function()(x[i]); });
    }
    const Numbers<double> x(args[0]);
    return MapNumbers<double>(args, type, [&](int64_t i) { return Function()(x[i]); });
  });
}

// The logarithm of a negative number is the NaN above all numbers, as upstream has it;
// what the library gives is the one below them.
template <typename T, typename Log>
T LogOf(T x, const Log& log) {
  return x < 0 ? std::numeric_limits<T>::quiet_NaN() : log(x);
}

// clang-format off
#define GLAIVE_FLOAT_FUNCTION(Name, expression) \
  struct Name {                                 \
    template <typename T>                       \
    T operator()(T x) const { return static_cast<T>(expression); } \
  };
GLAIVE_FLOAT_FUNCTION(Acos, std::acos(x))
GLAIVE_FLOAT_FUNCTION(Acosh, std::acosh(x))
GLAIVE_FLOAT_FUNCTION(Asin, std::asin(x))
GLAIVE_FLOAT_FUNCTION(Asinh, std::asinh(x))
GLAIVE_FLOAT_FUNCTION(Atan, std::atan(x))
GLAIVE_FLOAT_FUNCTION(Atanh, std::atanh(x))
// In extended precision first: the last bit of std::cbrt is often wrong.
GLAIVE_FLOAT_FUNCTION(Cbrt, std::cbrt(static_cast<long double>(x)))
GLAIVE_FLOAT_FUNCTION(Ceil, std::ceil(x))
GLAIVE_FLOAT_FUNCTION(Cos, std::cos(x))
GLAIVE_FLOAT_FUNCTION(Cosh, std::cosh(x))
GLAIVE_FLOAT_FUNCTION(Cot, T{1} / std::tan(x))
// 180 / pi rounded once; divided in float32 it is too small.
GLAIVE_FLOAT_FUNCTION(Degrees, x * static_cast<T>(180 / std::numbers::pi_v<long double>))
GLAIVE_FLOAT_FUNCTION(Exp, std::exp(x))
GLAIVE_FLOAT_FUNCTION(FloorOfFloat, std::floor(x))
GLAIVE_FLOAT_FUNCTION(Ln, LogOf(x, [](T v) { return std::log(v); }))
GLAIVE_FLOAT_FUNCTION(Log2, LogOf(x, [](T v) { return std::log2(v); }))
GLAIVE_FLOAT_FUNCTION(Log10, LogOf(x, [](T v) { return std::log10(v); }))
GLAIVE_FLOAT_FUNCTION(Radians, x * (std::numbers::pi_v<T> / T{180}))
// +0 for both zeros.
GLAIVE_FLOAT_FUNCTION(Signum, x == T{0} ? T{0} : std::isnan(x) ? std::numeric_limits<T>::quiet_NaN() : std::copysign(T{1}, x))
GLAIVE_FLOAT_FUNCTION(Sin, std::sin(x))
GLAIVE_FLOAT_FUNCTION(Sinh, std::sinh(x))
GLAIVE_FLOAT_FUNCTION(Sqrt, std::sqrt(x))
GLAIVE_FLOAT_FUNCTION(Tan, std::tan(x))
GLAIVE_FLOAT_FUNCTION(Tanh, std::tanh(x))
#undef GLAIVE_FLOAT_FUNCTION
// clang-format on

template <typename Function>
Result<ValuePtr> FloatPair(CallSite call, const TypePtr& type, const Function& function) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr a, NumberArgument(call, 0, type));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr b, NumberArgument(call, 1, type));
  return MakeKernel(type, {std::move(a), std::move(b)},
                    [type, function](const KernelArgs& args) {
                      if (type->id() == Type::FLOAT) {
                        const Numbers<float> x(args[0]);
                        const Numbers<float> y(args[1]);
                        return MapNumbers<float>(
                            args, type, [&](int64_t i) { return function(x[i], y[i]); });
                      }
                      const Numbers<double> x(args[0]);
                      const Numbers<double> y(args[1]);
                      return MapNumbers<double>(
                          args, type, [&](int64_t i) { return function(x[i], y[i]); });
                    });
}

TypePtr PairType(const CallSite& call) {
  const bool single = FloatFor(call.arguments[0])->id() == Type::FLOAT &&
                      FloatFor(call.arguments[1])->id() == Type::FLOAT;
  return single ? arrow::float32() : arrow::float64();
}

Result<ValuePtr> Atan2(CallSite call) {
  const TypePtr type = PairType(call);
  return FloatPair(std::move(call), type,
                   [](auto y, auto x) { return std::atan2(y, x); });
}

template <bool kNan>
Result<ValuePtr> FloatTest(CallSite call) {
  const TypePtr type = FloatFor(call.arguments[0]);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, NumberArgument(call, 0, type));
  return MakeKernel(arrow::boolean(), {std::move(value)}, [type](const KernelArgs& args) {
    const auto test = [](auto x) { return kNan ? std::isnan(x) : x == 0; };
    if (type->id() == Type::FLOAT) {
      const Numbers<float> x(args[0]);
      return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
        *out = test(x[i]);
        return true;
      });
    }
    const Numbers<double> x(args[0]);
    return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
      *out = test(x[i]);
      return true;
    });
  });
}

Result<ValuePtr> NanVl(CallSite call) {
  const TypePtr type = PairType(call);
  GLAIVE_ASSIGN_OR_RETURN(const ValuePtr value, NumberArgument(call, 0, type));
  GLAIVE_ASSIGN_OR_RETURN(const ValuePtr other, NumberArgument(call, 1, type));
  CallSite test{"isnan", {value}};
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr is_nan, FloatTest<true>(std::move(test)));
  return MakeCase({MakeFromValue(std::move(is_nan))}, {other}, value);
}

Result<ValuePtr> Log(CallSite call) {
  if (call.arguments.size() == 1) return FloatCall<Log10>(std::move(call));
  const TypePtr type = FloatFor(call.arguments[1]);
  return FloatPair(std::move(call), type, [](auto base, auto x) {
    const auto log = [](auto v) { return LogOf(v, [](auto y) { return std::log(y); }); };
    return static_cast<decltype(x)>(log(x) / log(base));
  });
}

Result<ValuePtr> Power(CallSite call) {
  return FloatPair(std::move(call), arrow::float64(),
                   [](auto x, auto y) { return std::pow(x, y); });
}

// Decimals stay decimals.
template <typename Function>
Result<ValuePtr> WholeCall(CallSite call) {
  const TypePtr type = ValueType(call.arguments[0]->type());
  if (!arrow::is_decimal(type->id())) return FloatCall<Function>(std::move(call));
  return MakeFunction(std::string(call.name), std::move(call.arguments), {type}, type);
}

Result<ValuePtr> Round(CallSite call) {
  const bool trunc = call.name == "trunc";
  const TypePtr from = ValueType(call.arguments[0]->type());
  if (from->id() == Type::DECIMAL128 && !trunc && call.arguments.size() == 1) {
    const int precision = static_cast<const arrow::DecimalType&>(*from).precision();
    return MakeCast(std::move(call.arguments[0]), arrow::decimal128(precision, 0));
  }
  const TypePtr type = FloatFor(call.arguments[0]);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, NumberArgument(call, 0, type));
  ValuePtr digits = ConstantOf(std::make_shared<arrow::Int64Scalar>(0));
  if (call.arguments.size() == 2) {
    GLAIVE_ASSIGN_OR_RETURN(digits, NumberArgument(call, 1, arrow::int64()));
  }
  const auto run = [type, trunc]<typename T>(const KernelArgs& args) {
    const Numbers<T> x(args[0]);
    const Numbers<int64_t> places(args[1]);
    return MapNumbers<T>(args, type, [&](int64_t i) {
      if (places[i] == 0) {
        if (!trunc) return std::round(x[i]);
        return x[i] == 0 ? T{0} : std::trunc(x[i]);  // -0 loses its sign
      }
      const T factor = std::pow(T{10}, static_cast<T>(places[i]));
      return (trunc ? std::trunc(x[i] * factor) : std::round(x[i] * factor)) / factor;
    });
  };
  return MakeKernel(type, {std::move(value), std::move(digits)},
                    [type, run](const KernelArgs& args) {
                      return type->id() == Type::FLOAT ? run.operator()<float>(args)
                                                       : run.operator()<double>(args);
                    });
}

Result<ValuePtr> Abs(CallSite call) {
  const TypePtr type = ValueType(call.arguments[0]->type());
  if (type->id() == Type::NA) return call.arguments[0];
  if (!IsNumeric(*type)) return WrongArgument(call, 0, "a number");
  if (type->id() == Type::HALF_FLOAT) {
    return MakeFunction("abs", std::move(call.arguments), {arrow::float32()}, type);
  }
  return MakeFunction("abs_checked", std::move(call.arguments), {type});
}

// int64 by int64
template <typename Function>
Result<ValuePtr> IntegerPair(CallSite call, const Function& function) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr a, NumberArgument(call, 0, arrow::int64()));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr b, NumberArgument(call, 1, arrow::int64()));
  return MakeKernel(
      arrow::int64(), {std::move(a), std::move(b)}, [function](const KernelArgs& args) {
        const Numbers<int64_t> x(args[0]);
        const Numbers<int64_t> y(args[1]);
        return TryMapNumbers<int64_t>(
            args, arrow::int64(), [&](int64_t i, int64_t* out) -> Result<bool> {
              if (function(x[i], y[i], out)) return true;
              return InvalidInput("expression: gcd() or lcm() is too large for int64");
            });
      });
}

bool GreatestDivisor(int64_t x, int64_t y, int64_t* out) {
  const auto magnitude = [](int64_t v) {
    return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  };
  const uint64_t divisor = std::gcd(magnitude(x), magnitude(y));
  *out = static_cast<int64_t>(divisor);
  return divisor <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

Result<ValuePtr> Gcd(CallSite call) {
  return IntegerPair(std::move(call), GreatestDivisor);
}

Result<ValuePtr> Lcm(CallSite call) {
  return IntegerPair(std::move(call), [](int64_t x, int64_t y, int64_t* out) {
    *out = 0;
    if (x == 0 || y == 0) return true;
    int64_t divisor = 0;
    if (!GreatestDivisor(x, y, &divisor)) return false;
    if (__builtin_mul_overflow(x / divisor, y, out)) return false;
    if (*out == std::numeric_limits<int64_t>::min()) return false;
    *out = std::abs(*out);
    return true;
  });
}

Result<ValuePtr> Factorial(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, NumberArgument(call, 0, arrow::int64()));
  return MakeKernel(arrow::int64(), {std::move(value)}, [](const KernelArgs& args) {
    const Numbers<int64_t> x(args[0]);
    return TryMapNumbers<int64_t>(
        args, arrow::int64(), [&](int64_t i, int64_t* out) -> Result<bool> {
          if (x[i] > 20)
            return InvalidInput("expression: factorial(", x[i],
                                ") is too large for int64");
          if (x[i] < 0)
            return InvalidInput("expression: factorial(", x[i], ") is not defined");
          *out = 1;
          for (int64_t k = 2; k <= x[i]; ++k) *out *= k;
          return true;
        });
  });
}

Result<ValuePtr> Pi(CallSite) {
  return ConstantOf(std::make_shared<arrow::DoubleScalar>(std::numbers::pi));
}

Result<ValuePtr> Random(CallSite) {
  return MakeKernel(
      arrow::float64(), {},
      [](const KernelArgs& args) {
        thread_local std::mt19937_64 generator{std::random_device{}()};
        std::uniform_real_distribution<double> uniform(0, 1);
        return MapNumbers<double>(args, arrow::float64(),
                                  [&](int64_t) { return uniform(generator); });
      },
      Volatility::kVolatile);
}

}  // namespace

const std::vector<FunctionEntry>& MathFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"abs", 1, 1, Abs},
      {"acos", 1, 1, FloatCall<Acos>},
      {"acosh", 1, 1, FloatCall<Acosh>},
      {"asin", 1, 1, FloatCall<Asin>},
      {"asinh", 1, 1, FloatCall<Asinh>},
      {"atan", 1, 1, FloatCall<Atan>},
      {"atan2", 2, 2, Atan2},
      {"atanh", 1, 1, FloatCall<Atanh>},
      {"cbrt", 1, 1, FloatCall<Cbrt>},
      {"ceil", 1, 1, WholeCall<Ceil>},
      {"cos", 1, 1, FloatCall<Cos>},
      {"cosh", 1, 1, FloatCall<Cosh>},
      {"cot", 1, 1, FloatCall<Cot>},
      {"degrees", 1, 1, FloatCall<Degrees>},
      {"exp", 1, 1, FloatCall<Exp>},
      {"factorial", 1, 1, Factorial},
      {"floor", 1, 1, WholeCall<FloorOfFloat>},
      {"gcd", 2, 2, Gcd},
      {"isnan", 1, 1, FloatTest<true>},
      {"iszero", 1, 1, FloatTest<false>},
      {"lcm", 2, 2, Lcm},
      {"ln", 1, 1, FloatCall<Ln>},
      {"log", 1, 2, Log},
      {"log10", 1, 1, FloatCall<Log10>},
      {"log2", 1, 1, FloatCall<Log2>},
      {"nanvl", 2, 2, NanVl},
      {"pi", 0, 0, Pi},
      {"pow", 2, 2, Power},
      {"power", 2, 2, Power},
      {"radians", 1, 1, FloatCall<Radians>},
      {"rand", 0, 0, Random},
      {"random", 0, 0, Random},
      {"round", 1, 2, Round},
      {"signum", 1, 1, FloatCall<Signum>},
      {"sin", 1, 1, FloatCall<Sin>},
      {"sinh", 1, 1, FloatCall<Sinh>},
      {"sqrt", 1, 1, FloatCall<Sqrt>},
      {"tan", 1, 1, FloatCall<Tan>},
      {"tanh", 1, 1, FloatCall<Tanh>},
      {"trunc", 1, 2, Round},
  };
  return functions;
}

}  // namespace glaive::expr
