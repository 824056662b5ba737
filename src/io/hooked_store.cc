#include <arrow/buffer.h>

#include "io/store_hook.h"

namespace glaive::io {
namespace {

using BufferPtr = std::shared_ptr<arrow::Buffer>;
using HookPtr = std::shared_ptr<StoreHook>;

Status StatusOf(const Status& status) { return status; }
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

std::span<const uint8_t> FirstHalf(std::span<const uint8_t> bytes) {
  return bytes.first(bytes.size() / 2);
}

// Runs `call`, which returns a Status or Result, as the hook's verdict says. `tear`
// stands for it when the operation is to be torn.
template <typename Call, typename Tear>
auto RunHooked(StoreHook* hook, StoreOp op, std::string_view path, Call call, Tear tear)
    -> decltype(call()) {
  HookVerdict verdict = hook->Before(op, path);
  if (verdict.status.ok()) return call();
  if (verdict.effect == FaultEffect::kDone) {
    // An error of its own is the better story.
    GLAIVE_RETURN_NOT_OK(StatusOf(call()));
  } else if (verdict.effect == FaultEffect::kTorn) {
    tear();
  }
  return verdict.status;
}

template <typename Call>
auto RunHooked(StoreHook* hook, StoreOp op, std::string_view path, Call call)
    -> decltype(call()) {
  return RunHooked(hook, op, path, call, [] {});
}

class HookedObject : public RandomAccessObject {
 public:
  HookedObject(std::shared_ptr<RandomAccessObject> inner, HookPtr hook)
      : inner_(std::move(inner)), hook_(std::move(hook)) {}

  const std::string& path() const override { return inner_->path(); }
  int64_t size_bytes() const override { return inner_->size_bytes(); }

  Result<BufferPtr> Read(ByteRange range) override {
    return RunHooked(hook_.get(), StoreOp::kRead, path(), [&]() -> Result<BufferPtr> {
      GLAIVE_ASSIGN_OR_RETURN(BufferPtr buffer, inner_->Read(range));
      hook_->Done(StoreOp::kRead, 1, range.length);
      return buffer;
    });
  }

  Result<std::vector<BufferPtr>> ReadMany(std::span<const ByteRange> ranges) override {
    return RunHooked(
        hook_.get(), StoreOp::kRead, path(), [&]() -> Result<std::vector<BufferPtr>> {
          GLAIVE_ASSIGN_OR_RETURN(std::vector<BufferPtr> buffers,
                                  inner_->ReadMany(ranges));
          int64_t bytes = 0;
          for (const ByteRange& range : ranges) bytes += range.length;
          hook_->Done(StoreOp::kRead, static_cast<int64_t>(ranges.size()), bytes);
          return buffers;
        });
  }

 private:
  const std::shared_ptr<RandomAccessObject> inner_;
  const HookPtr hook_;
};

class HookedWriter : public ObjectWriter {
 public:
  HookedWriter(std::unique_ptr<ObjectWriter> inner, std::string path,
               std::shared_ptr<ObjectStore> store, HookPtr hook)
      : inner_(std::move(inner)),
        path_(std::move(path)),
        store_(std::move(store)),
        hook_(std::move(hook)) {}

  Status Append(std::span<const uint8_t> bytes) override {
    return RunHooked(
        hook_.get(), StoreOp::kAppend, path_,
        [&]() -> Status {
          GLAIVE_RETURN_NOT_OK(inner_->Append(bytes));
          hook_->Done(StoreOp::kAppend, 1, static_cast<int64_t>(bytes.size()));
          return Status::OK();
        },
        [&] { (void)inner_->Append(FirstHalf(bytes)).ok(); });
  }

  int64_t position() const override { return inner_->position(); }

  Status Finish() override { return FinishBy(&ObjectWriter::Finish); }

  void Abort() override { inner_->Abort(); }

  Status Publish() override { return FinishBy(&ObjectWriter::Publish); }

  Status Sync() override {
    return RunHooked(hook_.get(), StoreOp::kSync, path_, [&]() -> Status {
      GLAIVE_RETURN_NOT_OK(inner_->Sync());
      hook_->Done(StoreOp::kSync, 0, 0);
      return Status::OK();
    });
  }

 private:
  Status FinishBy(Status (ObjectWriter::*step)()) {
    return RunHooked(
        hook_.get(), StoreOp::kFinish, path_,
        [&]() -> Status {
          GLAIVE_RETURN_NOT_OK((inner_.get()->*step)());
          hook_->Done(StoreOp::kFinish, 0, 0);
          return Status::OK();
        },
        [&] { TearFinish(); });
  }

  void TearFinish() {
    if (store_->Exists(path_).ValueOr(true) || !inner_->Finish().ok()) return;
    auto content = store_->Get(path_);
    if (!content.ok()) return;
    const std::span<const uint8_t> bytes((*content)->data(),
                                         static_cast<size_t>((*content)->size()));
    (void)store_->Put(path_, FirstHalf(bytes)).ok();
  }

  const std::unique_ptr<ObjectWriter> inner_;
  const std::string path_;
  const std::shared_ptr<ObjectStore> store_;  // not hooked
  const HookPtr hook_;
};

class HookedStore : public ObjectStore {
 public:
  HookedStore(std::shared_ptr<ObjectStore> inner, HookPtr hook)
      : inner_(std::move(inner)), hook_(std::move(hook)) {}

  const std::string& root() const override { return inner_->root(); }
  bool lists_in_order() const override { return inner_->lists_in_order(); }
  std::shared_ptr<ObjectStore> Child(std::string_view path) override {
    return std::make_shared<HookedStore>(inner_->Child(path), hook_);
  }

