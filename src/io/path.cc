#include "io/path.h"

#include "io/object_store.h"

namespace glaive::io {

Status ValidateObjectPath(std::string_view path) {
  if (path.empty()) return InvalidInput("an object path must not be empty");
  if (path.find('\0') != std::string_view::npos) {
    return InvalidInput("an object path must not contain a NUL byte");
  }
  size_t start = 0;
  while (true) {
    const size_t end = path.find('/', start);
    const std::string_view segment = path.substr(start, end - start);
    if (segment.empty() || segment == "." || segment == "..") {
      return InvalidInput("object path '", path,
                          "' must be relative and must not contain empty, '.' or '..' "
                          "segments");
    }
    if (end == std::string_view::npos) return Status::OK();
    start = end + 1;
  }
}

Result<std::string_view> ValidateDirectoryPath(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (!path.empty()) GLAIVE_RETURN_NOT_OK(ValidateObjectPath(path));
  return path;
}

std::string JoinPath(std::string_view parent, std::string_view child) {
  if (parent.empty()) return std::string(child);
  if (child.empty()) return std::string(parent);
  std::string joined;
  joined.reserve(parent.size() + child.size() + 1);
  joined.append(parent);
  if (joined.back() != '/') joined.push_back('/');
  joined.append(child);
  return joined;
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view ParentPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

Status CheckRange(const ByteRange& range, int64_t size, std::string_view path) {
  if (range.offset >= 0 && range.length >= 0 && range.offset <= size &&
      range.length <= size - range.offset) [[likely]] {
    return Status::OK();
  }
  return Corruption("file '", path, "' has ", size, " bytes, too few for the ",
                    range.length, " bytes at ", range.offset,
                    " that its metadata promises: it is truncated or damaged");
}

Status CheckSizeHint(std::optional<int64_t> size_hint, int64_t size,
                     std::string_view path) {
  if (!size_hint || *size_hint == size) [[likely]] {
    return Status::OK();
  }
  return Corruption("file '", path, "' has ", size, " bytes, but the table says ",
                    *size_hint, ": it is truncated or was replaced");
}

}  // namespace glaive::io
