// The rows of a merge's source: read once, kept in memory or in temporary files, and read
// again as often as needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/merge_keys.h"
#include "exec/merge_table.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

class SpillFile;  // exec/spill_file.h

// Not thread-safe.
class MergeSource {
 public:
  struct Limits {
    int64_t memory_bytes = 0;  // of rows, and of one table of keys
    bool in_memory = false;    // the batches cost no memory of ours
    std::string spill_directory;
  };

  // Reads `stream` to its end. `key_columns`: their indices in its schema.
  static Result<std::unique_ptr<MergeSource>> Read(arrow::RecordBatchReader& stream,
                                                   std::vector<int> key_columns,
                                                   const KeyCodec& codec, Limits limits,
                                                   CancelToken* cancel);
  ~MergeSource();

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  int64_t num_rows() const { return num_rows_; }
  int64_t spilled_bytes() const;

  // The keys in tables that fit the memory: equal keys are in the same one.
  int num_passes() const { return static_cast<int>(passes_.size()); }
  Result<std::unique_ptr<KeyTable>> LoadPass(int pass) const;

  // All rows again, in their order.
  class Rows {
   public:
    virtual ~Rows() = default;
    // Null at the end.
    virtual Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
  };
  Result<std::unique_ptr<Rows>> ReadRows() const;
  // "a = 1" of one row, for errors.
  Result<std::string> DescribeKey(int64_t row) const;
  std::vector<std::shared_ptr<arrow::Array>> KeysOf(
      const arrow::RecordBatch& batch) const;

 private:
  // Keys of the partitions [first, end) with a hash of `remainder` modulo `modulus`.
  struct Pass {
    size_t first = 0;
    size_t end = 0;
    uint64_t modulus = 1;
    uint64_t remainder = 0;
  };
  struct Partition;

  MergeSource();
  Status Add(std::shared_ptr<arrow::RecordBatch> batch);
  Status SpillRows(const std::shared_ptr<arrow::RecordBatch>& batch, int64_t first_row);
  Status BeginSpilling();
  Status Finish();
  void PlanPasses();

  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::Schema> key_schema_;  // of the key files
  std::vector<int> key_columns_;
  KeyCodec codec_;
  Limits limits_;
  uint64_t seed_ = 0;
  int64_t num_rows_ = 0;
  int64_t held_bytes_ = 0;
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches_;  // unless spilled
  std::unique_ptr<SpillFile> rows_file_;                      // set: rows are there
  std::vector<Partition> partitions_;
  std::vector<Pass> passes_;
};

}  // namespace glaive::exec
