// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/dtype.h"

namespace lockstep::kernels::cuda {

enum class ConvPass : std::uint8_t { kForward, kData, kWeights };

/// One pass of a convolution, as a value: what plans are found by. Always two or three spatial dimensions: one
/// dimension is an image of height 1, over the same memory.
struct ConvProblem {
  static constexpr int kMaxSpatial = 3;

  /// `result` is the dtype of what the pass writes, `bias` whether the forward pass adds one.
  ConvProblem(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y,
              DType dtype, DType result, bool bias);

  ConvPass pass;
  int spatial;  ///< 2 or 3; only so many entries of the arrays below count, the others are 1 (padding: 0)
  std::int64_t images;
  std::int64_t channels;
  std::int64_t outputs;  ///< channels of y
  std::int64_t groups;
  std::array<std::int64_t, kMaxSpatial> in;      ///< x is [images, in..., channels]
  std::array<std::int64_t, kMaxSpatial> kernel;  ///< weight is [outputs, kernel..., channels / groups]
  std::array<std::int64_t, kMaxSpatial> out;     ///< y is [images, out..., outputs]
  std::array<std::int64_t, kMaxSpatial> stride;
  std::array<std::int64_t, kMaxSpatial> padding;
  std::array<std::int64_t, kMaxSpatial> dilation;
  DType dtype;  ///< of what the pass reads
  DType result;
  bool bias;
  bool tf32;

  friend auto operator<=>(const ConvProblem&, const ConvProblem&) = default;
};

/// The problem in one line: equal problems have equal keys, and no others.
std::string key_of(const ConvProblem& problem);

/// Addresses, 16-byte aligned.
struct ConvData {
  const void* first = nullptr;   ///< forward and weights: x; data: dy
  const void* second = nullptr;  ///< forward and data: weight; weights: dy
  const void* bias = nullptr;
  void* result = nullptr;
};

}  // namespace lockstep::kernels::cuda
