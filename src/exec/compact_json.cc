// Options, tasks and results of compactions as JSON.
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "exec/compact.h"
#include "format/table.pb.h"

namespace glaive::exec {
namespace {

using Json = nlohmann::ordered_json;
using lance::table::DataFragment;
using lance::table::DeletionFile;

constexpr std::string_view kPrefix = "lance.compaction.";

Result<Json> ParseObject(std::string_view text, const char* what) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidInput("the JSON of a ", what, " is not an object");
  return json;
}

// --- options ---

enum class Kind : uint8_t { kCount, kBool, kShare, kMode, kIds, kVersion };

struct OptionName {
  const char* name;
  Kind kind;
  bool configurable;
};

constexpr OptionName kOptions[] = {
    {"target_rows_per_fragment", Kind::kCount, true},
    {"max_rows_per_group", Kind::kCount, true},
    {"max_bytes_per_file", Kind::kCount, true},
    {"materialize_deletions", Kind::kBool, true},
    {"materialize_deletions_threshold", Kind::kShare, true},
    {"num_threads", Kind::kCount, false},
    {"batch_size", Kind::kCount, true},
    {"io_buffer_size", Kind::kCount, false},
    {"compaction_mode", Kind::kMode, true},
    {"binary_copy_read_batch_bytes", Kind::kCount, true},
    {"defer_index_remap", Kind::kBool, true},
    {"max_source_fragments", Kind::kCount, true},
    {"max_source_rows", Kind::kCount, true},
    {"max_source_bytes", Kind::kCount, true},
    {"excluded_fragment_ids", Kind::kIds, false},
    {"data_storage_version", Kind::kVersion, true},
};

// A setting is text; JSON of the option's kind, or the text itself.
Result<Json> ValueOfSetting(const OptionName& option, const std::string& text) {
  auto invalid = [&](const char* expected) {
    return InvalidInput("Invalid user input: Invalid value for ", kPrefix, option.name,
                        ": '", text, "' (expected ", expected, ")");
  };
  switch (option.kind) {
    case Kind::kCount: {
      uint64_t number = 0;
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, number);
      if (error != std::errc() || stop != end) return invalid("a non-negative integer");
      return Json(number);
    }
    case Kind::kBool:
      if (text == "true") return Json(true);
      if (text == "false") return Json(false);
      return invalid("true or false");
    case Kind::kShare: {
      Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (!json.is_number()) return invalid("a number");
      return json;
    }
    default:
      return Json(text);
  }
}

Result<int64_t> Count(const char* name, const Json& value) {
  if (value.is_number_integer() &&
      (value.is_number_unsigned() || value.get<int64_t>() >= 0)) {
    const auto number = value.get<uint64_t>();
    // As large as no table is; upstream's type reaches further.
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return static_cast<int64_t>(std::min(number, kMost));
  }
  return InvalidInput("Invalid input, compaction option ", name,
                      " must be a non-negative integer");
}

