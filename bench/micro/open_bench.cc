// Cold opens: nothing cached but what the kernel keeps. A table of one version, one of
// 2,000 versions that share one fragment, and one of 2,000 fragments, for the manifest
// grows with the fragments, not with the versions.
//
//   open_bench FOLDER [VERSIONS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <arrow/api.h>

#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/dataset.h"

namespace glaive::table {
namespace {

constexpr int kRounds = 301;

Result<TableEnv> FreshEnv(const std::string& folder) {
  TableEnv env;
  GLAIVE_ASSIGN_OR_RETURN(env.runtime, Runtime::Make());
  GLAIVE_ASSIGN_OR_RETURN(env.store, io::OpenLocalStore(folder, /*create=*/true));
  return env;
}

Status AddRow(const TableEnv& env) {
  arrow::Int64Builder builder;
  GLAIVE_RETURN_NOT_OK(builder.Append(1));
  GLAIVE_ASSIGN_OR_RETURN(auto values, builder.Finish());
  const auto schema = arrow::schema({arrow::field("id", arrow::int64())});
  GLAIVE_ASSIGN_OR_RETURN(
      auto reader,
      arrow::RecordBatchReader::Make({arrow::RecordBatch::Make(schema, 1, {values})}));
  WriteOptions options;
  options.mode = WriteMode::kAppend;
  return Dataset::Write(env, *reader, options).status();
}

Status ChangeSetting(const Dataset& dataset, int number) {
  lance::table::Transaction transaction;
  auto* entry =
      transaction.mutable_update_config()->mutable_config_updates()->add_update_entries();
  entry->set_key("bench");
  entry->set_value(std::to_string(number));
  return dataset.Commit(std::move(transaction)).status();
}

// The median, in microseconds.
Result<double> TimeOpens(const std::string& folder) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(const TableEnv env, FreshEnv(folder));
    const auto began = std::chrono::steady_clock::now();
    GLAIVE_RETURN_NOT_OK(Dataset::Open(env).status());
    times.push_back(std::chrono::duration<double, std::micro>(
                        std::chrono::steady_clock::now() - began)
                        .count());
  }
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

Status Run(const std::string& folder, int versions) {
  GLAIVE_ASSIGN_OR_RETURN(const TableEnv one, FreshEnv(folder + "/one"));
  GLAIVE_ASSIGN_OR_RETURN(const TableEnv many, FreshEnv(folder + "/versions"));
  GLAIVE_ASSIGN_OR_RETURN(const TableEnv wide, FreshEnv(folder + "/fragments"));
  for (const TableEnv& env : {one, many}) GLAIVE_RETURN_NOT_OK(AddRow(env));
  for (int i = 1; i < versions; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(many));
    GLAIVE_RETURN_NOT_OK(ChangeSetting(*dataset, i));
  }
  for (int i = 0; i < versions; ++i) GLAIVE_RETURN_NOT_OK(AddRow(wide));
  double first = 0;
  for (const char* name : {"one", "versions", "fragments"}) {
    GLAIVE_ASSIGN_OR_RETURN(const double time, TimeOpens(folder + "/" + name));
    if (first == 0) first = time;
    std::printf("%-10s %7.1f us  %5.2f x\n", name, time, time / first);
  }
  return Status::OK();
}

}  // namespace
}  // namespace glaive::table

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: open_bench FOLDER [VERSIONS]\n");
    return 2;
  }
  const int versions = argc > 2 ? std::max(2, std::atoi(argv[2])) : 2000;
  const auto status = glaive::table::Run(argv[1], versions);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
