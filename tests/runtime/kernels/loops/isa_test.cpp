// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/tensor/error.h"

namespace lockstep::kernels::cpu {
namespace {

TEST(Isa, IsTheWidestThatTheProcessorHasAndTheEnvironmentAllows) {
  const char* limit = std::getenv("LOCKSTEP_CPU_ISA");
  const std::string allowed = limit == nullptr ? "avx512" : limit;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (allowed == "avx512" && avx512) {
    EXPECT_EQ(isa(), Isa::kAvx512);
  } else if (allowed != "baseline" && avx2) {
    EXPECT_EQ(isa(), Isa::kAvx2);
  } else {
    EXPECT_EQ(isa(), Isa::kBaseline);
  }
}

TEST(Isa, NativeBFloat16NeedsAvx512) {
  if (has_native_bfloat16()) {
    EXPECT_EQ(isa(), Isa::kAvx512);
  }
}

TEST(IsaDeathTest, RefusesAnUnknownName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("LOCKSTEP_CPU_ISA", "sse9", 1);
        try {
          isa();
        } catch (const UsageError&) {
          std::_Exit(0);
        }
        std::_Exit(1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep::kernels::cpu
