// From a URI to a store.
#include <cctype>
#include <cstdlib>

#include "io/object_store.h"
#include "io/path.h"

namespace glaive::io {
namespace {

// "s3+ddb://x" -> "s3+ddb"; empty when `uri` is a plain path. One-letter schemes are none
// (they would be drive letters elsewhere).
std::string_view SchemeOf(std::string_view uri) {
  const size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon < 2) return {};
  if (std::isalpha(static_cast<unsigned char>(uri[0])) == 0) return {};
  for (const char c : uri.substr(0, colon)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '+' && c != '-' &&
        c != '.') {
      return {};
    }
  }
  const std::string_view rest = uri.substr(colon + 1);
  const std::string_view scheme = uri.substr(0, colon);
  // A file name may hold a colon: without "//" only "file:/path" is taken for a URI.
  if (rest.starts_with("//") || (scheme == "file" && rest.starts_with('/'))) {
    return scheme;
  }
  return {};
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What is no valid escape stays as it is.
std::string PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 &&
        HexValue(text[i + 2]) >= 0) {
      decoded.push_back(
          static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2])));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

std::string ExpandHome(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return std::string(path);
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return std::string(path);
  return std::string(home) + std::string(path.substr(1));
}

}  // namespace

Result<std::shared_ptr<ObjectStore>> OpenStore(std::string_view uri, bool create) {
  if (uri.empty()) return InvalidInput("the URI of a store must not be empty");
  const std::string_view scheme = SchemeOf(uri);
  if (scheme.empty()) return OpenLocalStore(ExpandHome(uri), create);
  std::string_view rest = uri.substr(scheme.size() + 1);
  if (scheme == "file") {
    if (rest.starts_with("//")) {
      rest.remove_prefix(2);
      if (rest.starts_with("localhost/")) rest.remove_prefix(9);
      if (!rest.starts_with('/')) {
        return InvalidInput("'", uri, "' names another host; write file:///path");
      }
    }
    return OpenLocalStore(PercentDecode(rest), create);
  }
  if (scheme == "memory") {
    std::shared_ptr<ObjectStore> store = MakeMemoryStore();
    rest.remove_prefix(2);
    while (rest.starts_with('/')) rest.remove_prefix(1);
    while (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.empty()) return store;
    GLAIVE_RETURN_NOT_OK(ValidateObjectPath(rest));
    return store->Child(rest);
  }
  return NotSupported("cannot open '", uri, "': stores of the kind '", scheme,
                      "://' are not built yet; use a local path, file:// or memory://");
}

}  // namespace glaive::io