Status SetOption(const OptionName& option, const Json& value, CompactionOptions* out) {
  const std::string_view name = option.name;
  switch (option.kind) {
    case Kind::kBool: {
      if (!value.is_boolean()) {
        return InvalidInput("Invalid input, compaction option ", name,
                            " must be true or false");
      }
      (name == "materialize_deletions" ? out->materialize_deletions
                                       : out->defer_index_remap) = value.get<bool>();
      return Status::OK();
    }
    case Kind::kShare:
      if (!value.is_number()) {
        return InvalidInput("Invalid input, compaction option ", name,
                            " must be a number");
      }
      out->materialize_deletions_threshold = value.get<double>();
      return Status::OK();
    case Kind::kMode: {
      const std::string mode =
          value.is_string() ? value.get<std::string>() : value.dump();
      if (mode == "reencode") {
        out->mode = CompactionMode::kReencode;
      } else if (mode == "try_binary_copy") {
        out->mode = CompactionMode::kTryBinaryCopy;
      } else if (mode == "force_binary_copy") {
        out->mode = CompactionMode::kForceBinaryCopy;
      } else {
        return InvalidInput("Invalid user input: Invalid compaction mode \"", mode,
                            "\". Valid values: \"reencode\", \"try_binary_copy\", "
                            "\"force_binary_copy\"");
      }
      return Status::OK();
    }
    case Kind::kIds:
      if (!value.is_array()) {
        return InvalidInput("Invalid input, compaction option ", name,
                            " must be a list of fragment ids");
      }
      out->excluded_fragment_ids.clear();
      for (const Json& id : value) {
        GLAIVE_ASSIGN_OR_RETURN(const int64_t number, Count(option.name, id));
        out->excluded_fragment_ids.push_back(static_cast<uint64_t>(number));
      }
      return Status::OK();
    case Kind::kVersion: {
      if (!value.is_string()) {
        return InvalidInput("Invalid input, compaction option ", name, " must be text");
      }
      GLAIVE_ASSIGN_OR_RETURN(out->data_storage_version,
                              file::ParseFileVersion(value.get<std::string>()));
      return Status::OK();
    }
    case Kind::kCount:
      break;
  }
  GLAIVE_ASSIGN_OR_RETURN(const int64_t count, Count(option.name, value));
  if (name == "target_rows_per_fragment") {
    out->target_rows_per_fragment = count;
  } else if (name == "max_rows_per_group") {
    out->max_rows_per_group = count;
  } else if (name == "binary_copy_read_batch_bytes") {
    out->binary_copy_read_batch_bytes = count;
  } else if (name == "max_bytes_per_file") {
    out->max_bytes_per_file = count;
  } else if (name == "num_threads") {
    out->num_threads = count;
  } else if (name == "batch_size") {
    if (count == 0) {
      return InvalidInput("Invalid user input: batch_size must be greater than 0");
    }
    out->batch_size = count;
  } else if (name == "io_buffer_size") {
    out->io_buffer_size = count;
  } else {
    if (count == 0) {
      return InvalidInput("Invalid user input: CompactionOptions::", name,
                          " must be greater than 0 (use None for no limit)");
    }
    (name == "max_source_fragments" ? out->max_source_fragments
     : name == "max_source_rows"    ? out->max_source_rows
                                    : out->max_source_bytes) = count;
  }
  return Status::OK();
}

