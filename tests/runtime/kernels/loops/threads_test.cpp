// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/threads.h"

#include <gtest/gtest.h>
#include <omp.h>

namespace lockstep::kernels::cpu {
namespace {

TEST(Threads, AreAsManyAsTheWorkKeepsBusy) {
  const int before = threads();
  omp_set_num_threads(4);
  const auto threads_for = [](std::int64_t multiply_adds) {
    const ThreadsFor limit(multiply_adds);
    return threads();
  };
  EXPECT_EQ(threads_for(0), 1);
  EXPECT_EQ(threads_for(std::int64_t{1} << 20), 1);
  EXPECT_EQ(threads_for(std::int64_t{1} << 23), 2);
  EXPECT_EQ(threads_for(std::int64_t{1} << 40), 4);
  EXPECT_EQ(threads(), 4) << "and afterwards as before";
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace lockstep::kernels::cpu
