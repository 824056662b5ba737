// Checks that a table's files are what its versions say, and repairs what can be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

enum class ProblemKind : uint8_t {
  kMissing,    // a version names the file, but it is not there
  kTruncated,  // smaller than the manifest says
  kCorrupt,    // the bytes are not what the format says, or not of the manifest's size
  kForeign,    // no version names it: left by a write that failed or is running
};
const char* ProblemKindName(ProblemKind kind);

struct VerifyProblem {
  ProblemKind kind = ProblemKind::kMissing;
  std::string path;  // below the table's directory
  std::string detail;
  int64_t version = 0;       // the newest that names the file; 0: none
  int64_t fragment_id = -1;  // of the newest version; -1: not part of it
};

// Rows of a fragment of the newest version.
struct LostRows {
  int64_t fragment_id = 0;
  int64_t rows = 0;
};

struct VerifyOptions {
  // Reads every value of the newest version; otherwise footers, page tables and sizes, as
  // of older versions.
  bool decode = false;
  bool repair = false;
  std::function<void(int64_t fragments_done, int64_t fragments)> progress = {};
  CancelToken* cancel = nullptr;
};

struct VerifyReport {
  int64_t version = 0;  // that was checked in full
  int64_t files_checked = 0;
  int64_t rows_checked = 0;  // decoded
  std::vector<VerifyProblem> problems;
  // Live rows that cannot be read, and deleted rows of which it is not known any more
  // which they are.
  std::vector<LostRows> lost;
  std::vector<LostRows> undeleted;
  int64_t repaired_version = 0;  // 0: no new version was made

  // Foreign files do no harm.
  bool sound() const;
};

// The newest version in full; of older ones, whether their manifests can be read and the
// files they name are there, with the sizes and footers that they should have. Repair
// commits a version without the fragments that have lost files. A fragment whose deletion
// file is lost keeps all its rows, the deleted ones too. Errors are those of the store;
// what is wrong with the table is in the report. NotFound when there is no table;
// Corruption when no version at all can be opened.
Result<VerifyReport> Verify(const TableEnv& env, const VerifyOptions& options);

}  // namespace glaive::table
