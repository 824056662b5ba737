#include "io/object_store.h"

#include <utility>

namespace glaive::io {
namespace {

// All of it in the second step.
class PutAtOnce : public PreparedPut {
 public:
  PutAtOnce(ObjectStore* store, std::string path, ByteParts parts)
      : store_(store), path_(std::move(path)), parts_(parts.begin(), parts.end()) {}
  Status Sync() override { return Status::OK(); }
  Status Publish() override { return store_->PutPartsIfAbsent(path_, parts_); }

 private:
  ObjectStore* const store_;
  const std::string path_;
  const std::vector<std::span<const uint8_t>> parts_;
};

}  // namespace

Result<std::unique_ptr<PreparedPut>> ObjectStore::PreparePutIfAbsent(
    std::string_view path, ByteParts parts) {
  return std::make_unique<PutAtOnce>(this, std::string(path), parts);
}

std::vector<Status> ObjectStore::DeleteMany(std::span<const std::string> paths) {
  std::vector<Status> outcomes;
  outcomes.reserve(paths.size());
  for (const std::string& path : paths) outcomes.push_back(Delete(path));
  return outcomes;
}

Result<int64_t> ObjectStore::DeleteTemporaries(std::string_view, int64_t) { return 0; }

}  // namespace glaive::io
