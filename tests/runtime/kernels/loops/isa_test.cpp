// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::kernels::cpu {
namespace {

/// Every processor of aarch64 converts float16.
bool is_arm() {
  const std::vector<std::string_view> names = half_instructions();
  return std::ranges::find(names, "FCVT") != names.end();
}

/// What the kernel says of the processor, " avx2 fma ... " or " asimd bf16 ... "; nothing in an emulator.
std::string processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(is_arm() ? "Features" : "flags")) return line.substr(line.find(':') + 1) + " ";
  }
  return {};
}

bool has(std::initializer_list<const char*> features) {
  return std::all_of(features.begin(), features.end(), [flags = processor_flags()](const std::string& feature) {
    return flags.find(" " + feature + " ") != std::string::npos;
  });
}

TEST(Isa, IsTheWidestThatTheProcessorHasAndTheEnvironmentAllows) {
  const char* limit = std::getenv("LOCKSTEP_CPU_ISA");
  if (is_arm()) {
    if (!has({"asimd"})) GTEST_SKIP() << "the kernel does not say what the processor has";
    const std::string allowed = limit == nullptr ? "neon_bf16" : limit;
    const Isa widest = has({"bf16"}) ? Isa::kNeonBf16 : Isa::kNeon;
    EXPECT_EQ(isa(), allowed == "baseline" ? Isa::kBaseline : allowed == "neon" ? Isa::kNeon : widest);
    return;
  }
  const std::string allowed = limit == nullptr ? "avx512" : limit;
  const bool avx2 = has({"avx2", "fma", "f16c"});
  const bool avx512 = avx2 && has({"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  if (allowed == "avx512" && avx512) {
    EXPECT_EQ(isa(), Isa::kAvx512);
  } else if (allowed != "baseline" && avx2) {
    EXPECT_EQ(isa(), Isa::kAvx2);
  } else {
    EXPECT_EQ(isa(), Isa::kBaseline);
  }
}

TEST(Isa, NativeBFloat16NeedsAvx512) {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr) GTEST_SKIP() << "oneDNN is limited";
  EXPECT_EQ(has_native_bfloat16(), isa() == Isa::kAvx512 && has({"avx512_bf16"}));
}

TEST(Isa, TilesAreTheProcessors) {
  // The system may refuse them to a process.
  const bool may = has_native_bfloat16() && has({"amx_tile", "amx_bf16"});
  EXPECT_TRUE(may || !has_bfloat16_tiles());
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
