// glaive verify: checks the files of a table.
#include "table/verify.h"

#include <algorithm>
#include <iostream>
#include <string>

#include "io/object_store.h"
#include "runtime/runtime.h"
#include "tools/commands.h"

namespace glaive::tools {

Status RunVerify(std::span<const std::string> arguments) {
  std::string path;
  table::VerifyOptions options;
  for (const std::string& argument : arguments) {
    if (argument == "--repair") {
      options.repair = true;
    } else if (argument == "--decode") {
      options.decode = true;
    } else if (argument.starts_with("--") || !path.empty()) {
      return InvalidInput("usage: glaive verify PATH [--decode] [--repair]");
    } else {
      path = argument;
    }
  }
  if (path.empty()) {
    return InvalidInput("usage: glaive verify PATH [--decode] [--repair]");
  }
  table::TableEnv env;
  GLAIVE_ASSIGN_OR_RETURN(env.runtime, Runtime::Make());
  GLAIVE_ASSIGN_OR_RETURN(env.store, io::OpenStore(path, /*create=*/false));
  GLAIVE_ASSIGN_OR_RETURN(const auto report, table::Verify(env, options));
  for (const auto& problem : report.problems) {
    std::cout << ProblemKindName(problem.kind) << "\t" << problem.path;
    if (problem.fragment_id >= 0) std::cout << "\tfragment " << problem.fragment_id;
    if (problem.version > 0) std::cout << "\tversion " << problem.version;
    std::cout << "\t" << problem.detail << "\n";
  }
  for (const auto& lost : report.lost) {
    std::cout << "lost\t" << lost.rows << " rows of fragment " << lost.fragment_id
              << "\n";
  }
  for (const auto& back : report.undeleted) {
    std::cout << "undeleted\t" << back.rows << " rows of fragment " << back.fragment_id
              << "\n";
  }
  std::cout << "version " << report.version << ": " << report.files_checked
            << " files checked, " << report.rows_checked << " rows read, "
            << report.problems.size() << " findings\n";
  if (report.repaired_version > 0) {
    std::cout << "repaired: version " << report.repaired_version << "\n";
    return Status::OK();
  }
  if (report.sound()) return Status::OK();
  // What only older versions name is lost to them alone, and no repair brings it back.
  const bool newest = std::any_of(
      report.problems.begin(), report.problems.end(), [&](const auto& problem) {
        return problem.kind != table::ProblemKind::kForeign &&
               (problem.fragment_id >= 0 || problem.version >= report.version);
      });
  if (!newest) {
    return Corruption("older versions of table ", path,
                      " are damaged; the newest one is sound, and removing the others "
                      "(cleanup_old_versions) ends the damage");
  }
  return Corruption("table ", path, " is damaged",
                    options.repair ? "" : "; --repair drops what is lost");
}

}  // namespace glaive::tools
