// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/nn/module.h"
#include "runtime/ops/normalization.h"

// Normalisation within a sample: no statistics are kept, and ranks exchange none. Parameters are named as PyTorch's.
// Parameters have the opt level's dtype of weights, as Apex's, which keeps batch norm alone in float32.

namespace lockstep::nn {

struct NormOptions {
  double epsilon = 1e-5;
  bool affine = true;  ///< weight, of ones at first
  bool bias = true;    ///< and bias, of zeros
};

/// Normalises over the last dimensions of x, which are `normalized_shape`: ops::layer_norm. Where one
/// linear layer alone reads the result, it may have that layer's dtype (NormResult::kForProducts).
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const NormOptions& options = {},
                     ops::NormResult result = ops::NormResult::kByPolicy);
  Tensor forward(const Tensor& x) override;

 private:
  Shape normalized_shape_;
  double epsilon_;
  ops::NormResult result_;
  Tensor weight_;
  Tensor bias_;
};

/// Normalises by the root mean square: ops::rms_norm.
class RmsNorm : public Module {
 public:
  explicit RmsNorm(const Shape& normalized_shape, std::optional<double> epsilon = {}, bool affine = true,
                   ops::NormResult result = ops::NormResult::kByPolicy);
  Tensor forward(const Tensor& x) override;

 private:
  Shape normalized_shape_;
  std::optional<double> epsilon_;
  ops::NormResult result_;
  Tensor weight_;
};

/// x [N, spatial..., C] in groups of channels: ops::group_norm. Throws ShapeError unless `groups` divides `channels`.
class GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t groups, std::int64_t channels, const NormOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  std::int64_t groups_;
  double epsilon_;
  Tensor weight_;
  Tensor bias_;
};

/// x [N, spatial..., C] by channel: ops::instance_norm. Without parameters unless asked for, as PyTorch's; running
/// statistics there are none.
class InstanceNorm : public Module {
 public:
  explicit InstanceNorm(std::int64_t channels, const NormOptions& options = {.affine = false});
  Tensor forward(const Tensor& x) override;

 private:
  double epsilon_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace lockstep::nn
