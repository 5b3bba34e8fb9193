// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/tensor/error.h"

namespace lockstep::kernels::cpu {
namespace {

TEST(Isa, IsAtMostTheOneThatTheEnvironmentNames) {
  const char* limit = std::getenv("LOCKSTEP_CPU_ISA");
  if (limit == nullptr) GTEST_SKIP() << "LOCKSTEP_CPU_ISA is not set";
  if (std::string(limit) == "baseline") {
    EXPECT_EQ(isa(), Isa::kBaseline);
  }
  if (std::string(limit) == "avx2") {
    EXPECT_LE(isa(), Isa::kAvx2);
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
