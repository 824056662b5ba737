#include "db/read_source.h"

#include <utility>

#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "io/object_store.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/mem_wal_index.h"

namespace glaive::db {
namespace {

memwal::LsmScanOptions WithFresh(exec::ScanOptions options) {
  memwal::LsmScanOptions out;
  out.scan = std::move(options);
  return out;
}

}  // namespace

Result<ReadSource> OpenReadSource(table::Dataset::Ptr base, bool pinned,
                                  std::optional<bool> use_lsm) {
  ReadSource source;
  source.base = std::move(base);
  if (use_lsm == false) return source;
  GLAIVE_ASSIGN_OR_RETURN(const auto details, memwal::ReadDetails(*source.base));
  if (details == nullptr) {
    if (!use_lsm) return source;
    return InvalidInput("Invalid input, use_lsm(true) was set but table ",
                        source.base->env().store->root(),
                        " has no MemWAL write spec: see set_lsm_write_spec");
  }
  if (pinned) {
    if (!use_lsm) return source;
    return InvalidInput(
        "Invalid input, the MemWAL LSM scanner cannot read from a time-traveled dataset "
        "version; set use_lsm(false) to read the base table at this version");
  }
  GLAIVE_ASSIGN_OR_RETURN(
      source.fresh, memwal::LsmSnapshot::Open(source.base, memwal::Freshness::kFresh));
  return source;
}

Result<std::shared_ptr<arrow::RecordBatchReader>> Scan(const ReadSource& source,
                                                       exec::ScanOptions options) {
  if (!source.fresh) return exec::Scan(source.base, std::move(options));
  return memwal::LsmScan(source.fresh, WithFresh(std::move(options)));
}

Result<std::shared_ptr<arrow::Table>> ScanToTable(const ReadSource& source,
                                                  exec::ScanOptions options) {
  if (!source.fresh) return exec::ScanToTable(source.base, std::move(options));
  return memwal::LsmScanToTable(source.fresh, WithFresh(std::move(options)));
}

Result<int64_t> CountRows(const ReadSource& source, const std::string& filter,
                          CancelToken* cancel) {
  if (!source.fresh) return exec::CountRows(*source.base, filter, cancel);
  return memwal::LsmCountRows(source.fresh, filter, cancel);
}

Result<std::shared_ptr<arrow::Table>> Nearest(const ReadSource& source,
                                              exec::NearestOptions options) {
  if (!source.fresh) return exec::Nearest(source.base, std::move(options));
  return memwal::LsmNearest(source.fresh, std::move(options));
}

Result<std::string> ExplainScan(const ReadSource& source,
                                const exec::ScanOptions& options) {
  if (!source.fresh) return exec::ExplainScan(*source.base, options);
  return memwal::ExplainLsmScan(*source.fresh, WithFresh(options));
}

Result<std::string> ExplainNearest(const ReadSource& source,
                                   const exec::NearestOptions& options) {
  std::string text = exec::ExplainNearest(*source.base, options);
  if (!source.fresh) return text;
  exec::ScanOptions none;
  return text + "over the newest version of each key in:\n" +
         memwal::ExplainLsmScan(*source.fresh, WithFresh(none));
}

Result<std::shared_ptr<arrow::Table>> TakeOffsets(const ReadSource& source,
                                                  std::span<const int64_t> offsets,
                                                  const exec::Selection& select) {
  if (!source.fresh) return exec::TakeOffsets(*source.base, offsets, select);
  return memwal::LsmTakeOffsets(source.fresh, offsets, select);
}

Result<std::shared_ptr<arrow::Table>> TakeRowIds(const ReadSource& source,
                                                 std::span<const uint64_t> row_ids,
                                                 const exec::Selection& select) {
  if (!source.fresh) return exec::TakeRowIds(*source.base, row_ids, select);
  GLAIVE_ASSIGN_OR_RETURN(const auto base, source.fresh->MaskedBase());
  return exec::TakeRowIds(*base, row_ids, select);
}

}  // namespace glaive::db
