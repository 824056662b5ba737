#include "expr/json_path.h"

#include <bit>
#include <charconv>
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

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  JsonPath path;
  size_t at = 0;
  const auto bad = [&](std::string_view what) -> Status {
    return InvalidInput("expression: '", text.substr(0, 200),
                        "' is not a JSON path: ", what, " at character ", at + 1);
  };
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  };
  const auto accept = [&](char c) {
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  const auto word = [&] {
    const size_t begin = at;
    while (at < text.size() &&
           std::string_view(".[]()?@*, \t'\"$:<>=!&|").find(text[at]) ==
               std::string_view::npos) {
      ++at;
    }
    return text.substr(begin, at - begin);
  };
  const auto quoted = [&](std::string* out) {
    const char quote = text[at++];
    while (at < text.size() && text[at] != quote) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      out->push_back(text[at++]);
    }
    return accept(quote);
  };
  const auto is_quote = [&] {
    return at < text.size() && (text[at] == '"' || text[at] == '\'');
  };
  // 3, last, last - 1
  const auto bound = [&](Bound* out) {
    skip();
    if (text.substr(at).starts_with("last")) {
      at += 4;
      out->from_end = true;
      skip();
      const bool minus = accept('-');
      if (!minus) {
        if (!accept('+')) return true;
      }
      skip();
      const auto result =
          std::from_chars(text.data() + at, text.data() + text.size(), out->offset);
      if (result.ec != std::errc()) return false;
      at = static_cast<size_t>(result.ptr - text.data());
      if (minus) out->offset = -out->offset;
      return true;
    }
    const auto result =
        std::from_chars(text.data() + at, text.data() + text.size(), out->offset);
    if (result.ec != std::errc()) return false;
    at = static_cast<size_t>(result.ptr - text.data());
    return true;
  };
  skip();
  if (!accept('$') && at < text.size() && text[at] != '.' && text[at] != '[') {
    // A bare name is a member of the document.
    Step step{Step::Kind::kName, {}, {}};
    if (is_quote()) {
      if (!quoted(&step.name)) return bad("a quote is not closed");
    } else {
      step.name = word();
      if (step.name.empty()) return bad("expected a name");
    }
    path.steps_.push_back(std::move(step));
  }
  for (skip(); at < text.size(); skip()) {
    if (text[at] == '?' || text[at] == '(') {
      return NotSupported("expression: filters in JSON paths are not supported");
    }
    if (accept('.') || text[at] == ':') {
      if (at < text.size() && text[at] == ':') ++at;
      Step step{Step::Kind::kName, {}, {}};
      if (accept('*')) {
        step.kind = Step::Kind::kAnyMember;
      } else if (is_quote()) {
        if (!quoted(&step.name)) return bad("a quote is not closed");
      } else {
        step.name = word();
        if (step.name.empty()) return bad("expected a name");
      }
      path.steps_.push_back(std::move(step));
      continue;
    }
    if (!accept('[')) return bad("expected '.' or '['");
    skip();
    Step step{Step::Kind::kPositions, {}, {}};
    if (accept('*')) {
      step.kind = Step::Kind::kAnyElement;
    } else if (is_quote()) {
      step.kind = Step::Kind::kName;
      if (!quoted(&step.name)) return bad("a quote is not closed");
    } else {
      do {
        Range range;
        if (!bound(&range.first)) return bad("expected a position");
        range.last = range.first;
        skip();
        if (text.substr(at).starts_with("to ")) {
          at += 3;
          if (!bound(&range.last)) return bad("expected a position");
          skip();
        }
        step.positions.push_back(range);
      } while (accept(','));
    }
    skip();
    if (!accept(']')) return bad("expected ']'");
    path.steps_.push_back(std::move(step));
  }
  return path;
}

Result<bool> JsonPath::Select(std::string_view document, std::string* out) const {
  GLAIVE_ASSIGN_OR_RETURN(const JsonItem root, JsonItem::Root(document));
  std::vector<JsonItem> items = {root};
  std::vector<JsonItem> next;
  for (const Step& step : steps_) {
    next.clear();
    for (const JsonItem& item : items) {
      switch (step.kind) {
        case Step::Kind::kName: {
          GLAIVE_ASSIGN_OR_RETURN(const JsonItem member, item.Member(step.name));
          if (member.exists()) next.push_back(member);
          break;
        }
        case Step::Kind::kAnyMember:
        case Step::Kind::kAnyElement: {
          const auto wanted = step.kind == Step::Kind::kAnyMember
                                  ? JsonItem::Kind::kObject
                                  : JsonItem::Kind::kArray;
          if (item.kind() != wanted) break;
          GLAIVE_ASSIGN_OR_RETURN(auto children, item.Children());
          next.insert(next.end(), children.begin(), children.end());
          break;
        }
        case Step::Kind::kPositions: {
          if (item.kind() != JsonItem::Kind::kArray) break;
          GLAIVE_ASSIGN_OR_RETURN(const int64_t size, item.ArraySize());
          for (const Range& range : step.positions) {
            const auto place = [&](const Bound& bound) {
              return bound.from_end ? size - 1 + bound.offset : bound.offset;
            };
            const int64_t first = std::max<int64_t>(place(range.first), 0);
            const int64_t last = std::min<int64_t>(place(range.last), size - 1);
            if (place(range.first) < 0 && place(range.last) < 0) continue;
            for (int64_t k = first; k <= last; ++k) {
              GLAIVE_ASSIGN_OR_RETURN(const JsonItem element, item.Element(k));
              next.push_back(element);
            }
          }
          break;
        }
      }
    }
    std::swap(items, next);
  }
  if (items.empty()) return false;
  if (items.size() == 1) {
    items[0].AppendTo(out);
    return true;
  }
  // An array of what was found.
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
