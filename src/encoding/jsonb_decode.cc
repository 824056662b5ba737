// JSONB to compact JSON text.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "encoding/jsonb.h"
#include "encoding/jsonb_format.h"

namespace glaive::encoding {
namespace {

using namespace jsonb;  // NOLINT: the words of the layout

Status Bad(const char* what) { return Corruption("malformed JSONB: ", what); }

Result<uint32_t> TakeU32(std::string_view* bytes) {
  if (bytes->size() < 4) return Bad("truncated");
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<uint8_t>((*bytes)[i]);
  bytes->remove_prefix(4);
  return value;
}

// Shortest text that reads back as the same double; plain digits for exponents -5 to 15.
void AppendDouble(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");  // JSON has no word for it
    return;
  }
  char buffer[40];
  char* end = buffer + sizeof buffer;
  auto made = std::to_chars(buffer, end, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(made.ptr - buffer));
  size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), made.ptr, exponent);
  if (exponent >= -5 && exponent < 16) {
    made = std::to_chars(buffer, end, value, std::chars_format::fixed);
    text = {buffer, static_cast<size_t>(made.ptr - buffer)};
    out->append(text);
    if (text.find('.') == std::string_view::npos) out->append(".0");
    return;
  }
  out->append(text.substr(0, e));
  out->append(exponent < 0 ? "e-" : "e+");
  out->append(std::to_string(std::abs(exponent)));
}

Status AppendNumber(std::string_view bytes, std::string* out) {
  if (bytes.empty()) return Bad("empty number");
  uint8_t tag = static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  size_t size = bytes.size();
  if (tag == kZero && size == 0) {
    out->push_back('0');
    return Status::OK();
  }
  if (tag == kNan || tag == kInfinity || tag == kNegativeInfinity) {
    out->append("null");
    return Status::OK();
  }
  if (size != 1 && size != 2 && size != 4 && size != 8) return Bad("number size");
  uint64_t raw = 0;
  for (char c : bytes) raw = (raw << 8) | static_cast<uint8_t>(c);
  if (tag == kUint) {
    out->append(std::to_string(raw));
  } else if (tag == kInt) {
    int unused = 64 - static_cast<int>(size) * 8;
    out->append(std::to_string(static_cast<int64_t>(raw << unused) >> unused));
  } else if (tag == kFloat && size == 8) {
    AppendDouble(std::bit_cast<double>(raw), out);
  } else {
    return NotSupported("JSONB number of kind ", static_cast<int>(tag));
  }
  return Status::OK();
}

void AppendString(std::string_view text, std::string* out) {
  constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
  constexpr std::string_view kEscapes = "\"\\bfnrt";
  constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  for (char c : text) {
    if (size_t at = kSpecial.find(c); at != std::string_view::npos) {
      out->push_back('\\');
      out->push_back(kEscapes[at]);
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out->append("\\u00");
      out->push_back(kHex[static_cast<uint8_t>(c) >> 4]);
      out->push_back(kHex[static_cast<uint8_t>(c) & 15]);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

Status AppendValue(std::string_view bytes, int depth, std::string* out);

Status AppendEntry(uint32_t entry, std::string_view* payloads, int depth,
                   std::string* out) {
  size_t length = entry & kEntryLength;
  if (length > payloads->size()) return Bad("entry is longer than the value");
  std::string_view payload = payloads->substr(0, length);
  payloads->remove_prefix(length);
  switch (entry & kEntryType) {
    case kNullEntry:
      out->append("null");
      return Status::OK();
    case kTrueEntry:
      out->append("true");
      return Status::OK();
    case kFalseEntry:
      out->append("false");
      return Status::OK();
    case kStringEntry:
      AppendString(payload, out);
      return Status::OK();
    case kNumberEntry:
      return AppendNumber(payload, out);
    case kContainerEntry:
      return AppendValue(payload, depth + 1, out);
    default:
      return NotSupported("JSONB entry of kind ", entry >> 28);
  }
}

Status AppendValue(std::string_view bytes, int depth, std::string* out) {
  if (depth > kMaxDepth) return Bad("nested too deeply");
  GLAIVE_ASSIGN_OR_RETURN(uint32_t header, TakeU32(&bytes));
  uint32_t kind = header & kHeaderKind;
  if (kind != kScalar && kind != kArray && kind != kObject)
    return Bad("unknown container");
  size_t count = kind == kScalar ? 1 : header & kHeaderCount;
  size_t num_entries = kind == kObject ? count * 2 : count;
  if (bytes.size() / 4 < num_entries) return Bad("truncated entries");
  std::string_view entries = bytes.substr(0, num_entries * 4);
  std::string_view payloads = bytes.substr(num_entries * 4);
  if (kind == kScalar) {
    GLAIVE_ASSIGN_OR_RETURN(uint32_t entry, TakeU32(&entries));
    return AppendEntry(entry, &payloads, depth, out);
  }
  std::string_view keys = payloads;
  std::string_view key_words = entries.substr(0, kind == kObject ? count * 4 : 0);
  std::string_view value_words = entries.substr(key_words.size());
  for (std::string_view words = key_words; !words.empty();) {
    GLAIVE_ASSIGN_OR_RETURN(uint32_t entry, TakeU32(&words));
    if ((entry & kEntryType) != kStringEntry ||
        (entry & kEntryLength) > payloads.size()) {
      return Bad("object key");
    }
    payloads.remove_prefix(entry & kEntryLength);
  }
  out->push_back(kind == kObject ? '{' : '[');
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out->push_back(',');
    if (kind == kObject) {
      GLAIVE_ASSIGN_OR_RETURN(uint32_t key, TakeU32(&key_words));
      AppendString(keys.substr(0, key & kEntryLength), out);
      keys.remove_prefix(key & kEntryLength);
      out->push_back(':');
    }
    GLAIVE_ASSIGN_OR_RETURN(uint32_t entry, TakeU32(&value_words));
    GLAIVE_RETURN_NOT_OK(AppendEntry(entry, &payloads, depth, out));
  }
  out->push_back(kind == kObject ? '}' : ']');
  return Status::OK();
}

}  // namespace

Status JsonbToJson(std::string_view bytes, std::string* out) {
  return AppendValue(bytes, 0, out);
}

}  // namespace glaive::encoding