Status SetOptions(const Json& given, bool strict, CompactionOptions* out) {
  for (const auto& [key, value] : given.items()) {
    const OptionName* known = nullptr;
    for (const OptionName& option : kOptions) {
      if (key == option.name) known = &option;
    }
    if (known == nullptr) {
      if (!strict) continue;
      return InvalidInput("Invalid compaction option: ", key);
    }
    if (value.is_null()) continue;
    GLAIVE_RETURN_NOT_OK(SetOption(*known, value, out));
  }
  return Status::OK();
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json OptionsToJson(const CompactionOptions& options) {
  Json json;
  json["target_rows_per_fragment"] = options.target_rows_per_fragment;
  json["max_rows_per_group"] = options.max_rows_per_group;
  json["max_bytes_per_file"] = OrNull(options.max_bytes_per_file);
  json["materialize_deletions"] = options.materialize_deletions;
  json["materialize_deletions_threshold"] = options.materialize_deletions_threshold;
  json["num_threads"] = OrNull(options.num_threads);
  json["batch_size"] = OrNull(options.batch_size);
  json["io_buffer_size"] = OrNull(options.io_buffer_size);
  json["defer_index_remap"] = options.defer_index_remap;
  json["compaction_mode"] = options.mode == CompactionMode::kReencode ? "reencode"
                            : options.mode == CompactionMode::kTryBinaryCopy
                                ? "try_binary_copy"
                                : "force_binary_copy";
  json["binary_copy_read_batch_bytes"] = options.binary_copy_read_batch_bytes;
  json["max_source_fragments"] = OrNull(options.max_source_fragments);
  json["max_source_rows"] = OrNull(options.max_source_rows);
  json["max_source_bytes"] = OrNull(options.max_source_bytes);
  json["excluded_fragment_ids"] = options.excluded_fragment_ids;
  json["data_storage_version"] =
      options.data_storage_version
          ? Json(std::string(file::FileVersionName(*options.data_storage_version)))
          : Json(nullptr);
  return json;
}

// --- fragments ---

Json BytesToJson(const std::string& bytes) {
  Json list = Json::array();
  for (char c : bytes) list.push_back(static_cast<uint8_t>(c));
  return Json{{"Inline", std::move(list)}};
}

Json FragmentToJson(const DataFragment& fragment) {
  Json json;
  json["id"] = fragment.id();
  json["files"] = Json::array();
  for (const auto& file : fragment.files()) {
    Json one;
    one["path"] = file.path();
    one["fields"] = std::vector<int32_t>(file.fields().begin(), file.fields().end());
    one["column_indices"] =
        std::vector<int32_t>(file.column_indices().begin(), file.column_indices().end());
    one["file_major_version"] = file.file_major_version();
    one["file_minor_version"] = file.file_minor_version();
    one["file_size_bytes"] =
        file.file_size_bytes() ? Json(file.file_size_bytes()) : Json(nullptr);
    one["base_id"] = file.has_base_id() ? Json(file.base_id()) : Json(nullptr);
    json["files"].push_back(std::move(one));
  }
  if (fragment.has_deletion_file()) {
    const DeletionFile& file = fragment.deletion_file();
    Json one;
    one["read_version"] = file.read_version();
    one["id"] = file.id();
    one["file_type"] = file.file_type() == DeletionFile::BITMAP ? "bitmap" : "array";
    one["num_deleted_rows"] = file.num_deleted_rows();
    one["base_id"] = file.has_base_id() ? Json(file.base_id()) : Json(nullptr);
    json["deletion_file"] = std::move(one);
  }
  if (fragment.has_inline_row_ids())
    json["row_id_meta"] = BytesToJson(fragment.inline_row_ids());
  json["physical_rows"] = fragment.physical_rows();
  if (fragment.has_inline_last_updated_at_versions()) {
    json["last_updated_at_version_meta"] =
        BytesToJson(fragment.inline_last_updated_at_versions());
  }
  if (fragment.has_inline_created_at_versions()) {
    json["created_at_version_meta"] = BytesToJson(fragment.inline_created_at_versions());
  }
  return json;
}

Status Missing(const char* what) {
  return InvalidInput("the JSON of a fragment has no proper ", what);
}

Result<uint64_t> Number(const Json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return Missing(key);
  return found->get<uint64_t>();
}

Result<uint32_t> Number32(const Json& object, const char* key) {
  GLAIVE_ASSIGN_OR_RETURN(const uint64_t number, Number(object, key));
  if (number > std::numeric_limits<uint32_t>::max()) return Missing(key);
  return static_cast<uint32_t>(number);
}

template <typename Repeated>
Status Integers(const Json& object, const char* key, Repeated* out) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return Missing(key);
  for (const Json& value : *found) {
    if (!value.is_number_integer()) return Missing(key);
    const auto number = value.get<int64_t>();
    if (number < std::numeric_limits<int32_t>::min() ||
        number > std::numeric_limits<int32_t>::max()) {
      return Missing(key);
    }
    out->Add(static_cast<int32_t>(number));
  }
  return Status::OK();
}

Result<std::optional<std::string>> Bytes(const Json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (!found->is_object()) return Missing(key);
  auto inline_bytes = found->find("Inline");
  if (inline_bytes == found->end() || !inline_bytes->is_array()) return Missing(key);
  std::string bytes;
  bytes.reserve(inline_bytes->size());
  for (const Json& value : *inline_bytes) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > 255) return Missing(key);
    bytes += static_cast<char>(value.get<uint64_t>());
  }
  return bytes;
}

