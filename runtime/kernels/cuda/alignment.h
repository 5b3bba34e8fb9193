// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

/// The widest access of cuBLASLt's and cuDNN's kernels, in bytes.
inline constexpr int kAlignment = 16;

/// The largest power of two, up to kAlignment, that divides the address of the tensor's first element.
inline int alignment_of(const Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data()) | kAlignment;
  return static_cast<int>(address & (~address + 1));
}

}  // namespace lockstep::kernels::cuda
