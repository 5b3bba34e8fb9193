// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/tensor/device.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::devices {

/// The GPU that tests use.
inline constexpr Device kGpu{DeviceType::kCuda, 0};

/// Why tests on the device are skipped here, in words that CTest looks for; nothing where they run.
inline std::optional<std::string> why_skipped(Device device) {
  if (device == kCpu || device.index < gpu::device_count()) return {};
  const std::string none = gpu::why_none();
  return "no GPU: every test is skipped (" + (none.empty() ? "there is no " + str(device) : none) + ")";
}

/// "cpu" or "cuda", for the names of tests: CTest tells the GPU's by it, and a colon would end a --gtest_filter.
inline std::string name_of(Device device) { return device == kCpu ? "cpu" : "cuda"; }

/// Where tests run that are not told it by a parameter: on the CPU, or on a GPU in a process with
/// LOCKSTEP_TEST_DEVICE=cuda. lockstep_test(... ON_GPU) of tests/CMakeLists.txt runs the suites of the sources that
/// name this function on both.
inline Device device() {
  static const char* const name = std::getenv("LOCKSTEP_TEST_DEVICE");
  if (name == nullptr || std::string_view(name) == "cpu") return kCpu;
  if (std::string_view(name) != "cuda") throw std::invalid_argument(std::string("LOCKSTEP_TEST_DEVICE=") + name);
  return kGpu;
}

/// Skips the whole program where device() is not there. Whether float32 may be TF32 is what a test says.
class SkipWithoutDevice : public ::testing::Environment {
  void SetUp() override {
    unsetenv("NVIDIA_TF32_OVERRIDE");
    if (const auto reason = why_skipped(device())) GTEST_SKIP() << *reason;
  }
};
inline ::testing::Environment* const skip_without_device = ::testing::AddGlobalTestEnvironment(new SkipWithoutDevice);

/// What only a GPU can show. Names of such suites begin with Gpu, by which CTest tells them.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_skipped(kGpu)) GTEST_SKIP() << *reason;
  }
};

}  // namespace lockstep::devices
