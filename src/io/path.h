// Rules for object names, shared by all stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive::io {

// Objects being written carry this prefix until they are published; listings leave them
// out.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

// InvalidInput unless `path` is a non-empty relative path without empty, "." or ".."
// segments and without NUL bytes.
Status ValidateObjectPath(std::string_view path);

// As above, but the empty path (the store's root) is allowed, as is one '/' at the end.
// Returns the path without it.
Result<std::string_view> ValidateDirectoryPath(std::string_view path);

// "a" + "b" = "a/b"; an empty side is left out.
std::string JoinPath(std::string_view parent, std::string_view child);

std::string_view BaseName(std::string_view path);

// What stands before the last '/': empty when there is none.
std::string_view ParentPath(std::string_view path);

struct ByteRange;

// Corruption unless `range` lies within an object of `size` bytes.
Status CheckRange(const ByteRange& range, int64_t size, std::string_view path);

// Corruption when a known size differs from the real one.
Status CheckSizeHint(std::optional<int64_t> size_hint, int64_t size,
                     std::string_view path);

}  // namespace glaive::io
