// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/gpu_dtypes.h"

#include <array>
#include <atomic>

#include "runtime/base/error.h"

namespace lockstep::gpu {

std::string why_no_dtype(DType dtype, Device device, const Description& gpu) {
  const int capability = gpu.compute_capability;
  if (dtype != DType::kBFloat16 || capability >= kBFloat16TensorCores) return {};
  return "bfloat16 needs a GPU of compute capability 8.0 or newer; " + str(device) + ", " + gpu.name + ", has " +
         std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

void require_dtype(DType dtype, Device device) {
  if (dtype != DType::kBFloat16 || device.type != DeviceType::kCuda) return;
  static std::array<std::atomic<bool>, 64> known;  // devices that have it
  const auto index = static_cast<std::size_t>(device.index);
  if (index < known.size() && known[index].load(std::memory_order_relaxed)) return;
  const std::string why = why_no_dtype(dtype, device, describe(device));
  if (!why.empty()) throw EnvironmentError(why, "Use float16 there.");
  if (index < known.size()) known[index].store(true, std::memory_order_relaxed);
}

}  // namespace lockstep::gpu
