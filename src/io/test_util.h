// Helpers for tests of stores.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <arrow/buffer.h>
#include <gtest/gtest.h>

#include "io/object_store.h"

#define ASSERT_OK(expr)                                              \
  do {                                                               \
    const auto& status_of_check = (expr);                            \
    ASSERT_TRUE(status_of_check.ok()) << status_of_check.ToString(); \
  } while (false)
#define GLAIVE_TEST_CONCAT_(a, b) a##b
#define GLAIVE_TEST_CONCAT(a, b) GLAIVE_TEST_CONCAT_(a, b)
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  GLAIVE_ASSERT_OK_AND_ASSIGN_(GLAIVE_TEST_CONCAT(result_, __LINE__), lhs, expr)
#define GLAIVE_ASSERT_OK_AND_ASSIGN_(result, lhs, expr)   \
  auto result = (expr);                                   \
  ASSERT_TRUE(result.ok()) << result.status().ToString(); \
  lhs = std::move(result).ValueUnsafe()
#define EXPECT_KIND(kind, expr)                                           \
  do {                                                                    \
    const ::glaive::Status status_of_check = (expr);                      \
    EXPECT_EQ(::glaive::ErrorKindName(::glaive::KindOf(status_of_check)), \
              ::glaive::ErrorKindName(kind))                              \
        << status_of_check.ToString();                                    \
  } while (false)

namespace glaive::io {

// A directory that lives as long as the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name =
        (std::filesystem::temp_directory_path() / "glaive-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string Text(const std::shared_ptr<arrow::Buffer>& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer->data()),
                     static_cast<size_t>(buffer->size()));
}

}  // namespace glaive::io
