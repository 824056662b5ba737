#include "memwal/lease.h"

#include <unistd.h>

#include <charconv>
#include <utility>

#include <arrow/buffer.h>

#include "io/object_store.h"
#include "table/names.h"

namespace glaive::memwal {
namespace {

using std::chrono::milliseconds;

int64_t NowMs() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Content {
  std::string holder;
  int64_t expires_ms = 0;
};

std::string Format(const Content& content) {
  return "{\"holder\":\"" + content.holder +
         "\",\"expires_ms\":" + std::to_string(content.expires_ms) + "}";
}

// The text behind `key` up to one of `end`; empty when it is not there.
std::string_view Behind(std::string_view text, std::string_view key, char end) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find(end));
}

// Nothing for what this build did not write: nobody can tell whose it is.
std::optional<Content> Parse(std::string_view text) {
  Content content;
  content.holder = Behind(text, "\"holder\":\"", '"');
  const std::string_view expires = Behind(text, "\"expires_ms\":", '}');
  const auto [end, error] = std::from_chars(
      expires.data(), expires.data() + expires.size(), content.expires_ms);
  if (content.holder.empty() || error != std::errc() ||
      end != expires.data() + expires.size()) {
    return std::nullopt;
  }
  return content;
}

// Nothing when there is no lease or it does not parse.
Result<std::optional<Content>> Read(io::ObjectStore& store, const std::string& path) {
  auto bytes = store.Get(path);
  if (KindOf(bytes.status()) == ErrorKind::kNotFound) return std::optional<Content>();
  GLAIVE_RETURN_NOT_OK(bytes.status());
  return Parse({reinterpret_cast<const char*>((*bytes)->data()),
                static_cast<size_t>((*bytes)->size())});
}

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::string LeasePath(const ShardId& shard) {
  return ShardDir(shard) + "/compaction.lease";
}

Result<std::unique_ptr<Lease>> Lease::Take(std::shared_ptr<io::ObjectStore> store,
                                           const ShardId& shard, milliseconds duration) {
  const std::string path = LeasePath(shard);
  const Content mine{std::to_string(::getpid()) + "-" + table::NewUuid(),
                     NowMs() + duration.count()};
  const std::string text = Format(mine);
  std::unique_ptr<Lease> lease(new Lease(store, path, mine.holder));
  for (int attempt = 0; attempt < 2; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(const auto theirs, Read(*store, path));
    if (theirs && theirs->expires_ms > NowMs()) {
      return std::unique_ptr<Lease>();
    }
    // What is expired goes first, so that of several who find it one gets the lease. (One
    // that was given anew between look and deletion is lost, and somebody may work
    // twice.)
    GLAIVE_RETURN_NOT_OK(store->Delete(path));
    const std::span<const uint8_t> bytes = AsBytes(text);
    const Status put = store->PutPartsIfAbsent(path, io::ByteParts(&bytes, 1),
                                               /*durable=*/false);
    if (put.ok()) return lease;
    if (KindOf(put) != ErrorKind::kAlreadyExists) return put;
  }
  return std::unique_ptr<Lease>();
}

Lease::~Lease() {
  auto current = Read(*store_, path_);
  if (!current.ok() || !*current || (*current)->holder != holder_) return;
  // It expires by itself otherwise.
  const Status ignored = store_->Delete(path_);
  static_cast<void>(ignored.ok());
}

Result<bool> Lease::Renew(milliseconds duration) {
  GLAIVE_ASSIGN_OR_RETURN(const auto current, Read(*store_, path_));
  if (!current || current->holder != holder_) return false;
  const std::string text = Format({holder_, NowMs() + duration.count()});
  GLAIVE_RETURN_NOT_OK(store_->Put(path_, AsBytes(text), /*durable=*/false));
  return true;
}

bool LeaseIsHeld(io::ObjectStore& store, const ShardId& shard) {
  auto content = Read(store, LeasePath(shard));
  return content.ok() && *content && (*content)->expires_ms > NowMs();
}

}  // namespace glaive::memwal
