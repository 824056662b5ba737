// Compaction and clean-up: functions of glaive._glaive over datasets and tables.
#include "db/maintenance.h"

#include <utility>

#include "bindings.h"
#include "call.h"
#include "db/environment.h"
#include "db/optimize.h"
#include "exec/compact.h"
#include "memwal/upkeep.h"
#include "readable.h"
#include "table/cleanup.h"
#include "table/verify.h"

namespace glaive::python {
namespace {

using exec::CompactionMetrics;

nb::tuple ToTuple(const CompactionMetrics& metrics) {
  return nb::make_tuple(metrics.fragments_removed, metrics.fragments_added,
                        metrics.files_removed, metrics.files_added);
}

nb::dict ToDict(const table::CleanupStats& stats) {
  nb::dict out;
  out["bytes_removed"] = stats.bytes_removed;
  out["old_versions"] = stats.old_versions;
  out["data_files_removed"] = stats.data_files_removed;
  out["transaction_files_removed"] = stats.transaction_files_removed;
  out["index_files_removed"] = stats.index_files_removed;
  out["deletion_files_removed"] = stats.deletion_files_removed;
  out["failed_deletes"] = stats.failed_deletes;
  return out;
}

std::unique_ptr<PyDataset> Wrap(table::Dataset::Ptr dataset, const PyDataset& like) {
  return std::make_unique<PyDataset>(std::move(dataset), like.uri);
}

Result<exec::CompactionOptions> OptionsOf(const PyDataset& self,
                                          const std::string& json) {
  return exec::ParseCompactionOptions(json, exec::ConfigOf(*self.dataset));
}

nb::tuple Compact(PyDataset& self, const std::string& options, nb::object progress) {
  Call call;
  exec::CompactionHooks hooks;
  hooks.progress = ProgressHook(std::move(progress), &call);
  hooks.cancel = call.token();
  auto done = call.Run([&]() -> Result<exec::CompactionOutcome> {
    GLAIVE_ASSIGN_OR_RETURN(const auto parsed, OptionsOf(self, options));
    return exec::Compact(self.dataset, parsed, hooks);
  });
  return nb::make_tuple(ToTuple(done.metrics), Wrap(std::move(done.dataset), self));
}

exec::CompactionPlan Plan(PyDataset& self, const std::string& options) {
  Call call;
  return call.Run([&]() -> Result<exec::CompactionPlan> {
    GLAIVE_ASSIGN_OR_RETURN(const auto parsed, OptionsOf(self, options));
    return exec::PlanCompaction(*self.dataset, parsed);
  });
}

exec::RewriteResult Execute(const exec::CompactionTask& task, PyDataset& dataset) {
  Call call;
  exec::CompactionHooks hooks;
  hooks.cancel = call.token();
  return call.Run(
      [&] { return exec::ExecuteCompactionTask(*dataset.dataset, task, hooks); });
}

nb::tuple Commit(PyDataset& self, const std::vector<exec::RewriteResult>& results) {
  Call call;
  auto done =
      call.Run([&] { return exec::CommitCompaction(*self.dataset, results, nullptr); });
  return nb::make_tuple(ToTuple(done.metrics), Wrap(std::move(done.dataset), self));
}

nb::dict CleanUp(PyDataset& self, std::optional<int64_t> older_than_us,
                 std::optional<int64_t> retain_versions, bool delete_unverified,
                 bool error_if_tagged, std::optional<int64_t> delete_rate_limit,
                 std::optional<std::vector<int64_t>> versions, bool dry_run,
                 int64_t max_files) {
  Call call;
  table::CleanupOptions options;
  options.older_than_us = older_than_us;
  options.retain_versions = retain_versions;
  options.delete_unverified = delete_unverified;
  options.error_if_tagged_old_versions = error_if_tagged;
  options.delete_rate_limit = delete_rate_limit;
  options.versions = std::move(versions);
  options.dry_run = dry_run;
  options.max_files_listed = max_files;
  options.cancel = call.token();
  const auto report = call.Run([&] { return table::CleanUp(*self.dataset, options); });
  nb::list files;
  for (const auto& file : report.files) {
    files.append(nb::make_tuple(file.path, file.kind, file.unverified, file.size_bytes));
  }
  nb::list branches;
  for (const auto& branch : report.branches) {
    branches.append(
        nb::make_tuple(branch.name, branch.referenced_version, branch.cleanup_candidate));
  }
  nb::list warnings;
  for (const Status& error : report.errors) warnings.append(error.message());
  nb::dict out;
  out["read_version"] = report.read_version;
  out["stats"] = ToDict(report.stats);
  out["files"] = std::move(files);
  out["files_truncated"] = report.files_truncated;
  out["branches"] = std::move(branches);
  out["warnings"] = std::move(warnings);
  return out;
}

nb::tuple Optimize(db::Table& self, std::optional<int64_t> older_than_us,
                   bool delete_unverified, nb::object progress) {
  Call call;
  db::OptimizeOptions options;
  if (older_than_us) options.prune_older_than_us = *older_than_us;
  options.delete_unverified = delete_unverified;
  options.progress = ProgressHook(std::move(progress), &call);
  options.cancel = call.token();
  const auto outcome = call.Run([&] { return db::Optimize(self, options); });
  return nb::make_tuple(ToTuple(outcome.compaction), ToDict(outcome.prune));
}

nb::dict Verify(const std::string& uri, bool decode, bool repair, nb::object progress) {
  Call call;
  table::VerifyOptions options;
  options.decode = decode;
  options.repair = repair;
  options.cancel = call.token();
  if (!progress.is_none()) {
    auto hook = ProgressHook(std::move(progress), &call);
    options.progress = [hook](int64_t done, int64_t) { hook(done); };
  }
  const auto report = call.Run([&]() -> Result<table::VerifyReport> {
    GLAIVE_ASSIGN_OR_RETURN(auto env, db::OpenTableEnv(uri, /*create=*/false));
    return table::Verify(env, options);
  });
  nb::list problems;
  for (const auto& problem : report.problems) {
    problems.append(nb::make_tuple(
        table::ProblemKindName(problem.kind), problem.path, problem.detail,
        problem.version > 0 ? nb::cast(problem.version) : nb::none(),
        problem.fragment_id >= 0 ? nb::cast(problem.fragment_id) : nb::none()));
  }
  nb::dict lost, undeleted;
  for (const auto& rows : report.lost) lost[nb::cast(rows.fragment_id)] = rows.rows;
  for (const auto& rows : report.undeleted) {
    undeleted[nb::cast(rows.fragment_id)] = rows.rows;
  }
  nb::dict out;
  out["version"] = report.version;
  out["files_checked"] = report.files_checked;
  out["rows_checked"] = report.rows_checked;
  out["problems"] = std::move(problems);
  out["lost"] = std::move(lost);
  out["undeleted"] = std::move(undeleted);
  out["repaired_version"] =
      report.repaired_version > 0 ? nb::cast(report.repaired_version) : nb::none();
  out["sound"] = report.sound();
  return out;
}

}  // namespace

void BindMaintenance(nb::module_& m) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  nb::class_<exec::CompactionTask>(m, "CompactionTask")
      .def_static(
          "from_json",
          [](const std::string& json) { return Unwrap(exec::TaskFromJson(json)); })
      .def("json", [](const exec::CompactionTask& self) { return exec::ToJson(self); })
      .def("execute", &Execute, "dataset"_a);
  nb::class_<exec::CompactionPlan>(m, "CompactionPlan")
      .def_static(
          "from_json",
          [](const std::string& json) { return Unwrap(exec::PlanFromJson(json)); })
      .def("json", [](const exec::CompactionPlan& self) { return exec::ToJson(self); })
      .def_prop_ro("read_version",
                   [](const exec::CompactionPlan& self) { return self.read_version; })
      .def_prop_ro("tasks", [](const exec::CompactionPlan& self) {
        nb::list out;
        for (const auto& task : self.tasks) out.append(exec::CompactionTask(task));
        return out;
      });
  nb::class_<exec::RewriteResult>(m, "RewriteResult")
      .def_static(
          "from_json",
          [](const std::string& json) { return Unwrap(exec::ResultFromJson(json)); })
      .def("json", [](const exec::RewriteResult& self) { return exec::ToJson(self); });
  m.def("verify", &Verify, "uri"_a, nb::kw_only(), "decode"_a = false, "repair"_a = false,
        "progress"_a = none);
  m.def("compact", &Compact, "dataset"_a, "options"_a, "progress"_a = none);
  m.def("plan_compaction", &Plan, "dataset"_a, "options"_a);
  m.def("commit_compaction", &Commit, "dataset"_a, "rewrites"_a);
  m.def("clean_up", &CleanUp, "dataset"_a, nb::kw_only(), "older_than_us"_a = none,
        "retain_versions"_a = none, "delete_unverified"_a = false,
        "error_if_tagged"_a = true, "delete_rate_limit"_a = none, "versions"_a = none,
        "dry_run"_a = false, "max_files"_a = 0);
  m.def(
      "wait_for_maintenance",
      [](double seconds) {
        nb::gil_scoped_release release;
        using Clock = std::chrono::steady_clock;
        const auto most = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
        const auto until = Clock::now() + most;
        // What the LSM path merges is small fragments for the other kind of upkeep.
        const bool merged = memwal::WaitForUpkeep(most);
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::max(until - Clock::now(), Clock::duration::zero()));
        return db::WaitForMaintenance(left) && merged;
      },
      "seconds"_a);
  m.def("optimize", &Optimize, "table"_a, nb::kw_only(), "older_than_us"_a = none,
        "delete_unverified"_a = false, "progress"_a = none);
}

}  // namespace glaive::python
