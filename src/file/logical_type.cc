// Logical type strings of files and manifests <-> Arrow types.
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>

#include "file/schema.h"

namespace glaive::file {
namespace {

constexpr char kExtensionName[] = "ARROW:extension:name";
constexpr char kExtensionMetadata[] = "ARROW:extension:metadata";
constexpr char kBfloat16[] = "lance.bfloat16";

struct PlainType {
  std::string_view name;
  arrow::Type::type id;
};

// Types without parameters; the spelling is that of the format.
constexpr PlainType kPlainTypes[] = {
    {"null", arrow::Type::NA},
    {"bool", arrow::Type::BOOL},
    {"int8", arrow::Type::INT8},
    {"uint8", arrow::Type::UINT8},
    {"int16", arrow::Type::INT16},
    {"uint16", arrow::Type::UINT16},
    {"int32", arrow::Type::INT32},
    {"uint32", arrow::Type::UINT32},
    {"int64", arrow::Type::INT64},
    {"uint64", arrow::Type::UINT64},
    {"halffloat", arrow::Type::HALF_FLOAT},
    {"float", arrow::Type::FLOAT},
    {"double", arrow::Type::DOUBLE},
    {"string", arrow::Type::STRING},
    {"large_string", arrow::Type::LARGE_STRING},
    {"binary", arrow::Type::BINARY},
    {"large_binary", arrow::Type::LARGE_BINARY},
    {"date32:day", arrow::Type::DATE32},
    {"date64:ms", arrow::Type::DATE64},
};

std::shared_ptr<arrow::DataType> MakePlain(arrow::Type::type id) {
  switch (id) {
    case arrow::Type::NA:
      return arrow::null();
    case arrow::Type::BOOL:
      return arrow::boolean();
    case arrow::Type::INT8:
      return arrow::int8();
    case arrow::Type::UINT8:
      return arrow::uint8();
    case arrow::Type::INT16:
      return arrow::int16();
    case arrow::Type::UINT16:
      return arrow::uint16();
    case arrow::Type::INT32:
      return arrow::int32();
    case arrow::Type::UINT32:
      return arrow::uint32();
    case arrow::Type::INT64:
      return arrow::int64();
    case arrow::Type::UINT64:
      return arrow::uint64();
    case arrow::Type::HALF_FLOAT:
      return arrow::float16();
    case arrow::Type::FLOAT:
      return arrow::float32();
    case arrow::Type::DOUBLE:
      return arrow::float64();
    case arrow::Type::STRING:
      return arrow::utf8();
    case arrow::Type::LARGE_STRING:
      return arrow::large_utf8();
    case arrow::Type::BINARY:
      return arrow::binary();
    case arrow::Type::LARGE_BINARY:
      return arrow::large_binary();
    case arrow::Type::DATE32:
      return arrow::date32();
    default:
      return arrow::date64();
  }
}

std::string_view UnitName(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return "s";
    case arrow::TimeUnit::MILLI:
      return "ms";
    case arrow::TimeUnit::MICRO:
      return "us";
    default:
      return "ns";
  }
}

std::optional<arrow::TimeUnit::type> ParseUnit(std::string_view text) {
  if (text == "s") return arrow::TimeUnit::SECOND;
  if (text == "ms") return arrow::TimeUnit::MILLI;
  if (text == "us") return arrow::TimeUnit::MICRO;
  if (text == "ns") return arrow::TimeUnit::NANO;
  return std::nullopt;
}

Status BadType(std::string_view text) {
  return Corruption("unknown logical type '", text, "'");
}

Result<int32_t> ParseInt(std::string_view digits, std::string_view whole) {
  int32_t value = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return BadType(whole);
  return value;
}

bool IsBfloat16Item(const arrow::Field& item) {
  if (item.type()->id() != arrow::Type::FIXED_SIZE_BINARY || !item.metadata())
    return false;
  auto name = item.metadata()->Get(kExtensionName);
  return name.ok() && *name == kBfloat16;
}

Result<std::shared_ptr<arrow::DataType>> ParseFixedSizeList(std::string_view rest,
                                                            std::string_view whole) {
  size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return BadType(whole);
  GLAIVE_ASSIGN_OR_RETURN(int32_t size, ParseInt(rest.substr(colon + 1), whole));
  if (size <= 0) return BadType(whole);
  std::string_view element = rest.substr(0, colon);
  if (element == kBfloat16) {
    auto item = arrow::field(
        "item", arrow::fixed_size_binary(2), true,
        arrow::key_value_metadata({kExtensionName, kExtensionMetadata}, {kBfloat16, ""}));
    return arrow::fixed_size_list(std::move(item), size);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto type, ParseLogicalType(element));
  return arrow::fixed_size_list(arrow::field("item", std::move(type), true), size);
}

Result<std::shared_ptr<arrow::DataType>> ParseDecimal(std::string_view rest,
                                                      std::string_view whole) {
  size_t first = rest.find(':');
  size_t second = first == std::string_view::npos ? first : rest.find(':', first + 1);
  if (second == std::string_view::npos) return BadType(whole);
  GLAIVE_ASSIGN_OR_RETURN(int32_t precision,
                          ParseInt(rest.substr(first + 1, second - first - 1), whole));
  GLAIVE_ASSIGN_OR_RETURN(int32_t scale, ParseInt(rest.substr(second + 1), whole));
  std::string_view width = rest.substr(0, first);
  arrow::Result<std::shared_ptr<arrow::DataType>> made =
      width == "128"   ? arrow::Decimal128Type::Make(precision, scale)
      : width == "256" ? arrow::Decimal256Type::Make(precision, scale)
                       : arrow::Result<std::shared_ptr<arrow::DataType>>(BadType(whole));
  if (!made.ok()) return BadType(whole);
  return made;
}

Result<std::shared_ptr<arrow::DataType>> ParseDictionary(std::string_view rest,
                                                         std::string_view whole) {
  size_t ordered = rest.rfind(':');
  if (ordered == std::string_view::npos) return BadType(whole);
  size_t index = rest.rfind(':', ordered - 1);
  if (index == std::string_view::npos || ordered == 0) return BadType(whole);
  GLAIVE_ASSIGN_OR_RETURN(auto value_type, ParseLogicalType(rest.substr(0, index)));
  GLAIVE_ASSIGN_OR_RETURN(auto index_type,
                          ParseLogicalType(rest.substr(index + 1, ordered - index - 1)));
  if (!arrow::is_integer(index_type->id())) return BadType(whole);
  return arrow::dictionary(std::move(index_type), std::move(value_type));
}

Result<std::shared_ptr<arrow::DataType>> ParseTime(std::string_view text) {
  if (text == "time32:s") return arrow::time32(arrow::TimeUnit::SECOND);
  if (text == "time32:ms") return arrow::time32(arrow::TimeUnit::MILLI);
  if (text == "time64:us") return arrow::time64(arrow::TimeUnit::MICRO);
  if (text == "time64:ns") return arrow::time64(arrow::TimeUnit::NANO);
  return BadType(text);
}

}  // namespace

