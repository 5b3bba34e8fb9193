// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/host_name.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace lockstep {
namespace {

TEST(HostName, IsTheNodesName) {
  utsname system{};
  ASSERT_EQ(uname(&system), 0);
  EXPECT_EQ(host_name(), system.nodename);
}

}  // namespace
}  // namespace lockstep
