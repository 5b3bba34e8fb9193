// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tensor/tensor.h"

// The loops read and write contiguous elements. Their dtype is known at run time.

namespace lockstep::kernels::cpu {

/// Elements of float32, float16, bfloat16 or, for an operand of a ternary function, bool that a loop reads.
struct Input {
  const void* data;
  DType dtype;

  Input from(std::int64_t element) const {
    return {static_cast<const std::byte*>(data) + static_cast<std::size_t>(element) * size_of(dtype), dtype};
  }
};

/// A result as large as this, and what it is made of, is more than a third-level cache keeps until its reader comes.
/// A loop that stores it past the caches saves reading its lines first, and leaves the inputs where they are.
inline constexpr std::size_t kBytesPastCaches = std::size_t{8} << 20;

/// Elements that a loop writes, also bool where the function is a comparison. They may be those of an input, element
/// for element.
struct Output {
  void* data;
  DType dtype;
  bool past_caches = false;  ///< for loops that store in either way; the results are the same

  Output from(std::int64_t element) const {
    return {static_cast<std::byte*>(data) + static_cast<std::size_t>(element) * size_of(dtype), dtype, past_caches};
  }
};

/// An undefined tensor gives null data.
inline Input input(const Tensor& tensor) {
  return tensor.defined() ? Input{tensor.data(), tensor.dtype()} : Input{nullptr, DType::kFloat32};
}
inline Output output(const Tensor& tensor) {
  if (!tensor.defined()) return {nullptr, DType::kFloat32};
  const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
  return {tensor.data(), tensor.dtype(), bytes >= kBytesPastCaches};
}

}  // namespace lockstep::kernels::cpu
