#include "table/ready_dataset.h"

#include <span>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "table/commit.h"
#include "table/manifest.h"
#include "table/next_manifest.h"
#include "table/version_directory.h"

namespace glaive::table {

Status CreateReadyDataset(const TableEnv& env, const ReadyDataset& ready) {
  lance::table::Transaction transaction;
  auto* overwrite = transaction.mutable_overwrite();
  ready.schema.ToProto(overwrite->mutable_schema());
  for (const auto& [key, value] : ready.schema.metadata()) {
    (*overwrite->mutable_schema_metadata())[key] = value;
  }
  for (const auto& fragment : ready.fragments) *overwrite->add_fragments() = fragment;
  NextManifestOptions options;
  options.file_version = ready.file_version;
  GLAIVE_ASSIGN_OR_RETURN(NextManifest next,
                          BuildNextManifest(nullptr, transaction, options, nullptr));
  next.header->clear_transaction_file();
  ManifestParts parts;
  parts.header = next.header.get();
  parts.fragments = next.serialized;
  parts.index_section = ready.index_section;
  GLAIVE_ASSIGN_OR_RETURN(const std::string bytes,
                          SerializeManifest(parts, next.summaries));
  const std::string path = ManifestPath(next.header->version(), NamingScheme::kV2);
  Status put = env.store->PutIfAbsent(
      path, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (KindOf(put) == ErrorKind::kAlreadyExists) return DatasetAlreadyExists(*env.store);
  GLAIVE_RETURN_NOT_OK(put);
  WriteVersionHint(*env.store, next.header->version());
  return Status::OK();
}

}  // namespace glaive::table
