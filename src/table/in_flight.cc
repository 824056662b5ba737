#include "table/in_flight.h"

#include <functional>
#include <mutex>
#include <set>

#include "io/object_store.h"
#include "runtime/fork.h"

namespace glaive::table {
namespace {

struct Names {
  std::mutex mutex;
  std::multiset<std::string, std::less<>> keys;
};

// A forked child starts empty: what its parent writes is the parent's.
Names& AllNames() {
  static auto* names = new ForkAware<Names>([] { return std::make_unique<Names>(); });
  return names->get();
}

std::string Prefix(const io::ObjectStore& store) { return store.root() + "//"; }

}  // namespace

InFlightFiles::InFlightFiles(const io::ObjectStore& store) : prefix_(Prefix(store)) {}

InFlightFiles::~InFlightFiles() {
  if (keys_.empty()) return;
  Names& names = AllNames();
  std::lock_guard lock(names.mutex);
  for (const std::string& key : keys_) {
    auto found = names.keys.find(key);
    if (found != names.keys.end()) names.keys.erase(found);
  }
}

void InFlightFiles::Add(std::string_view path) {
  std::string key = prefix_;
  key += path;
  Names& names = AllNames();
  std::lock_guard lock(names.mutex);
  names.keys.insert(key);
  keys_.push_back(std::move(key));
}

bool IsInFlight(const io::ObjectStore& store, std::string_view path) {
  std::string key = Prefix(store);
  key += path;
  Names& names = AllNames();
  std::lock_guard lock(names.mutex);
  return names.keys.count(key) > 0;
}

}  // namespace glaive::table
