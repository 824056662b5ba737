// Objects in memory: for tests and for databases that need not outlive the process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include <arrow/buffer.h>
#include <arrow/buffer_builder.h>

#include "io/object_store.h"
#include "io/path.h"
#include "runtime/fork.h"

namespace glaive::io {
namespace {

using BufferPtr = std::shared_ptr<arrow::Buffer>;

int64_t NowMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

Result<BufferPtr> CopyOf(ByteParts parts) {
  size_t size = 0;
  for (const auto& part : parts) size += part.size();
  GLAIVE_ASSIGN_OR_RETURN(BufferPtr buffer,
                          arrow::AllocateBuffer(static_cast<int64_t>(size)));
  uint8_t* out = buffer->mutable_data();
  for (const auto& part : parts) out = std::copy(part.begin(), part.end(), out);
  return buffer;
}

// What a store shares with its children. Thread-safe.
struct Objects {
  struct Object {
    BufferPtr content;
    int64_t modified_us = 0;
  };
  ForkSafeSharedMutex mutex;
  std::map<std::string, Object, std::less<>>
      by_path;  // guarded by mutex; from the top root
};

class MemoryObject : public RandomAccessObject {
 public:
  MemoryObject(std::string_view path, BufferPtr content)
      : path_(path), content_(std::move(content)) {}

  const std::string& path() const override { return path_; }
  int64_t size_bytes() const override { return content_->size(); }

  Result<BufferPtr> Read(ByteRange range) override {
    GLAIVE_RETURN_NOT_OK(CheckRange(range, size_bytes(), path_));
    return std::make_shared<arrow::Buffer>(content_, range.offset, range.length);
  }

  Result<std::vector<BufferPtr>> ReadMany(std::span<const ByteRange> ranges) override {
    std::vector<BufferPtr> buffers;
    buffers.reserve(ranges.size());
    for (const ByteRange& range : ranges) {
      GLAIVE_ASSIGN_OR_RETURN(buffers.emplace_back(), Read(range));
    }
    return buffers;
  }

 private:
  const std::string path_;
  const BufferPtr content_;
};

class MemoryWriter : public ObjectWriter {
 public:
  MemoryWriter(std::string key, std::shared_ptr<Objects> objects)
      : key_(std::move(key)), objects_(std::move(objects)) {}

  Status Append(std::span<const uint8_t> bytes) override {
    if (objects_ == nullptr) return AlreadyClosed();
    return builder_.Append(bytes.data(), static_cast<int64_t>(bytes.size()));
  }

  int64_t position() const override { return builder_.length(); }

  Status Finish() override {
    if (objects_ == nullptr) return AlreadyClosed();
    GLAIVE_ASSIGN_OR_RETURN(BufferPtr content, builder_.Finish());
    const auto objects = std::exchange(objects_, nullptr);
    std::unique_lock lock(objects->mutex);
    objects->by_path.insert_or_assign(key_, Objects::Object{content, NowMicros()});
    return Status::OK();
  }

  void Abort() override {
    objects_ = nullptr;
    builder_.Reset();
  }

 private:
  Status AlreadyClosed() const {
    return Closed("object '", key_, "' was finished or aborted already");
  }

  const std::string key_;
  std::shared_ptr<Objects> objects_;  // null once finished or aborted
  arrow::BufferBuilder builder_;
};

class MemoryStore : public ObjectStore {
 public:
  // `top` is the root of the whole store ("memory://7"), `prefix` what lies between it
  // and this one.
  MemoryStore(std::string top, std::string prefix, std::shared_ptr<Objects> objects,
              Status validity)
      : top_(std::move(top)),
        prefix_(std::move(prefix)),
        root_(JoinPath(top_, prefix_)),
        objects_(std::move(objects)),
        validity_(std::move(validity)) {}

  const std::string& root() const override { return root_; }
  bool lists_in_order() const override { return true; }