Result<DataFragment> FragmentFromJson(const Json& json) {
  if (!json.is_object()) return Missing("object");
  DataFragment fragment;
  GLAIVE_ASSIGN_OR_RETURN(const uint64_t id, Number(json, "id"));
  fragment.set_id(id);
  GLAIVE_ASSIGN_OR_RETURN(const uint64_t rows, Number(json, "physical_rows"));
  fragment.set_physical_rows(rows);
  auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return Missing("files");
  for (const Json& one : *files) {
    if (!one.is_object()) return Missing("files");
    auto* file = fragment.add_files();
    auto path = one.find("path");
    if (path == one.end() || !path->is_string()) return Missing("path");
    file->set_path(path->get<std::string>());
    GLAIVE_RETURN_NOT_OK(Integers(one, "fields", file->mutable_fields()));
    GLAIVE_RETURN_NOT_OK(Integers(one, "column_indices", file->mutable_column_indices()));
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t major, Number32(one, "file_major_version"));
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t minor, Number32(one, "file_minor_version"));
    file->set_file_major_version(major);
    file->set_file_minor_version(minor);
    if (auto size = one.find("file_size_bytes"); size != one.end() && !size->is_null()) {
      GLAIVE_ASSIGN_OR_RETURN(const uint64_t bytes, Number(one, "file_size_bytes"));
      file->set_file_size_bytes(bytes);
    }
    if (auto base = one.find("base_id"); base != one.end() && !base->is_null()) {
      GLAIVE_ASSIGN_OR_RETURN(const uint32_t base_id, Number32(one, "base_id"));
      file->set_base_id(base_id);
    }
  }
  if (auto found = json.find("deletion_file");
      found != json.end() && found->is_object()) {
    DeletionFile* file = fragment.mutable_deletion_file();
    GLAIVE_ASSIGN_OR_RETURN(const uint64_t read_version, Number(*found, "read_version"));
    GLAIVE_ASSIGN_OR_RETURN(const uint64_t file_id, Number(*found, "id"));
    GLAIVE_ASSIGN_OR_RETURN(const uint64_t deleted, Number(*found, "num_deleted_rows"));
    file->set_read_version(read_version);
    file->set_id(file_id);
    file->set_num_deleted_rows(deleted);
    auto type = found->find("file_type");
    if (type == found->end() || (*type != "bitmap" && *type != "array"))
      return Missing("file_type");
    file->set_file_type(*type == "bitmap" ? DeletionFile::BITMAP
                                          : DeletionFile::ARROW_ARRAY);
    if (auto base = found->find("base_id"); base != found->end() && !base->is_null()) {
      GLAIVE_ASSIGN_OR_RETURN(const uint32_t base_id, Number32(*found, "base_id"));
      file->set_base_id(base_id);
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto ids, Bytes(json, "row_id_meta"));
  if (ids) fragment.set_inline_row_ids(std::move(*ids));
  GLAIVE_ASSIGN_OR_RETURN(auto updated, Bytes(json, "last_updated_at_version_meta"));
  if (updated) fragment.set_inline_last_updated_at_versions(std::move(*updated));
  GLAIVE_ASSIGN_OR_RETURN(auto created, Bytes(json, "created_at_version_meta"));
  if (created) fragment.set_inline_created_at_versions(std::move(*created));
  return fragment;
}

Json FragmentsToJson(const std::vector<DataFragment>& fragments) {
  Json list = Json::array();
  for (const DataFragment& fragment : fragments) list.push_back(FragmentToJson(fragment));
  return list;
}

Result<std::vector<DataFragment>> FragmentsFromJson(const Json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return InvalidInput("the JSON of a compaction has no list '", key, "'");
  }
  std::vector<DataFragment> fragments;
  for (const Json& one : *found) {
    GLAIVE_ASSIGN_OR_RETURN(fragments.emplace_back(), FragmentFromJson(one));
  }
  return fragments;
}

Result<int64_t> ReadVersion(const Json& json) {
  GLAIVE_ASSIGN_OR_RETURN(const uint64_t version, Number(json, "read_version"));
  if (version > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return InvalidInput("read_version ", version, " is no version");
  }
  return static_cast<int64_t>(version);
}

Result<CompactionOptions> OptionsOf(const Json& json) {
  CompactionOptions options;
  auto found = json.find("options");
  if (found != json.end() && found->is_object()) {
    GLAIVE_RETURN_NOT_OK(SetOptions(*found, /*strict=*/false, &options));
  }
  return options;
}

