// What the runtime's cache keeps must not keep the runtime.
#include <memory>

#include <gtest/gtest.h>

#include "table/test_util.h"

namespace glaive::table {
namespace {

TEST(RuntimeEnd, ARuntimeEndsWithItsTables) {
  std::weak_ptr<Runtime> runtime;
  {
    const TableEnv env = MakeEnv(io::MakeMemoryStore());
    runtime = env.runtime;
    ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {3}));
    ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
    EXPECT_EQ(values.size(), 9u);
  }
  EXPECT_TRUE(runtime.expired());
}

}  // namespace
}  // namespace glaive::table