Result<std::string> LogicalTypeOf(const arrow::DataType& type) {
  for (const PlainType& plain : kPlainTypes) {
    if (plain.id == type.id()) return std::string(plain.name);
  }
  switch (type.id()) {
    case arrow::Type::STRING_VIEW:
      return std::string("string");
    case arrow::Type::BINARY_VIEW:
      return std::string("binary");
    case arrow::Type::TIME32: {
      const auto& t = static_cast<const arrow::Time32Type&>(type);
      return "time32:" + std::string(UnitName(t.unit()));
    }
    case arrow::Type::TIME64: {
      const auto& t = static_cast<const arrow::Time64Type&>(type);
      return "time64:" + std::string(UnitName(t.unit()));
    }
    case arrow::Type::TIMESTAMP: {
      const auto& t = static_cast<const arrow::TimestampType&>(type);
      return "timestamp:" + std::string(UnitName(t.unit())) + ":" +
             (t.timezone().empty() ? "-" : t.timezone());
    }
    case arrow::Type::DURATION: {
      const auto& t = static_cast<const arrow::DurationType&>(type);
      return "duration:" + std::string(UnitName(t.unit()));
    }
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256: {
      const auto& t = static_cast<const arrow::DecimalType&>(type);
      return "decimal:" +
             std::string(type.id() == arrow::Type::DECIMAL128 ? "128" : "256") + ":" +
             std::to_string(t.precision()) + ":" + std::to_string(t.scale());
    }
    case arrow::Type::FIXED_SIZE_BINARY: {
      const auto& t = static_cast<const arrow::FixedSizeBinaryType&>(type);
      return "fixed_size_binary:" + std::to_string(t.byte_width());
    }
    case arrow::Type::DICTIONARY: {
      const auto& t = static_cast<const arrow::DictionaryType&>(type);
      if (t.value_type()->num_fields() > 0 ||
          t.value_type()->id() == arrow::Type::DICTIONARY) {
        break;
      }
      GLAIVE_ASSIGN_OR_RETURN(auto value, LogicalTypeOf(*t.value_type()));
      // Names with parameters cannot be told apart inside a dictionary's own.
      if (value.find(':') != std::string::npos) break;
      GLAIVE_ASSIGN_OR_RETURN(auto index, LogicalTypeOf(*t.index_type()));
      return "dict:" + value + ":" + index + ":false";
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto& t = static_cast<const arrow::FixedSizeListType&>(type);
      if (t.list_size() <= 0) {
        return NotSupported("a fixed-size list needs a size of at least 1, got ",
                            t.list_size());
      }
      std::string size = ":" + std::to_string(t.list_size());
      const arrow::Field& item = *t.value_field();
      if (IsBfloat16Item(item)) return "fixed_size_list:" + std::string(kBfloat16) + size;
      const arrow::DataType& element = *item.type();
      bool fixed_width = element.id() == arrow::Type::FIXED_SIZE_LIST ||
                         (arrow::is_fixed_width(element.id()) &&
                          element.id() != arrow::Type::DICTIONARY);
      if (!fixed_width) break;
      GLAIVE_ASSIGN_OR_RETURN(auto inner, LogicalTypeOf(element));
      return "fixed_size_list:" + inner + size;
    }
    case arrow::Type::STRUCT:
      return std::string("struct");
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST: {
      std::string name = type.id() == arrow::Type::LIST ? "list" : "large_list";
      return type.field(0)->type()->id() == arrow::Type::STRUCT ? name + ".struct" : name;
    }
    case arrow::Type::MAP:
      return std::string("map");
    default:
      break;
  }
  return NotSupported("type ", type.ToString(), " cannot be stored");
}

