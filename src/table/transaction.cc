#include "table/transaction.h"

#include <arrow/buffer.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "table/manifest.h"
#include "table/names.h"

namespace glaive::table {

using lance::table::Transaction;

std::string_view OperationName(const Transaction& transaction) {
  switch (transaction.operation_case()) {
    case Transaction::kAppend:
      return "Append";
    case Transaction::kDelete:
      return "Delete";
    case Transaction::kOverwrite:
      return "Overwrite";
    case Transaction::kCreateIndex:
      return "CreateIndex";
    case Transaction::kRewrite:
      return "Rewrite";
    case Transaction::kMerge:
      return "Merge";
    case Transaction::kRestore:
      return "Restore";
    case Transaction::kReserveFragments:
      return "ReserveFragments";
    case Transaction::kUpdate:
      return "Update";
    case Transaction::kProject:
      return "Project";
    case Transaction::kUpdateConfig:
      return "UpdateConfig";
    case Transaction::kDataReplacement:
      return "DataReplacement";
    case Transaction::kUpdateMemWalState:
      return "UpdateMemWalState";
    case Transaction::kClone:
      return "Clone";
    case Transaction::kUpdateBases:
      return "UpdateBases";
    case Transaction::OPERATION_NOT_SET:
      break;
  }
  return "Unknown";
}

Result<std::shared_ptr<const Transaction>> ReadTransaction(io::ObjectStore& store,
                                                           const ManifestFile& manifest) {
  auto transaction = std::make_shared<Transaction>();
  if (manifest.transaction_section) {
    std::string_view section = *manifest.transaction_section;
    if (transaction->ParseFromArray(section.data(), static_cast<int>(section.size()))) {
      return transaction;
    }
    transaction->Clear();
  }
  const uint64_t version = manifest.header->version();
  if (manifest.header->transaction_file().empty()) {
    return NotFound("Dataset version ", version, " does not have a transaction file");
  }
  const std::string path = TransactionPath(manifest.header->transaction_file());
  auto bytes = store.Get(path);
  if (!bytes.ok()) {
    return WithContext(bytes.status(),
                       "transaction of version " + std::to_string(version));
  }
  if (!transaction->ParseFromArray((*bytes)->data(),
                                   static_cast<int>((*bytes)->size()))) {
    return Corruption("transaction file ", path, " does not decode");
  }
  return transaction;
}

std::set<uint64_t> ModifiedFragments(const Transaction& transaction) {
  std::set<uint64_t> ids;
  switch (transaction.operation_case()) {
    case Transaction::kDelete:
      for (const auto& fragment : transaction.delete_().updated_fragments()) {
        ids.insert(fragment.id());
      }
      ids.insert(transaction.delete_().deleted_fragment_ids().begin(),
                 transaction.delete_().deleted_fragment_ids().end());
      break;
    case Transaction::kUpdate:
      for (const auto& fragment : transaction.update().updated_fragments()) {
        ids.insert(fragment.id());
      }
      ids.insert(transaction.update().removed_fragment_ids().begin(),
                 transaction.update().removed_fragment_ids().end());
      break;
    case Transaction::kRewrite:
      for (const auto& group : transaction.rewrite().groups()) {
        for (const auto& fragment : group.old_fragments()) ids.insert(fragment.id());
      }
      for (const auto& fragment : transaction.rewrite().old_fragments()) {
        ids.insert(fragment.id());
      }
      break;
    case Transaction::kDataReplacement:
      for (const auto& group : transaction.data_replacement().replacements()) {
        ids.insert(group.fragment_id());
      }
      break;
    default:
      break;
  }
  return ids;
}

}  // namespace glaive::table
