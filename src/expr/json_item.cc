#include "expr/json_item.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "encoding/jsonb_format.h"

namespace glaive::expr {
namespace {

namespace jsonb = encoding::jsonb;

Status Malformed() { return Corruption("expression: a JSON value is malformed"); }

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (char c : bytes) value = (value << 8) | static_cast<unsigned char>(c);
  return value;
}

void AppendWord(uint32_t word, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>((word >> shift) & 0xFF));
  }
}

}  // namespace

Result<uint32_t> JsonItem::Word(size_t at) const {
  if (at > payload_.size() || payload_.size() - at < 4) return Malformed();
  return static_cast<uint32_t>(BigEndian(payload_.substr(at, 4)));
}

Result<JsonItem> JsonItem::FromEntry(uint32_t entry, std::string_view payload) {
  JsonItem item;
  item.entry_ = entry;
  item.payload_ = payload;
  switch (entry & jsonb::kEntryType) {
    case jsonb::kNullEntry:
      item.kind_ = Kind::kNull;
      return item;
    case jsonb::kStringEntry:
      item.kind_ = Kind::kString;
      return item;
    case jsonb::kNumberEntry:
      item.kind_ = Kind::kNumber;
      return item;
    case jsonb::kFalseEntry:
    case jsonb::kTrueEntry:
      item.kind_ = Kind::kBool;
      item.flag_ = (entry & jsonb::kEntryType) == jsonb::kTrueEntry;
      return item;
    case jsonb::kContainerEntry: {
      GLAIVE_ASSIGN_OR_RETURN(const uint32_t header, item.Word(0));
      const uint32_t kind = header & jsonb::kHeaderKind;
      if (kind != jsonb::kArray && kind != jsonb::kObject) return Malformed();
      item.kind_ = kind == jsonb::kArray ? Kind::kArray : Kind::kObject;
      return item;
    }
    default:
      return Malformed();
  }
}

Result<JsonItem> JsonItem::Root(std::string_view document) {
  JsonItem whole;
  whole.payload_ = document;
  GLAIVE_ASSIGN_OR_RETURN(const uint32_t header, whole.Word(0));
  if ((header & jsonb::kHeaderKind) != jsonb::kScalar) {
    return FromEntry(jsonb::kContainerEntry, document);
  }
  GLAIVE_ASSIGN_OR_RETURN(const uint32_t entry, whole.Word(4));
  if (document.size() - 8 < (entry & jsonb::kEntryLength)) return Malformed();
  return FromEntry(entry, document.substr(8, entry & jsonb::kEntryLength));
}

Result<JsonNumber> JsonItem::number() const {
  JsonNumber number;
  if (payload_.empty()) return Malformed();
  const auto tag = static_cast<unsigned char>(payload_[0]);
  const std::string_view bytes = payload_.substr(1);
  if (bytes.size() > 8) return Malformed();
  switch (tag) {
    case jsonb::kZero:
      number.is_integer = true;
      return number;
    case jsonb::kNan:
      number.floating = std::numeric_limits<double>::quiet_NaN();
      return number;
    case jsonb::kInfinity:
    case jsonb::kNegativeInfinity:
      number.floating = std::numeric_limits<double>::infinity();
      if (tag == jsonb::kNegativeInfinity) number.floating = -number.floating;
      return number;
    case jsonb::kInt: {
      if (bytes.empty()) return Malformed();
      const auto shift = static_cast<int>(64 - bytes.size() * 8);
      number.is_integer = true;
      number.is_signed = true;
      number.integer = static_cast<int64_t>(BigEndian(bytes) << shift) >> shift;
      return number;
    }
    case jsonb::kUint:
      number.is_integer = true;
      number.integer = BigEndian(bytes);
      return number;
    case jsonb::kFloat:
      if (bytes.size() != 8) return Malformed();
      number.floating = std::bit_cast<double>(BigEndian(bytes));
      return number;
    default:
      return Malformed();
  }
}

Result<int64_t> JsonItem::ArraySize() const {
  if (kind_ != Kind::kArray) return 0;
  GLAIVE_ASSIGN_OR_RETURN(const uint32_t header, Word(0));
  return static_cast<int64_t>(header & jsonb::kHeaderCount);
}

Result<std::vector<JsonItem>> JsonItem::Children() const {
  std::vector<JsonItem> children;
  if (kind_ != Kind::kArray && kind_ != Kind::kObject) return children;
  GLAIVE_ASSIGN_OR_RETURN(const uint32_t header, Word(0));
  const size_t count = header & jsonb::kHeaderCount;
  const size_t entries = kind_ == Kind::kObject ? count * 2 : count;
  if (payload_.size() / 4 < entries + 1) return Malformed();
  size_t at = 4 + entries * 4;
  for (size_t i = 0; i < entries; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t entry, Word(4 + i * 4));
    const size_t length = entry & jsonb::kEntryLength;
    if (payload_.size() - at < length) return Malformed();
    if (kind_ == Kind::kArray || i >= count) {
      GLAIVE_ASSIGN_OR_RETURN(JsonItem child,
                              FromEntry(entry, payload_.substr(at, length)));
      children.push_back(child);
    }
    at += length;
  }
  return children;
}