Result<std::shared_ptr<arrow::DataType>> ParseLogicalType(std::string_view text) {
  for (const PlainType& plain : kPlainTypes) {
    if (plain.name == text) return MakePlain(plain.id);
  }
  if (text == "json" || text == "blob") return arrow::large_binary();
  size_t colon = text.find(':');
  if (colon == std::string_view::npos) return BadType(text);
  std::string_view head = text.substr(0, colon);
  std::string_view rest = text.substr(colon + 1);
  if (head == "timestamp") {
    size_t next = rest.find(':');
    if (next == std::string_view::npos) return BadType(text);
    auto unit = ParseUnit(rest.substr(0, next));
    if (!unit) return BadType(text);
    // The zone may contain colons itself.
    std::string zone(rest.substr(next + 1));
    return zone == "-" ? arrow::timestamp(*unit) : arrow::timestamp(*unit, zone);
  }
  if (head == "duration") {
    auto unit = ParseUnit(rest);
    if (!unit) return BadType(text);
    return arrow::duration(*unit);
  }
  if (head == "time32" || head == "time64") return ParseTime(text);
  if (head == "decimal") return ParseDecimal(rest, text);
  if (head == "dict") return ParseDictionary(rest, text);
  if (head == "fixed_size_list") return ParseFixedSizeList(rest, text);
  if (head == "fixed_size_binary") {
    GLAIVE_ASSIGN_OR_RETURN(int32_t width, ParseInt(rest, text));
    if (width < 0) return BadType(text);
    return arrow::fixed_size_binary(width);
  }
  return BadType(text);
}

}  // namespace glaive::file
