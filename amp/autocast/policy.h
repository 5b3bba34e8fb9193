// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::amp {

/// Every operation, for the policy table; a new operation is added here and the compiler then asks for its policy.
enum class Op : std::uint8_t {
  kLinear,
  kMatmul,
  kConv,
  kConvTranspose,
  kBatchNorm,
  kRelu,
  kGelu,
  kGeluTanh,
  kAdd,
  kMul,
  kScale,
  kMaxPool,
  kAveragePool,
  kGlobalAveragePool,
  kDropout,
  kReshape,
  kSoftmax,
  kLogSoftmax,
  kCrossEntropy,
  kMse,
  kMean,
  kSum,
};

enum class CastPolicy : std::uint8_t {
  kLowerPrecision,  ///< run in the autocast dtype
  kFloat32,         ///< run in float32
  kPromote,         ///< run in the widest input's dtype
  kNone,            ///< run in whatever comes in
};

/// PyTorch's CUDA lists; no operation here is treated otherwise.
CastPolicy policy_of(Op op);
std::string_view name_of(Op op);

}  // namespace lockstep::amp