Result<JsonItem> JsonItem::Element(int64_t position) const {
  if (kind_ != Kind::kArray) return JsonItem();
  GLAIVE_ASSIGN_OR_RETURN(const int64_t count, ArraySize());
  if (position < 0 || position >= count) return JsonItem();
  if (payload_.size() / 4 < static_cast<size_t>(count) + 1) return Malformed();
  size_t at = 4 + static_cast<size_t>(count) * 4;
  for (int64_t i = 0;; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t entry, Word(4 + static_cast<size_t>(i) * 4));
    const size_t length = entry & jsonb::kEntryLength;
    if (payload_.size() < at || payload_.size() - at < length) return Malformed();
    if (i == position) return FromEntry(entry, payload_.substr(at, length));
    at += length;
  }
}

Result<JsonItem> JsonItem::Member(std::string_view key) const {
  if (kind_ != Kind::kObject) return JsonItem();
  GLAIVE_ASSIGN_OR_RETURN(const uint32_t header, Word(0));
  const size_t count = header & jsonb::kHeaderCount;
  if (payload_.size() / 8 < count) return Malformed();
  size_t at = 4 + count * 8;
  size_t found = count;
  for (size_t i = 0; i < count; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t entry, Word(4 + i * 4));
    const size_t length = entry & jsonb::kEntryLength;
    if (payload_.size() < at || payload_.size() - at < length) return Malformed();
    if (payload_.substr(at, length) == key) found = i;
    at += length;
  }
  if (found == count) return JsonItem();
  for (size_t i = 0;; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t entry, Word(4 + (count + i) * 4));
    const size_t length = entry & jsonb::kEntryLength;
    if (payload_.size() < at || payload_.size() - at < length) return Malformed();
    if (i == found) return FromEntry(entry, payload_.substr(at, length));
    at += length;
  }
}

void JsonItem::AppendTo(std::string* out) const {
  if (kind_ == Kind::kArray || kind_ == Kind::kObject) {
    out->append(payload_);
    return;
  }
  AppendWord(jsonb::kScalar, out);
  AppendWord((entry_ & jsonb::kEntryType) | static_cast<uint32_t>(payload_.size()), out);
  out->append(payload_);
}

Result<JsonItem> JsonMember(std::string_view document, std::string_view key) {
  GLAIVE_ASSIGN_OR_RETURN(const JsonItem root, JsonItem::Root(document));
  uint64_t position = 0;
  const char* begin = key.data();
  const char* end = begin + key.size();
  if (!key.empty() && key[0] == '+') ++begin;
  const auto result = std::from_chars(begin, end, position);
  if (result.ec == std::errc() && result.ptr == end) {
    if (position > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return JsonItem();
    }
    return root.Element(static_cast<int64_t>(position));
  }
  return root.Member(key);
}

void AppendJsonBool(bool value, std::string* out) {
  AppendWord(jsonb::kScalar, out);
  AppendWord(value ? jsonb::kTrueEntry : jsonb::kFalseEntry, out);
}

void AppendJsonNull(std::string* out) {
  AppendWord(jsonb::kScalar, out);
  AppendWord(jsonb::kNullEntry, out);
}

void AppendJsonNumber(const JsonNumber& number, std::string* out) {
  std::string payload;
  const auto append = [&payload](uint64_t bits, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
      payload.push_back(static_cast<char>((bits >> shift) & 0xFF));
    }
  };
  if (number.is_integer && number.integer == 0) {
    payload.push_back(static_cast<char>(jsonb::kZero));
  } else if (number.is_integer && (number.is_signed || number.integer < 0)) {
    const auto value = static_cast<int64_t>(number.integer);
    payload.push_back(static_cast<char>(jsonb::kInt));
    append(static_cast<uint64_t>(value), value >= INT8_MIN && value <= INT8_MAX     ? 1
                                         : value >= INT16_MIN && value <= INT16_MAX ? 2
                                         : value >= INT32_MIN && value <= INT32_MAX ? 4
                                                                                    : 8);
  } else if (number.is_integer) {
    const auto value = static_cast<uint64_t>(number.integer);
    payload.push_back(static_cast<char>(jsonb::kUint));
    append(value, value <= UINT8_MAX    ? 1
                  : value <= UINT16_MAX ? 2
                  : value <= UINT32_MAX ? 4
                                        : 8);
  } else if (std::isnan(number.floating)) {
    payload.push_back(static_cast<char>(jsonb::kNan));
  } else if (std::isinf(number.floating)) {
    payload.push_back(static_cast<char>(number.floating > 0 ? jsonb::kInfinity
                                                            : jsonb::kNegativeInfinity));
  } else {
    payload.push_back(static_cast<char>(jsonb::kFloat));
    append(std::bit_cast<uint64_t>(number.floating), 8);
  }
  AppendWord(jsonb::kScalar, out);
  AppendWord(jsonb::kNumberEntry | static_cast<uint32_t>(payload.size()), out);
  out->append(payload);
}

bool AppendJsonItems(const std::vector<JsonItem>& items, std::string* out) {
  if (items.empty()) return false;
  if (items.size() == 1) {
    items[0].AppendTo(out);
    return true;
  }
  std::string entries;
  std::string payloads;
  AppendWord(jsonb::kArray | static_cast<uint32_t>(items.size()), out);
  for (const JsonItem& item : items) {
    std::string one;
    item.AppendTo(&one);
    const bool container =
        item.kind() == JsonItem::Kind::kArray || item.kind() == JsonItem::Kind::kObject;
    if (container) {
      AppendWord(jsonb::kContainerEntry | static_cast<uint32_t>(one.size()), &entries);
      payloads += one;
    } else {
      entries.append(one, 4, 4);
      payloads.append(one, 8);
    }
  }
  out->append(entries).append(payloads);
  return true;
}

}  // namespace glaive::expr
