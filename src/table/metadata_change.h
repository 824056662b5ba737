// Changes of a table's key/value maps: config, description, schema and field metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

enum class MetadataMap : uint8_t {
  kConfig,  // settings, such as lance.auto_cleanup.interval
  kTable,   // what users say about the table
  kSchema,  // metadata of the Arrow schema
};

struct MapUpdate {
  // A key without a value is removed; one that is not there is no error.
  std::vector<std::pair<std::string, std::optional<std::string>>> entries;
  bool replace = false;  // the entries become the whole map
};

struct FieldMapUpdate {
  std::string path;
  MapUpdate update;
};

// Each commits one version, even when nothing differs.
Result<Dataset::Ptr> UpdateMetadata(const Dataset& dataset, MetadataMap map,
                                    const MapUpdate& update);

// Updates of one field are applied in order. SchemaMismatch for a path that is not there
// and for a primary key that cannot be one; InvalidInput when a primary key that is set
// would change.
Result<Dataset::Ptr> UpdateFieldMetadata(const Dataset& dataset,
                                         std::span<const FieldMapUpdate> updates);

// Records which column identifies a row; nothing enforces it. InvalidInput when one is
// set already, and for types that cannot be a key.
Result<Dataset::Ptr> SetUnenforcedPrimaryKey(const Dataset& dataset,
                                             std::span<const std::string> columns);

}  // namespace glaive::table
