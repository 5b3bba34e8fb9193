// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/tensor/dtype.h"
#include "tests/support/devices.h"

namespace lockstep::kernels::testing {

/// A device type and a dtype that a typed test runs with; TF32: whether float32 products may round their operands to
/// it.
template <DeviceType device_type, DType element, bool tf32 = false>
struct On {
  static constexpr Device device{device_type, 0};
  static constexpr DType dtype = element;
  static constexpr bool kTf32 = tf32;
};

inline constexpr DeviceType kCpuType = DeviceType::kCpu;
inline constexpr DeviceType kCudaType = DeviceType::kCuda;

/// The dtypes that fast kernels take.
using FastTypes =
    ::testing::Types<On<kCpuType, DType::kFloat32>, On<kCpuType, DType::kFloat16>, On<kCpuType, DType::kBFloat16>,
                     On<kCudaType, DType::kFloat32>, On<kCudaType, DType::kFloat16>, On<kCudaType, DType::kBFloat16>>;

/// And float64, which a GPU refuses.
using AllTypes =
    ::testing::Types<On<kCpuType, DType::kFloat32>, On<kCpuType, DType::kFloat16>, On<kCpuType, DType::kBFloat16>,
                     On<kCpuType, DType::kFloat64>, On<kCudaType, DType::kFloat32>, On<kCudaType, DType::kFloat16>,
                     On<kCudaType, DType::kBFloat16>>;

/// What libraries multiply.
using ProductTypes = ::testing::Types<On<kCpuType, DType::kFloat32>, On<kCpuType, DType::kFloat16>,
                                      On<kCpuType, DType::kBFloat16>, On<kCpuType, DType::kFloat64>,
                                      On<kCudaType, DType::kFloat32>, On<kCudaType, DType::kFloat32, true>,
                                      On<kCudaType, DType::kFloat16>, On<kCudaType, DType::kBFloat16>>;

struct OnName {
  template <class T>
  static std::string GetName(int) {
    return lockstep::devices::name_of(T::device) + "_" + (T::kTf32 ? "tf32" : std::string(lockstep::name_of(T::dtype)));
  }
};

}  // namespace lockstep::kernels::testing
