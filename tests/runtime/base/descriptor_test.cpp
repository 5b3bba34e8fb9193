// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <type_traits>
#include <utility>

namespace lockstep {
namespace {

Descriptor opened() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, ClosesWhatItOwns) {
  int number = -1;
  {
    const Descriptor file = opened();
    number = file.get();
    ASSERT_TRUE(file);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, OwnsNothingByItself) {
  const Descriptor none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.get(), -1);
}

TEST(Descriptor, ReleasesItForTheCallerToClose) {
  Descriptor file = opened();
  const int number = file.release();
  EXPECT_FALSE(file);
  file.reset();
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(Descriptor, Moves) {
  static_assert(!std::is_copy_constructible_v<Descriptor> && !std::is_copy_assignable_v<Descriptor>);
  static_assert(std::is_nothrow_move_constructible_v<Descriptor> && std::is_nothrow_move_assignable_v<Descriptor>);
  Descriptor first = opened();
  const int number = first.get();
  Descriptor second = std::move(first);
  EXPECT_EQ(second.get(), number);
  Descriptor third = opened();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_TRUE(is_open(number));
  EXPECT_FALSE(is_open(replaced));
}

TEST(Descriptor, KeepsTheErrorOfTheCallBefore) {
  Descriptor file = opened();
  Descriptor wrong(1 << 20);  // closing it fails
  errno = ENOSPC;
  file.reset();
  wrong.reset();
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace lockstep
