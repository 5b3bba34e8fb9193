// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/tensor/error.h"

namespace lockstep::kernels {
namespace {

TEST(Backend, AScopedBackendHoldsOnItsThreadUntilItEnds) {
  Backend& usual = backend(kCpu);
  {
    const ScopedBackend reference(reference_backend());
    EXPECT_EQ(&backend(kCpu), &reference_backend());
    std::thread([&] { EXPECT_EQ(&backend(kCpu), &usual); }).join();
    {
      const ScopedBackend inner(usual);
      EXPECT_EQ(&backend(kCpu), &usual);
    }
    EXPECT_EQ(&backend(kCpu), &reference_backend());
  }
  EXPECT_EQ(&backend(kCpu), &usual);
}

TEST(Backend, ADeviceWithoutKernelsIsNamed) {
  try {
    backend({DeviceType::kCuda, 99});
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:99"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::kernels
