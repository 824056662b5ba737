// Settings of a table that ask for clean-ups.
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "format/table.pb.h"
#include "table/cleanup.h"
#include "table/live_versions.h"

namespace glaive::table {
namespace {

constexpr char kInterval[] = "lance.auto_cleanup.interval";

struct Unit {
  std::string_view name;
  int64_t us;
};

constexpr int64_t kSecond = 1'000'000;
constexpr Unit kUnits[] = {
    {"us", 1},
    {"usec", 1},
    {"ms", 1000},
    {"msec", 1000},
    {"millis", 1000},
    {"s", kSecond},
    {"sec", kSecond},
    {"secs", kSecond},
    {"second", kSecond},
    {"seconds", kSecond},
    {"m", 60 * kSecond},
    {"min", 60 * kSecond},
    {"mins", 60 * kSecond},
    {"minute", 60 * kSecond},
    {"minutes", 60 * kSecond},
    {"h", 3600 * kSecond},
    {"hr", 3600 * kSecond},
    {"hrs", 3600 * kSecond},
    {"hour", 3600 * kSecond},
    {"hours", 3600 * kSecond},
    {"d", 86400 * kSecond},
    {"day", 86400 * kSecond},
    {"days", 86400 * kSecond},
    {"w", 7 * 86400 * kSecond},
    {"week", 7 * 86400 * kSecond},
    {"weeks", 7 * 86400 * kSecond},
    {"M", 2630016 * kSecond},
    {"month", 2630016 * kSecond},
    {"months", 2630016 * kSecond},
    {"y", 31557600 * kSecond},
    {"year", 31557600 * kSecond},
    {"years", 31557600 * kSecond},
};

Status BadDuration(std::string_view text) {
  return InvalidInput("'", text,
                      "' is not a duration such as \"14days\", \"2h 30m\" or \"90s\"");
}

Result<uint64_t> ParseNumber(const char* key, const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    return InvalidInput("setting ", key, " must be a number, not '", text, "'");
  }
  return number;
}

}  // namespace

Result<int64_t> ParseDuration(std::string_view text) {
  int64_t total = 0;
  bool any = false;
  size_t i = 0;
  while (true) {
    while (i < text.size() && text[i] == ' ') ++i;
    if (i == text.size()) break;
    int64_t number = 0;
    const auto [stop, error] =
        std::from_chars(text.data() + i, text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return BadDuration(text);
    i = static_cast<size_t>(stop - text.data());
    while (i < text.size() && text[i] == ' ') ++i;
    const size_t begin = i;
    while (i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || text[i] == 'M')) ++i;
    const std::string_view name = text.substr(begin, i - begin);
    const Unit* unit = nullptr;
    for (const Unit& known : kUnits) {
      if (known.name == name) unit = &known;
    }
    int64_t us = 0;
    if (unit == nullptr || __builtin_mul_overflow(number, unit->us, &us) ||
        __builtin_add_overflow(total, us, &total)) {
      return BadDuration(text);
    }
    any = true;
  }
  if (!any) return BadDuration(text);
  return total;
}

Result<std::optional<CleanupOptions>> AutoCleanup(
    const std::map<std::string, std::string>& config, int64_t version) {
  constexpr char kOlderThan[] = "lance.auto_cleanup.older_than";
  constexpr char kRetain[] = "lance.auto_cleanup.retain_versions";
  constexpr char kRate[] = "lance.auto_cleanup.delete_rate_limit";
  auto interval = config.find(kInterval);
  if (interval == config.end()) return std::nullopt;
  GLAIVE_ASSIGN_OR_RETURN(const uint64_t every, ParseNumber(kInterval, interval->second));
  if (every > 1 && static_cast<uint64_t>(version) % every != 0) return std::nullopt;
  CleanupOptions options;
  options.error_if_tagged_old_versions = false;
  if (auto found = config.find(kOlderThan); found != config.end()) {
    GLAIVE_ASSIGN_OR_RETURN(options.older_than_us, ParseDuration(found->second));
  }
  if (auto found = config.find(kRetain); found != config.end()) {
    GLAIVE_ASSIGN_OR_RETURN(const uint64_t retain, ParseNumber(kRetain, found->second));
    if (retain == 0 ||
        retain > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return InvalidInput("setting ", kRetain, " must be a positive number");
    }
    options.retain_versions = static_cast<int64_t>(retain);
  }
  if (auto found = config.find(kRate); found != config.end()) {
    GLAIVE_ASSIGN_OR_RETURN(const uint64_t rate, ParseNumber(kRate, found->second));
    if (rate > 0 && rate <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      options.delete_rate_limit = static_cast<int64_t>(rate);
    }
  }
  // An interval is no policy: without one, no history is taken away.
  if (!options.older_than_us && !options.retain_versions) return std::nullopt;
  return options;
}

void CleanUpAfterCommit(const TableEnv& env, const lance::table::Manifest& committed) {
  if (committed.config().count(kInterval) == 0) return;
  const std::map<std::string, std::string> config(committed.config().begin(),
                                                  committed.config().end());
  const auto version = static_cast<int64_t>(committed.version());
  auto options = AutoCleanup(config, version);
  if (!options.ok() || !options->has_value()) return;
  (*options)->keep_versions = LiveVersions(*env.store);
  // The version that the commit was based on stays, whatever its age.
  Status ignored = CleanUp(env, version - 1, **options).status();
  static_cast<void>(ignored.ok());
}

}  // namespace glaive::table