  Result<std::shared_ptr<RandomAccessObject>> Open(
      std::string_view path, std::optional<int64_t> size_hint) override {
    return Run(StoreOp::kOpen, path,
               [&]() -> Result<std::shared_ptr<RandomAccessObject>> {
                 GLAIVE_ASSIGN_OR_RETURN(auto object, inner_->Open(path, size_hint));
                 hook_->Done(StoreOp::kOpen, 0, 0);
                 return std::make_shared<HookedObject>(std::move(object), hook_);
               });
  }

  Result<BufferPtr> Get(std::string_view path) override {
    return Run(StoreOp::kGet, path, [&]() -> Result<BufferPtr> {
      GLAIVE_ASSIGN_OR_RETURN(BufferPtr buffer, inner_->Get(path));
      hook_->Done(StoreOp::kGet, 1, buffer->size());
      return buffer;
    });
  }

  Result<ObjectInfo> Head(std::string_view path) override {
    return Counted(StoreOp::kHead, path, [&] { return inner_->Head(path); });
  }

  Result<bool> Exists(std::string_view path) override {
    return Counted(StoreOp::kExists, path, [&] { return inner_->Exists(path); });
  }

  Result<std::vector<ObjectInfo>> List(std::string_view prefix, bool recursive) override {
    return Counted(StoreOp::kList, prefix,
                   [&] { return inner_->List(prefix, recursive); });
  }

  Result<std::vector<std::string>> ListNames(std::string_view directory) override {
    return Counted(StoreOp::kList, directory,
                   [&] { return inner_->ListNames(directory); });
  }

  Result<std::unique_ptr<ObjectWriter>> Create(std::string_view path) override {
    return Run(StoreOp::kCreate, path, [&]() -> Result<std::unique_ptr<ObjectWriter>> {
      GLAIVE_ASSIGN_OR_RETURN(auto writer, inner_->Create(path));
      hook_->Done(StoreOp::kCreate, 0, 0);
      return std::make_unique<HookedWriter>(std::move(writer), std::string(path), inner_,
                                            hook_);
    });
  }

  Status Put(std::string_view path, std::span<const uint8_t> bytes,
             bool durable) override {
    return RunHooked(
        hook_.get(), StoreOp::kPut, path,
        [&] {
          return Written(StoreOp::kPut, inner_->Put(path, bytes, durable), bytes.size());
        },
        [&] { (void)inner_->PutIfAbsent(path, FirstHalf(bytes)).ok(); });
  }

  Status PutPartsIfAbsent(std::string_view path, ByteParts parts, bool durable) override {
    size_t size = 0;
    for (const auto& part : parts) size += part.size();
    return RunHooked(
        hook_.get(), StoreOp::kPutIfAbsent, path,
        [&] {
          return Written(StoreOp::kPutIfAbsent,
                         inner_->PutPartsIfAbsent(path, parts, durable), size);
        },
        [&] {
          std::vector<uint8_t> joined;
          for (const auto& part : parts)
            joined.insert(joined.end(), part.begin(), part.end());
          (void)inner_->PutIfAbsent(path, FirstHalf(joined)).ok();
        });
  }

  Status Delete(std::string_view path) override {
    return Counted(StoreOp::kDelete, path, [&] { return inner_->Delete(path); });
  }

  Result<int64_t> DeleteTemporaries(std::string_view directory,
                                    int64_t before_us) override {
    return Counted(StoreOp::kList, directory,
                   [&] { return inner_->DeleteTemporaries(directory, before_us); });
  }

  Status DeleteTree(std::string_view prefix) override {
    return Counted(StoreOp::kDeleteTree, prefix,
                   [&] { return inner_->DeleteTree(prefix); });
  }

  Status Rename(std::string_view from, std::string_view to) override {
    return Counted(StoreOp::kRename, from, [&] { return inner_->Rename(from, to); });
  }

 private:
  template <typename Call>
  auto Run(StoreOp op, std::string_view path, Call call) -> decltype(call()) {
    return RunHooked(hook_.get(), op, path, call);
  }

  template <typename Call>
  auto Counted(StoreOp op, std::string_view path, Call call) -> decltype(call()) {
    return Run(op, path, [&] {
      auto result = call();
      if (result.ok()) hook_->Done(op, 0, 0);
      return result;
    });
  }

  Status Written(StoreOp op, Status status, size_t bytes) {
    if (status.ok()) hook_->Done(op, 1, static_cast<int64_t>(bytes));
    return status;
  }

  const std::shared_ptr<ObjectStore> inner_;
  const HookPtr hook_;
};

}  // namespace

void StoreHook::Done(StoreOp, int64_t, int64_t) {}

std::string_view StoreOpName(StoreOp op) {
  switch (op) {
    case StoreOp::kOpen:
      return "open";
    case StoreOp::kRead:
      return "read";
    case StoreOp::kGet:
      return "get";
    case StoreOp::kHead:
      return "head";
    case StoreOp::kExists:
      return "exists";
    case StoreOp::kList:
      return "list";
    case StoreOp::kCreate:
      return "create";
    case StoreOp::kAppend:
      return "append";
    case StoreOp::kFinish:
      return "finish";
    case StoreOp::kPut:
      return "put";
    case StoreOp::kPutIfAbsent:
      return "put_if_absent";
    case StoreOp::kDelete:
      return "delete";
    case StoreOp::kDeleteTree:
      return "delete_tree";
    case StoreOp::kRename:
      return "rename";
    case StoreOp::kSync:
      return "sync";
  }
  return "unknown";
}

std::shared_ptr<ObjectStore> MakeHookedStore(std::shared_ptr<ObjectStore> inner,
                                             std::shared_ptr<StoreHook> hook) {
  return std::make_shared<HookedStore>(std::move(inner), std::move(hook));
}

}  // namespace glaive::io
