#include "expr/type_name.h"

#include <array>
#include <cstdlib>
#include <vector>

#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/bound.h"
#include "expr/coercion.h"

namespace glaive::expr {
namespace {

using arrow::Type;

std::string_view UnitName(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return "s";
    case arrow::TimeUnit::MILLI:
      return "ms";
    case arrow::TimeUnit::MICRO:
      return "\u00b5s";
    case arrow::TimeUnit::NANO:
      return "ns";
  }
  return "s";
}

TypePtr Simple(std::string_view name) {
  if (name == "Null") return arrow::null();
  if (name == "Boolean") return arrow::boolean();
  if (name == "Int8") return arrow::int8();
  if (name == "Int16") return arrow::int16();
  if (name == "Int32") return arrow::int32();
  if (name == "Int64") return arrow::int64();
  if (name == "UInt8") return arrow::uint8();
  if (name == "UInt16") return arrow::uint16();
  if (name == "UInt32") return arrow::uint32();
  if (name == "UInt64") return arrow::uint64();
  if (name == "Float16") return arrow::float16();
  if (name == "Float32") return arrow::float32();
  if (name == "Float64") return arrow::float64();
  // Views are strings here.
  if (name == "Utf8" || name == "Utf8View") return arrow::utf8();
  if (name == "LargeUtf8") return arrow::large_utf8();
  if (name == "Binary" || name == "BinaryView") return arrow::binary();
  if (name == "LargeBinary") return arrow::large_binary();
  if (name == "Date32") return arrow::date32();
  if (name == "Date64") return arrow::date64();
  return nullptr;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Splits at commas that are in no brackets.
std::vector<std::string_view> Arguments(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(Trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return parts;
}

bool ParseUnit(std::string_view name, arrow::TimeUnit::type* unit) {
  using arrow::TimeUnit;
  if (name == "Second" || name == "s") {
    *unit = TimeUnit::SECOND;
  } else if (name == "Millisecond" || name == "ms") {
    *unit = TimeUnit::MILLI;
  } else if (name == "Microsecond" || name == "us" || name == "\u00b5s") {
    *unit = TimeUnit::MICRO;
  } else if (name == "Nanosecond" || name == "ns") {
    *unit = TimeUnit::NANO;
  } else {
    return false;
  }
  return true;
}

// None, Some("zone") or "zone"; false when it is neither.
bool ParseZone(std::string_view text, std::string* zone) {
  if (text == "None") return true;
  if (text.starts_with("Some(") && text.ends_with(")")) {
    text = text.substr(5, text.size() - 6);
  }
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  *zone = text.substr(1, text.size() - 2);
  return true;
}

int Whole(std::string_view text) { return std::atoi(std::string(text).c_str()); }

constexpr int kMostNesting = 20;

Result<TypePtr> Parse(std::string_view text, int depth) {
  text = Trim(text);
  if (TypePtr simple = Simple(text); simple != nullptr) return simple;
  const size_t open = text.find('(');
  if (open != std::string_view::npos && text.ends_with(")") && depth < kMostNesting) {
    const std::string_view name = text.substr(0, open);
    const auto arguments = Arguments(text.substr(open + 1, text.size() - open - 2));
    arrow::TimeUnit::type unit = arrow::TimeUnit::SECOND;
    if (name == "Timestamp" && arguments.size() <= 2 && ParseUnit(arguments[0], &unit)) {
      std::string zone;
      if (arguments.size() == 1 || ParseZone(arguments[1], &zone)) {
        return arrow::timestamp(unit, zone);
      }
    }
    if (name == "Time32" && ParseUnit(arguments[0], &unit) &&
        unit <= arrow::TimeUnit::MILLI) {
      return arrow::time32(unit);
    }
    if (name == "Time64" && ParseUnit(arguments[0], &unit) &&
        unit >= arrow::TimeUnit::MICRO) {
      return arrow::time64(unit);
    }
    if (name == "Duration" && ParseUnit(arguments[0], &unit))
      return arrow::duration(unit);
    if (name == "Interval" && arguments[0] == "MonthDayNano") {
      return arrow::month_day_nano_interval();
    }
    if ((name == "Decimal128" || name == "Decimal256") && arguments.size() == 2) {
      const int precision = Whole(arguments[0]);
      const int scale = Whole(arguments[1]);
      const int most = name == "Decimal128" ? 38 : 76;
      if (precision >= 1 && precision <= most && scale >= 0 && scale <= precision) {
        return most == 38 ? arrow::decimal128(precision, scale)
                          : arrow::decimal256(precision, scale);
      }
    }
    if (name == "FixedSizeBinary" && Whole(arguments[0]) > 0) {
      return arrow::fixed_size_binary(Whole(arguments[0]));
    }
    if (name == "List" || name == "LargeList") {
      GLAIVE_ASSIGN_OR_RETURN(TypePtr element, Parse(arguments[0], depth + 1));
      return name == "List" ? arrow::list(element) : arrow::large_list(element);
    }
    if (name == "FixedSizeList" && arguments.size() == 2) {
      const bool size_first =
          arguments[0].find_first_not_of("0123456789") == std::string_view::npos;
      GLAIVE_ASSIGN_OR_RETURN(TypePtr element,
                              Parse(arguments[size_first ? 1 : 0], depth + 1));
      const int size = Whole(arguments[size_first ? 0 : 1]);
      if (size > 0) return arrow::fixed_size_list(element, size);
    }
    if (name == "FixedSizeList" && arguments.size() == 1) {
      const size_t by = arguments[0].find(" x ");
      if (by != std::string_view::npos && Whole(arguments[0].substr(0, by)) > 0) {
        GLAIVE_ASSIGN_OR_RETURN(TypePtr element,
                                Parse(arguments[0].substr(by + 3), depth + 1));
        return arrow::fixed_size_list(element, Whole(arguments[0].substr(0, by)));
      }
    }
    if (name == "Struct") {
      arrow::FieldVector fields;
      for (std::string_view member : arguments) {
        const size_t close = member.find("\": ", 1);
        if (!member.starts_with('"') || close == std::string_view::npos) break;
        GLAIVE_ASSIGN_OR_RETURN(TypePtr type, Parse(member.substr(close + 3), depth + 1));
        fields.push_back(arrow::field(std::string(member.substr(1, close - 1)), type));
      }
      if (fields.size() == arguments.size()) return arrow::struct_(std::move(fields));
    }
  }
  return InvalidInput("expression: '", text.substr(0, 100),
                      "' is not the name of a type");
}

}  // namespace

std::string TypeName(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::NA:
      return "Null";
    case Type::BOOL:
      return "Boolean";
    case Type::HALF_FLOAT:
      return "Float16";
    case Type::FLOAT:
      return "Float32";
    case Type::DOUBLE:
      return "Float64";
    case Type::STRING:
      return "Utf8";
    case Type::LARGE_STRING:
      return "LargeUtf8";
    case Type::BINARY:
      return "Binary";
    case Type::LARGE_BINARY:
      return "LargeBinary";
    case Type::FIXED_SIZE_BINARY:
      return "FixedSizeBinary(" +
             std::to_string(
                 static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width()) +
             ")";
    case Type::DATE32:
      return "Date32";
    case Type::DATE64:
      return "Date64";
    case Type::TIMESTAMP: {
      const auto& stamp = static_cast<const arrow::TimestampType&>(type);
      std::string name = "Timestamp(" + std::string(UnitName(stamp.unit()));
      if (!stamp.timezone().empty()) name += ", \"" + stamp.timezone() + "\"";
      return name + ")";
    }
    case Type::TIME32:
      return "Time32(" +
             std::string(UnitName(static_cast<const arrow::TimeType&>(type).unit())) +
             ")";
    case Type::TIME64:
      return "Time64(" +
             std::string(UnitName(static_cast<const arrow::TimeType&>(type).unit())) +
             ")";
    case Type::DURATION:
      return "Duration(" +
             std::string(UnitName(static_cast<const arrow::DurationType&>(type).unit())) +
             ")";
    case Type::INTERVAL_MONTH_DAY_NANO:
      return "Interval(MonthDayNano)";
    case Type::DECIMAL128:
    case Type::DECIMAL256: {
      const auto& decimal = static_cast<const arrow::DecimalType&>(type);
      return std::string(type.id() == Type::DECIMAL128 ? "Decimal128(" : "Decimal256(") +
             std::to_string(decimal.precision()) + ", " +
             std::to_string(decimal.scale()) + ")";
    }
    case Type::LIST:
      return "List(" + TypeName(*type.field(0)->type()) + ")";
    case Type::LARGE_LIST:
      return "LargeList(" + TypeName(*type.field(0)->type()) + ")";
    case Type::FIXED_SIZE_LIST:
      return "FixedSizeList(" +
             std::to_string(
                 static_cast<const arrow::FixedSizeListType&>(type).list_size()) +
             " x " + TypeName(*type.field(0)->type()) + ")";
    case Type::STRUCT: {
      std::string name = "Struct(";
      for (int i = 0; i < type.num_fields(); ++i) {
        name += (i == 0 ? "\"" : ", \"") + type.field(i)->name() +
                "\": " + TypeName(*type.field(i)->type());
      }
      return name + ")";
    }
    case Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryType&>(type);
      return "Dictionary(" + TypeName(*dictionary.index_type()) + ", " +
             TypeName(*dictionary.value_type()) + ")";
    }
    default:
      if (arrow::is_integer(type.id())) {
        return (arrow::is_unsigned_integer(type.id()) ? "UInt" : "Int") +
               std::to_string(arrow::bit_width(type.id()));
      }
      return type.ToString();
  }
}