  std::shared_ptr<ObjectStore> Child(std::string_view path) override {
    Status validity = validity_.ok() ? ValidateDirectoryPath(path).status() : validity_;
    return std::make_shared<MemoryStore>(top_, JoinPath(prefix_, path), objects_,
                                         validity);
  }

  Result<std::shared_ptr<RandomAccessObject>> Open(
      std::string_view path, std::optional<int64_t> size_hint) override {
    GLAIVE_ASSIGN_OR_RETURN(BufferPtr content, Get(path));
    GLAIVE_RETURN_NOT_OK(CheckSizeHint(size_hint, content->size(), path));
    return std::make_shared<MemoryObject>(path, std::move(content));
  }

  Result<BufferPtr> Get(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(Objects::Object object, Find(path));
    return std::move(object.content);
  }

  Result<ObjectInfo> Head(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(Objects::Object object, Find(path));
    return ObjectInfo{std::string(path), object.content->size(), object.modified_us,
                      false};
  }

  Result<bool> Exists(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string key, Key(path));
    std::shared_lock lock(objects_->mutex);
    return objects_->by_path.contains(key);
  }

  Result<std::vector<ObjectInfo>> List(std::string_view prefix, bool recursive) override {
    std::vector<ObjectInfo> found;
    GLAIVE_RETURN_NOT_OK(
        ForEachBelow(prefix, [&](std::string_view rest, const Objects::Object& object) {
          const size_t slash = recursive ? std::string_view::npos : rest.find('/');
          const std::string path = JoinPath(prefix, rest.substr(0, slash));
          if (slash == std::string_view::npos) {
            found.push_back({path, object.content->size(), object.modified_us, false});
          } else if (found.empty() || found.back().path != path) {
            found.push_back({path, 0, 0, true});
          }
        }));
    // "a-b" lies before "a/x", but after the directory "a" that stands for it.
    if (!recursive) {
      std::sort(found.begin(), found.end(),
                [](const ObjectInfo& a, const ObjectInfo& b) { return a.path < b.path; });
    }
    return found;
  }

  Result<std::vector<std::string>> ListNames(std::string_view directory) override {
    std::vector<std::string> names;
    GLAIVE_RETURN_NOT_OK(
        ForEachBelow(directory, [&](std::string_view rest, const Objects::Object&) {
          if (rest.find('/') == std::string_view::npos) names.emplace_back(rest);
        }));
    return names;
  }

  Result<std::unique_ptr<ObjectWriter>> Create(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(std::string key, Key(path));
    return std::make_unique<MemoryWriter>(std::move(key), objects_);
  }

