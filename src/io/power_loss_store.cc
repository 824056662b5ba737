#include "io/power_loss_store.h"

#include <map>
#include <mutex>
#include <string>

#include <arrow/buffer.h>

#include "io/path.h"

namespace glaive::io {

// What objects would be after a power cut, by path from the root; objects that are as
// they were last written have no entry.
struct PowerLossDisk {
  std::mutex mutex;
  // Guarded by mutex. Null: not there at all.
  std::map<std::string, std::shared_ptr<arrow::Buffer>, std::less<>> older;
};

namespace {

using BufferPtr = std::shared_ptr<arrow::Buffer>;

std::span<const uint8_t> AsSpan(const arrow::Buffer& buffer) {
  return {buffer.data(), static_cast<size_t>(buffer.size())};
}

class PowerLossWriter : public ObjectWriter {
 public:
  PowerLossWriter(std::unique_ptr<ObjectWriter> inner, std::shared_ptr<ObjectStore> store,
                  std::string path, std::string key, std::shared_ptr<PowerLossDisk> disk)
      : inner_(std::move(inner)),
        store_(std::move(store)),
        path_(std::move(path)),
        key_(std::move(key)),
        disk_(std::move(disk)) {}
  Status Append(std::span<const uint8_t> bytes) override { return inner_->Append(bytes); }
  int64_t position() const override { return inner_->position(); }
  Status Finish() override {
    std::lock_guard lock(disk_->mutex);
    GLAIVE_RETURN_NOT_OK(inner_->Finish());
    disk_->older.erase(key_);
    return Status::OK();
  }
  void Abort() override { inner_->Abort(); }
  Status Publish() override {
    std::lock_guard lock(disk_->mutex);
    const BufferPtr before = store_->Get(path_).ValueOr(nullptr);
    GLAIVE_RETURN_NOT_OK(inner_->Publish());
    disk_->older.try_emplace(key_, before);
    return Status::OK();
  }
  Status Sync() override {
    std::lock_guard lock(disk_->mutex);
    GLAIVE_RETURN_NOT_OK(inner_->Sync());
    disk_->older.erase(key_);
    return Status::OK();
  }

 private:
  const std::unique_ptr<ObjectWriter> inner_;
  const std::shared_ptr<ObjectStore> store_;
  const std::string path_;
  const std::string key_;
  const std::shared_ptr<PowerLossDisk> disk_;
};

class PowerLossStore : public ObjectStore {
 public:
  PowerLossStore(std::shared_ptr<ObjectStore> inner, std::string prefix,
                 std::shared_ptr<PowerLossDisk> disk)
      : inner_(std::move(inner)), prefix_(std::move(prefix)), disk_(std::move(disk)) {}

  const std::string& root() const override { return inner_->root(); }
  bool lists_in_order() const override { return inner_->lists_in_order(); }
  std::shared_ptr<ObjectStore> Child(std::string_view path) override {
    return std::make_shared<PowerLossStore>(inner_->Child(path), Key(path), disk_);
  }
  Result<std::shared_ptr<RandomAccessObject>> Open(
      std::string_view path, std::optional<int64_t> size_hint) override {
    return inner_->Open(path, size_hint);
  }
  Result<BufferPtr> Get(std::string_view path) override { return inner_->Get(path); }
  Result<ObjectInfo> Head(std::string_view path) override { return inner_->Head(path); }
  Result<bool> Exists(std::string_view path) override { return inner_->Exists(path); }
  Result<std::vector<ObjectInfo>> List(std::string_view prefix, bool recursive) override {
    return inner_->List(prefix, recursive);
  }
  Result<std::vector<std::string>> ListNames(std::string_view directory) override {
    return inner_->ListNames(directory);
  }
  Result<std::unique_ptr<ObjectWriter>> Create(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(auto writer, inner_->Create(path));
    return std::make_unique<PowerLossWriter>(std::move(writer), inner_, std::string(path),
                                             Key(path), disk_);
  }

  Status Put(std::string_view path, std::span<const uint8_t> bytes,
             bool durable) override {
    std::lock_guard lock(disk_->mutex);
    const BufferPtr before = inner_->Get(path).ValueOr(nullptr);
    GLAIVE_RETURN_NOT_OK(inner_->Put(path, bytes, durable));
    Written(path, before, durable);
    return Status::OK();
  }

  Status PutPartsIfAbsent(std::string_view path, ByteParts parts, bool durable) override {
    std::lock_guard lock(disk_->mutex);
    GLAIVE_RETURN_NOT_OK(inner_->PutPartsIfAbsent(path, parts, durable));
    Written(path, nullptr, durable);
    return Status::OK();
  }

  // What is deleted stays deleted: nothing relies on more.
  Status Delete(std::string_view path) override {
    std::lock_guard lock(disk_->mutex);
    GLAIVE_RETURN_NOT_OK(inner_->Delete(path));
    disk_->older.erase(Key(path));
    return Status::OK();
  }
  Status DeleteTree(std::string_view prefix) override {
    std::lock_guard lock(disk_->mutex);
    GLAIVE_RETURN_NOT_OK(inner_->DeleteTree(prefix));
    const std::string below = Key(prefix) + "/";
    std::erase_if(disk_->older,
                  [&](const auto& entry) { return entry.first.starts_with(below); });
    return Status::OK();
  }
  Status Rename(std::string_view, std::string_view) override {
    return NotSupported("renaming in a store that loses power");
  }

 private:
  std::string Key(std::string_view path) const { return JoinPath(prefix_, path); }

  // With the lock.
  void Written(std::string_view path, BufferPtr before, bool durable) {
    if (durable) {
      disk_->older.erase(Key(path));
    } else {
      disk_->older.try_emplace(Key(path), std::move(before));  // the oldest one counts
    }
  }

  const std::shared_ptr<ObjectStore> inner_;
  const std::string prefix_;
  const std::shared_ptr<PowerLossDisk> disk_;
};

}  // namespace

PowerLoss::PowerLoss()
    : disk_(std::make_shared<PowerLossDisk>()),
      store_(std::make_shared<PowerLossStore>(MakeMemoryStore(), "", disk_)) {}
PowerLoss::~PowerLoss() = default;

Result<std::shared_ptr<PowerLoss>> PowerLoss::CutPower(std::mt19937_64& random) const {
  auto after = std::make_shared<PowerLoss>();
  std::lock_guard lock(disk_->mutex);
  GLAIVE_ASSIGN_OR_RETURN(const auto objects, store_->List("", true));
  for (const ObjectInfo& object : objects) {
    GLAIVE_ASSIGN_OR_RETURN(const BufferPtr written, store_->Get(object.path));
    std::span<const uint8_t> bytes = AsSpan(*written);
    if (const auto found = disk_->older.find(object.path); found != disk_->older.end()) {
      const auto chance = random() % 4;
      if (found->second != nullptr) {
        // A replacement is written elsewhere first: the old one or the new one is there.
        if (chance < 2) bytes = AsSpan(*found->second);
      } else if (chance == 0) {
        continue;
      } else if (chance < 3) {
        bytes = bytes.first(chance == 1 ? 0 : random() % (bytes.size() + 1));
      }
    }
    GLAIVE_RETURN_NOT_OK(after->store_->PutIfAbsent(object.path, bytes));
  }
  return after;
}

}  // namespace glaive::io
