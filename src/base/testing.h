// Macros for tests: unwrap a Result or fail with its message.
#pragma once

#include <gtest/gtest.h>

#include "base/status.h"

#ifndef ASSERT_OK
#define ASSERT_OK(expr)                                       \
  do {                                                        \
    ::arrow::Status _st = ::arrow::ToStatus(expr);            \
    ASSERT_TRUE(_st.ok()) << #expr << ": " << _st.ToString(); \
  } while (false)
#define EXPECT_OK(expr)                                       \
  do {                                                        \
    ::arrow::Status _st = ::arrow::ToStatus(expr);            \
    EXPECT_TRUE(_st.ok()) << #expr << ": " << _st.ToString(); \
  } while (false)
#define GLAIVE_TEST_CONCAT2(a, b) a##b
#define GLAIVE_TEST_CONCAT(a, b) GLAIVE_TEST_CONCAT2(a, b)
#define ASSERT_OK_AND_ASSIGN_IMPL(tmp, lhs, expr)                    \
  auto&& tmp = (expr);                                               \
  ASSERT_TRUE(tmp.ok()) << #expr << ": " << tmp.status().ToString(); \
  lhs = std::move(tmp).ValueUnsafe()
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_IMPL(GLAIVE_TEST_CONCAT(_result_, __COUNTER__), lhs, expr)
#endif

// The error kind of a failed Status or Result.
#define EXPECT_ERROR_KIND(expr, kind_)                        \
  do {                                                        \
    ::arrow::Status _st = ::arrow::ToStatus(expr);            \
    EXPECT_EQ(::glaive::ErrorKindName(::glaive::KindOf(_st)), \
              ::glaive::ErrorKindName(kind_))                 \
        << _st.ToString();                                    \
  } while (false)