  Status Put(std::string_view path, std::span<const uint8_t> bytes, bool) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string key, Key(path));
    GLAIVE_ASSIGN_OR_RETURN(BufferPtr content, CopyOf(ByteParts(&bytes, 1)));
    std::unique_lock lock(objects_->mutex);
    objects_->by_path.insert_or_assign(key, Objects::Object{content, NowMicros()});
    return Status::OK();
  }

  Status PutPartsIfAbsent(std::string_view path, ByteParts parts, bool) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string key, Key(path));
    GLAIVE_ASSIGN_OR_RETURN(BufferPtr content, CopyOf(parts));
    std::unique_lock lock(objects_->mutex);
    if (!objects_->by_path.try_emplace(key, Objects::Object{content, NowMicros()})
             .second) {
      return AlreadyExists("cannot create '", FullName(path), "': it exists already");
    }
    return Status::OK();
  }

  Status Delete(std::string_view path) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string key, Key(path));
    std::unique_lock lock(objects_->mutex);
    objects_->by_path.erase(key);
    return Status::OK();
  }

  Status DeleteTree(std::string_view prefix) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string start, DirectoryKey(&prefix));
    std::unique_lock lock(objects_->mutex);
    auto& map = objects_->by_path;
    const auto first = map.lower_bound(start);
    auto last = first;
    while (last != map.end() && last->first.starts_with(start)) ++last;
    map.erase(first, last);
    return Status::OK();
  }

  Status Rename(std::string_view from, std::string_view to) override {
    GLAIVE_ASSIGN_OR_RETURN(const std::string key_from, Key(from));
    GLAIVE_ASSIGN_OR_RETURN(const std::string key_to, Key(to));
    std::unique_lock lock(objects_->mutex);
    auto& map = objects_->by_path;
    if (auto object = map.find(key_from); object != map.end()) {
      if (key_from == key_to) return Status::OK();
      map.insert_or_assign(key_to, std::move(object->second));
      map.erase(object);
      return Status::OK();
    }
    const std::string below_from = key_from + "/";
    const std::string below_to = key_to + "/";
    auto entry = map.lower_bound(below_from);
    if (entry == map.end() || !entry->first.starts_with(below_from)) {
      return NotFound("cannot rename '", FullName(from), "': it does not exist");
    }
    if (below_from == below_to) return Status::OK();
    if (below_to.starts_with(below_from)) {
      return InvalidInput("cannot rename '", FullName(from), "' into itself ('", to,
                          "')");
    }
    const auto target = map.lower_bound(below_to);
    if (target != map.end() && target->first.starts_with(below_to)) {
      return AlreadyExists("cannot rename '", FullName(from), "' to '", to,
                           "': the directory is not empty");
    }
    while (entry != map.end() && entry->first.starts_with(below_from)) {
      auto node = map.extract(entry++);
      node.key() = below_to + node.key().substr(below_from.size());
      map.insert(std::move(node));
    }
    return Status::OK();
  }

 private:
  std::string FullName(std::string_view path) const { return JoinPath(root_, path); }

  Result<std::string> Key(std::string_view path) const {
    GLAIVE_RETURN_NOT_OK(validity_);
    GLAIVE_RETURN_NOT_OK(ValidateObjectPath(path));
    return JoinPath(prefix_, path);
  }

  // With '/' at the end, or empty for the top; takes the '/' off `*directory`.
  Result<std::string> DirectoryKey(std::string_view* directory) const {
    GLAIVE_RETURN_NOT_OK(validity_);
    GLAIVE_ASSIGN_OR_RETURN(*directory, ValidateDirectoryPath(*directory));
    std::string key = JoinPath(prefix_, *directory);
    if (!key.empty()) key.push_back('/');
    return key;
  }

  Result<Objects::Object> Find(std::string_view path) {
    GLAIVE_ASSIGN_OR_RETURN(const std::string key, Key(path));
    std::shared_lock lock(objects_->mutex);
    const auto found = objects_->by_path.find(key);
    if (found == objects_->by_path.end()) {
      return NotFound("cannot open '", FullName(path), "': it does not exist");
    }
    return found->second;
  }

  // Calls visit(path below the directory, object), in order. Takes the '/' off
  // `directory`.
  template <typename Visit>
  Status ForEachBelow(std::string_view& directory, Visit visit) {
    GLAIVE_ASSIGN_OR_RETURN(const std::string start, DirectoryKey(&directory));
    std::shared_lock lock(objects_->mutex);
    const auto& map = objects_->by_path;
    for (auto entry = map.lower_bound(start);
         entry != map.end() && entry->first.starts_with(start); ++entry) {
      visit(std::string_view(entry->first).substr(start.size()), entry->second);
    }
    return Status::OK();
  }

  const std::string top_;
  const std::string prefix_;
  const std::string root_;
  const std::shared_ptr<Objects> objects_;
  const Status validity_;
};

}  // namespace

std::shared_ptr<ObjectStore> MakeMemoryStore() {
  static std::atomic<uint64_t> counter{0};
  std::string top = "memory://" + std::to_string(counter.fetch_add(1) + 1);
  return std::make_shared<MemoryStore>(std::move(top), "", std::make_shared<Objects>(),
                                       Status::OK());
}

}  // namespace glaive::io