Result<TypePtr> ParseTypeName(std::string_view text) { return Parse(text, 0); }

// The names of SQL.
Result<TypePtr> ParseCastType(const std::string& text) {
  std::string name = text;
  if (name.ends_with("[]")) {
    GLAIVE_ASSIGN_OR_RETURN(TypePtr element,
                            ParseCastType(name.substr(0, name.size() - 2)));
    return arrow::list(arrow::field("item", std::move(element)));
  }
  if (name.ends_with(" tz")) name.resize(name.size() - 3);
  const bool is_unsigned = name.ends_with(" unsigned");
  if (is_unsigned) name.resize(name.size() - std::string_view(" unsigned").size());
  std::vector<int> numbers;
  if (const size_t open = name.find('('); open != std::string::npos) {
    const char* at = name.c_str() + open + 1;
    while (*at != '\0' && *at != ')') {
      char* end = nullptr;
      numbers.push_back(static_cast<int>(std::strtol(at, &end, 10)));
      if (end == at) break;
      at = *end == ',' ? end + 1 : end;
    }
    name.resize(open);
  }
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (one_of({"tinyint", "int1"})) return is_unsigned ? arrow::uint8() : arrow::int8();
  if (one_of({"smallint", "int2", "int16"})) {
    return is_unsigned ? arrow::uint16() : arrow::int16();
  }
  if (one_of({"int", "integer", "int4", "int32"})) {
    return is_unsigned ? arrow::uint32() : arrow::int32();
  }
  // int8 is the type of eight bytes, as in PostgreSQL and upstream.
  if (one_of({"bigint", "int8", "int64"})) {
    return is_unsigned ? arrow::uint64() : arrow::int64();
  }
  if (one_of({"boolean", "bool"})) return arrow::boolean();
  if (name == "uint8") return arrow::uint8();
  if (name == "uint16") return arrow::uint16();
  if (name == "uint32") return arrow::uint32();
  if (name == "uint64") return arrow::uint64();
  if (one_of({"float", "real", "float4", "float32"})) return arrow::float32();
  if (one_of({"double", "float8", "float64"})) return arrow::float64();
  if (name == "float16") return arrow::float16();
  if (one_of({"string", "varchar", "text", "utf8", "char", "character"})) {
    return arrow::utf8();
  }
  if (one_of({"large_string", "large_utf8"})) return arrow::large_utf8();
  if (one_of({"binary", "varbinary", "bytea", "blob"})) return arrow::binary();
  if (one_of({"date", "date32"})) return arrow::date32();
  if (name == "date64") return arrow::date64();
  if (name == "time") return arrow::time64(arrow::TimeUnit::NANO);
  if (name == "interval") return arrow::month_day_nano_interval();
  if (one_of({"timestamp", "datetime", "timestamptz"})) {
    // As upstream without a zone of its own: "with time zone" is without one.
    switch (numbers.empty() ? 6 : numbers[0]) {
      case 0:
        return arrow::timestamp(arrow::TimeUnit::SECOND);
      case 3:
        return arrow::timestamp(arrow::TimeUnit::MILLI);
      case 6:
        return arrow::timestamp(arrow::TimeUnit::MICRO);
      case 9:
        return arrow::timestamp(arrow::TimeUnit::NANO);
      default:
        return InvalidInput("expression: the precision of a timestamp is 0, 3, 6 or 9");
    }
  }
  if (one_of({"decimal", "numeric", "dec"})) {
    const int precision = numbers.empty() ? 38 : numbers[0];
    const int scale = numbers.empty() ? 10 : numbers.size() < 2 ? 0 : numbers[1];
    if (precision < 1 || precision > 76 || scale < 0 || scale > precision) {
      return InvalidInput("expression: decimal(", precision, ",", scale,
                          ") is no valid type");
    }
    if (precision <= 38) return arrow::decimal128(precision, scale);
    return arrow::decimal256(precision, scale);
  }
  return InvalidInput("expression: CAST to type '", text, "' is not supported");
}

}  // namespace glaive::expr
