// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::kernels::testing {

/// The device and the dtype of a test: a value of its parameter. As types they would have each test compiled once for
/// each.
struct On {
  Device device = kCpu;
  DType dtype = DType::kFloat32;
  bool tf32 = false;  ///< whether float32 products may round their operands to TF32
};

inline std::string name_of(const On& on) {
  return devices::name_of(on.device) + "_" + (on.tf32 ? "tf32" : std::string(lockstep::name_of(on.dtype)));
}
inline std::ostream& operator<<(std::ostream& out, const On& on) { return out << name_of(on); }

/// The last argument of INSTANTIATE_TEST_SUITE_P(On, ...). CTest picks a GPU's tests by these names.
inline std::string name_of_on(const ::testing::TestParamInfo<On>& info) { return name_of(info.param); }

/// For tests that no dtype concerns.
inline const auto kDevices = ::testing::ValuesIn(std::vector<On>{{kCpu}, {devices::kGpu}});

/// The dtypes that fast kernels take.
inline const auto kFastTypes = ::testing::ValuesIn(std::vector<On>{{kCpu, DType::kFloat32},
                                                                   {kCpu, DType::kFloat16},
                                                                   {kCpu, DType::kBFloat16},
                                                                   {devices::kGpu, DType::kFloat32},
                                                                   {devices::kGpu, DType::kFloat16},
                                                                   {devices::kGpu, DType::kBFloat16}});

/// The dtypes of operations: float64 too, which a GPU refuses.
inline const auto kAllTypes = ::testing::ValuesIn(std::vector<On>{{kCpu, DType::kFloat32},
                                                                  {kCpu, DType::kFloat16},
                                                                  {kCpu, DType::kBFloat16},
                                                                  {kCpu, DType::kFloat64},
                                                                  {devices::kGpu, DType::kFloat32},
                                                                  {devices::kGpu, DType::kFloat16},
                                                                  {devices::kGpu, DType::kBFloat16}});

/// The dtypes of matrix products and convolutions, TF32 on a GPU among them.
inline const auto kProductTypes = ::testing::ValuesIn(std::vector<On>{{kCpu, DType::kFloat32},
                                                                      {kCpu, DType::kFloat16},
                                                                      {kCpu, DType::kBFloat16},
                                                                      {kCpu, DType::kFloat64},
                                                                      {devices::kGpu, DType::kFloat32},
                                                                      {devices::kGpu, DType::kFloat32, true},
                                                                      {devices::kGpu, DType::kFloat16},
                                                                      {devices::kGpu, DType::kBFloat16}});

/// A test for each device and dtype of a list.
class TestOn : public ::testing::TestWithParam<On> {
 protected:
  static Device device() { return GetParam().device; }
  static DType dtype() { return GetParam().dtype; }
  /// The dtype of statistics and losses beside dtype().
  static DType wide() { return dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

  void SetUp() override {
    if (const auto reason = devices::why_skipped(device())) GTEST_SKIP() << *reason;
  }

  static Tensor random(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return random_tensor(shape, dtype(), seed, low, high);
  }
  static Tensor random_wide(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return random_tensor(shape, wide(), seed, low, high);
  }
};

}  // namespace lockstep::kernels::testing
