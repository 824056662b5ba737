#include "table/tags.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>

#include <arrow/buffer.h>
#include <nlohmann/json.hpp>

#include "io/object_store.h"
#include "table/names.h"

namespace glaive::table {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSuffix = ".json";

Status NoSuchTag(std::string_view name) {
  return NotFound("Ref not found error: tag ", name, " does not exist");
}

// ASCII only: other letters are legal for upstream, but its listing then fails.
Status CheckName(std::string_view name) {
  auto invalid = [&](const char* why) {
    return InvalidInput("Ref is invalid: tag name '", name, "' ", why);
  };
  if (name.empty()) return invalid("is empty");
  for (char c : name) {
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alphanumeric && c != '.' && c != '-' && c != '_') {
      return invalid("has characters other than letters, digits, '.', '-' and '_'");
    }
  }
  if (name.front() == '.' || name.back() == '.')
    return invalid("begins or ends with a dot");
  if (name.find("..") != std::string_view::npos) return invalid("has two dots in a row");
  if (name.ends_with(".lock")) return invalid("ends with .lock");
  if (name.size() > 240) return invalid("is too long");
  return Status::OK();
}

std::string TagPath(std::string_view name) {
  return std::string(kTagsDir) + "/" + std::string(name) + std::string(kSuffix);
}

std::string NowText() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds).count();
  const std::time_t time = seconds.count();
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[64];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof(text) - length, ".%09lldZ",
                static_cast<long long>(nanos));
  return text;
}

Result<Json> ReadJson(io::ObjectStore& store, const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(auto bytes, store.Get(path));
  const auto* text = reinterpret_cast<const char*>(bytes->data());
  Json json =
      Json::parse(text, text + bytes->size(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Corruption("tag file ", path, " is not a JSON object");
  return json;
}

// The number that `text` has from `at`, in `digits` digits; -1 when it has none there.
int64_t DigitsAt(std::string_view text, size_t at, size_t digits) {
  int64_t value = 0;
  for (size_t i = at; i < at + digits; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// "2026-01-31T23:59:59.123456789Z", fraction optional, as microseconds since 1970.
std::optional<int64_t> ParseTime(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() <= kShape.size() || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] != '0' && text[i] != kShape[i]) return std::nullopt;
  }
  const int64_t year = DigitsAt(text, 0, 4), month = DigitsAt(text, 5, 2),
                day = DigitsAt(text, 8, 2), hour = DigitsAt(text, 11, 2),
                minute = DigitsAt(text, 14, 2), second = DigitsAt(text, 17, 2);
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (year < 0 || month < 0 || day < 0 || !date.ok() || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59 || second < 0 || second > 60) {
    return std::nullopt;
  }
  int64_t micros = 0;
  if (text[kShape.size()] == '.') {
    int64_t unit = 100000;
    for (size_t i = kShape.size() + 1; i + 1 < text.size(); ++i, unit /= 10) {
      const int64_t digit = DigitsAt(text, i, 1);
      if (digit < 0) return std::nullopt;
      micros += digit * unit;
    }
  } else if (text.size() != kShape.size() + 1) {
    return std::nullopt;
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000000 + micros;
}

std::optional<int64_t> TimeIn(const Json& json, const char* key) {
  auto time = json.find(key);
  if (time == json.end() || !time->is_string()) return std::nullopt;
  return ParseTime(time->get_ref<const std::string&>());
}

Result<TagInfo> Interpret(const Json& json, const std::string& path) {
  TagInfo tag;
  auto version = json.find("version");
  if (version == json.end() || !version->is_number_unsigned() ||
      version->get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Corruption("tag file ", path, " names no version");
  }
  tag.version = static_cast<int64_t>(version->get<uint64_t>());
  if (auto size = json.find("manifestSize");
      size != json.end() && size->is_number_integer()) {
    tag.manifest_size = size->get<int64_t>();
  }
  if (auto branch = json.find("branch"); branch != json.end() && branch->is_string()) {
    tag.branch = branch->get<std::string>();
  }
  tag.created_us = TimeIn(json, "createdAt");
  tag.updated_us = TimeIn(json, "updatedAt");
  if (auto metadata = json.find("metadata");
      metadata != json.end() && metadata->is_object()) {
    for (const auto& [key, value] : metadata->items()) {
      if (value.is_string()) tag.metadata[key] = value.get<std::string>();
    }
  }
  return tag;
}

std::string Print(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Result<std::map<std::string, TagInfo>> ReadTags(io::ObjectStore& store) {
  std::map<std::string, TagInfo> tags;
  GLAIVE_ASSIGN_OR_RETURN(auto files, store.ListNames(kTagsDir));
  for (const std::string& file : files) {
    std::string_view name(file);
    if (!name.ends_with(kSuffix)) continue;
    name.remove_suffix(kSuffix.size());
    auto tag = ReadTag(store, name);
    if (!tag.ok()) {
      // Removed since it was listed, or a file that no writer of tags would make.
      const ErrorKind kind = KindOf(tag.status());
      if (kind == ErrorKind::kNotFound || kind == ErrorKind::kInvalidInput) continue;
      return tag.status();
    }
    tags.emplace(name, *tag);
  }
  return tags;
}

Result<TagInfo> ReadTag(io::ObjectStore& store, std::string_view name) {
  GLAIVE_RETURN_NOT_OK(CheckName(name));
  const std::string path = TagPath(name);
  auto json = ReadJson(store, path);
  if (!json.ok()) {
    return KindOf(json.status()) == ErrorKind::kNotFound ? NoSuchTag(name)
                                                         : json.status();
  }
  return Interpret(*json, path);
}

Status PutNewTag(io::ObjectStore& store, std::string_view name, const TagInfo& tag) {
  GLAIVE_RETURN_NOT_OK(CheckName(name));
  const std::string now = NowText();
  Json json;
  json["branch"] = tag.branch ? Json(*tag.branch) : Json(nullptr);
  json["version"] = tag.version;
  json["createdAt"] = now;
  json["updatedAt"] = now;
  json["manifestSize"] = tag.manifest_size;
  json["metadata"] = Json::object();
  Status status = store.PutIfAbsent(TagPath(name), AsBytes(Print(json)));
  if (KindOf(status) == ErrorKind::kAlreadyExists) {
    return AlreadyExists("Ref conflict error: tag ", name, " already exists");
  }
  return status;
}

Status ReplaceTag(io::ObjectStore& store, std::string_view name, const TagInfo& tag) {
  GLAIVE_RETURN_NOT_OK(CheckName(name));
  auto json = ReadJson(store, TagPath(name));
  if (!json.ok()) {
    return KindOf(json.status()) == ErrorKind::kNotFound ? NoSuchTag(name)
                                                         : json.status();
  }
  (*json)["branch"] = tag.branch ? Json(*tag.branch) : Json(nullptr);
  (*json)["version"] = tag.version;
  (*json)["updatedAt"] = NowText();
  (*json)["manifestSize"] = tag.manifest_size;
  return store.Put(TagPath(name), AsBytes(Print(*json)));
}

Status RemoveTag(io::ObjectStore& store, std::string_view name) {
  GLAIVE_RETURN_NOT_OK(CheckName(name));
  GLAIVE_ASSIGN_OR_RETURN(const bool exists, store.Exists(TagPath(name)));
  if (!exists) return NoSuchTag(name);
  return store.Delete(TagPath(name));
}

}  // namespace glaive::table
