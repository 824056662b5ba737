// Keeps the index section of a manifest right while fragments and columns change. The
// indices themselves are not read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"

namespace glaive::table {

class Dataset;

// What the version says of its indices; empty when it has none. Corruption.
Result<lance::table::IndexSection> ReadIndexSection(const Dataset& dataset);

// Decodes the section on first need; an unchanged one stays byte for byte. Ids of
// fragments that are gone may stay in the bitmap of an index: everybody ignores them.
class IndexEditor {
 public:
  struct RewrittenGroup {
    std::vector<uint32_t> old_ids;
    std::vector<uint32_t> new_ids;
  };

  IndexEditor() = default;
  explicit IndexEditor(std::shared_ptr<const std::string> serialized)
      : serialized_(std::move(serialized)) {}

  // Replaces and removes by uuid.
  Status Create(const lance::table::Transaction::CreateIndex& operation);
  // Drops indices of columns that the schema does not have any more.
  Status KeepColumns(
      const google::protobuf::RepeatedPtrField<lance::file::Field>& schema);
  // The values of `fields` changed in place in `fragments`: their indices no longer cover
  // these.
  Status Uncover(std::span<const int32_t> fields, std::span<const uint32_t> fragments);
  // Rows of `sources` moved to `moved` and kept their stable ids; the values of `changed`
  // differ. Indices by row id of other columns cover the new fragments if they covered
  // all sources.
  Status CoverMovedRows(std::span<const int32_t> changed,
                        std::span<const uint32_t> sources,
                        std::span<const uint32_t> moved);
  // Fragments were rewritten. Indices by stable row id, and those that were rewritten as
  // well, cover the new fragments where they covered the old ones. All others no longer
  // cover these rows: what they say about vanished fragments is ignored. InvalidInput
  // when a rewritten index covers only part of a group.
  Status Rewrite(const lance::table::Transaction::Rewrite& operation,
                 std::span<const RewrittenGroup> groups, bool stable_row_ids);

  // Generations of an LSM write path are merged into the table by the commit of
  // `version`: raises the progress that the entry __lance_mem_wal records for each shard,
  // adding shards that have none yet. The entry gets a new uuid, since readers cache what
  // they decoded by it; whatever else it says stays. InvalidInput, as upstream words it:
  // no entry, a shard twice, a generation that is not greater than what is recorded.
  Status RecordCompacted(
      const google::protobuf::RepeatedPtrField<lance::table::CompactedSsTable>& markers,
      uint64_t version);

  // Null when there is no index.
  std::shared_ptr<const std::string> Serialized();

 private:
  Status Load();
  void RemoveIf(const std::function<bool(const lance::table::IndexMetadata&)>& predicate);

  std::shared_ptr<const std::string> serialized_;
  std::optional<lance::table::IndexSection> section_;  // decoded
  bool changed_ = false;
};

}  // namespace glaive::table
