// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/gpu_dtypes.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(GpuDtypes, BFloat16BeginsAtCapability8) {
  const Device device{DeviceType::kCuda, 1};
  const gpu::Description old{.name = "Tesla T4", .compute_capability = 75};
  const gpu::Description recent{.name = "A100", .compute_capability = 80};
  EXPECT_EQ(gpu::why_no_dtype(DType::kBFloat16, device, old),
            "bfloat16 needs a GPU of compute capability 8.0 or newer; cuda:1, Tesla T4, has 7.5");
  EXPECT_EQ(gpu::why_no_dtype(DType::kBFloat16, device, recent), "");
  EXPECT_EQ(gpu::why_no_dtype(DType::kFloat16, device, old), "");
  EXPECT_NO_THROW(gpu::require_dtype(DType::kBFloat16, kCpu));
}

}  // namespace
}  // namespace lockstep
