// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/gpu.h"
#include "runtime/tensor/stream.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

/// The widest access of our own and cuDNN's kernels, and of those that add a bias, in bytes.
inline constexpr int kAlignment = 16;
/// The largest alignment that cuBLASLt distinguishes, in bytes. Memory of the allocator and an arena's parameters have
/// at least this one.
inline constexpr int kFullAlignment = 256;

/// The largest power of two, up to `limit`, that divides the address of the tensor's first element.
inline int alignment_of(const Tensor& tensor, int limit = kAlignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data()) | static_cast<std::uintptr_t>(limit);
  return static_cast<int>(address & (~address + 1));
}

/// Whether engines can read and write the tensor in wide accesses.
inline bool is_aligned(const Tensor& tensor) { return alignment_of(tensor) == kAlignment; }

/// The tensor, or a copy that is_aligned().
inline Tensor aligned(const Tensor& tensor) {
  if (!tensor.defined() || is_aligned(tensor)) return tensor;
  Tensor copy = Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
  gpu::copy(copy.data(), tensor.data(), tensor.bytes(), Stream::current(tensor.device()));
  return copy;
}

}  // namespace lockstep::kernels::cuda