std::string Print(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<CompactionOptions> ParseCompactionOptions(
    std::string_view json, const std::map<std::string, std::string>& config,
    bool strict) {
  CompactionOptions options;
  GLAIVE_ASSIGN_OR_RETURN(const Json given, ParseObject(json, "set of options"));
  for (const OptionName& option : kOptions) {
    if (!option.configurable) continue;
    auto found = config.find(std::string(kPrefix) + option.name);
    if (found == config.end()) continue;
    GLAIVE_ASSIGN_OR_RETURN(const Json value, ValueOfSetting(option, found->second));
    GLAIVE_RETURN_NOT_OK(SetOption(option, value, &options));
  }
  GLAIVE_RETURN_NOT_OK(SetOptions(given, strict, &options));
  return options;
}

std::map<std::string, std::string> ConfigOf(const table::Dataset& dataset) {
  const auto& config = dataset.manifest().config();
  return {config.begin(), config.end()};
}

std::string ToJson(const CompactionTask& task) {
  Json json;
  json["task"]["fragments"] = FragmentsToJson(task.fragments);
  json["read_version"] = task.read_version;
  json["options"] = OptionsToJson(task.options);
  return Print(json);
}

std::string ToJson(const CompactionPlan& plan) {
  Json json;
  json["tasks"] = Json::array();
  for (const CompactionTask& task : plan.tasks) {
    json["tasks"].push_back(Json{{"fragments", FragmentsToJson(task.fragments)}});
  }
  json["read_version"] = plan.read_version;
  json["options"] = OptionsToJson(plan.options);
  return Print(json);
}

std::string ToJson(const RewriteResult& result) {
  Json json;
  json["metrics"] = Json{{"fragments_removed", result.metrics.fragments_removed},
                         {"fragments_added", result.metrics.fragments_added},
                         {"files_removed", result.metrics.files_removed},
                         {"files_added", result.metrics.files_added}};
  json["new_fragments"] = FragmentsToJson(result.new_fragments);
  json["read_version"] = result.read_version;
  json["original_fragments"] = FragmentsToJson(result.old_fragments);
  json["row_addrs"] = nullptr;
  return Print(json);
}

Result<CompactionTask> TaskFromJson(std::string_view text) {
  GLAIVE_ASSIGN_OR_RETURN(const Json json, ParseObject(text, "compaction task"));
  CompactionTask task;
  GLAIVE_ASSIGN_OR_RETURN(task.read_version, ReadVersion(json));
  auto inner = json.find("task");
  if (inner == json.end() || !inner->is_object()) {
    return InvalidInput("the JSON of a compaction task has no 'task'");
  }
  GLAIVE_ASSIGN_OR_RETURN(task.fragments, FragmentsFromJson(*inner, "fragments"));
  GLAIVE_ASSIGN_OR_RETURN(task.options, OptionsOf(json));
  return task;
}

Result<CompactionPlan> PlanFromJson(std::string_view text) {
  GLAIVE_ASSIGN_OR_RETURN(const Json json, ParseObject(text, "compaction plan"));
  CompactionPlan plan;
  GLAIVE_ASSIGN_OR_RETURN(plan.read_version, ReadVersion(json));
  GLAIVE_ASSIGN_OR_RETURN(plan.options, OptionsOf(json));
  auto tasks = json.find("tasks");
  if (tasks == json.end() || !tasks->is_array()) {
    return InvalidInput("the JSON of a compaction plan has no 'tasks'");
  }
  for (const Json& one : *tasks) {
    if (!one.is_object()) return InvalidInput("a task of a compaction plan is no object");
    CompactionTask& task = plan.tasks.emplace_back();
    task.read_version = plan.read_version;
    task.options = plan.options;
    GLAIVE_ASSIGN_OR_RETURN(task.fragments, FragmentsFromJson(one, "fragments"));
  }
  return plan;
}

Result<RewriteResult> ResultFromJson(std::string_view text) {
  GLAIVE_ASSIGN_OR_RETURN(const Json json, ParseObject(text, "rewrite result"));
  RewriteResult result;
  GLAIVE_ASSIGN_OR_RETURN(result.read_version, ReadVersion(json));
  GLAIVE_ASSIGN_OR_RETURN(result.new_fragments, FragmentsFromJson(json, "new_fragments"));
  GLAIVE_ASSIGN_OR_RETURN(result.old_fragments,
                          FragmentsFromJson(json, "original_fragments"));
  auto metrics = json.find("metrics");
  if (metrics == json.end() || !metrics->is_object()) {
    return InvalidInput("the JSON of a rewrite result has no 'metrics'");
  }
  const std::pair<const char*, int64_t*> members[] = {
      {"fragments_removed", &result.metrics.fragments_removed},
      {"fragments_added", &result.metrics.fragments_added},
      {"files_removed", &result.metrics.files_removed},
      {"files_added", &result.metrics.files_added}};
  for (const auto& [name, value] : members) {
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t number, Number32(*metrics, name));
    *value = number;
  }
  return result;
}

}  // namespace glaive::exec
