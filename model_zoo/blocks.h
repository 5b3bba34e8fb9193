// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "model_zoo/model_input.h"
#include "runtime/base/error.h"
#include "runtime/nn/layers.h"

namespace lockstep::model_zoo {

/// Throws FieldError unless samples are [H, W, C]. `path` is the model's in a job.
inline void require_images(const ModelInput& input, const std::string& path) {
  if (input.sample_shape.rank() == 3) return;
  throw FieldError(path, "needs samples [height, width, channels], the data has " + input.sample_shape.str());
}

/// A convolution whose padding keeps the extent at stride 1.
inline nn::ConvOptions conv_options(std::int64_t kernel, std::int64_t stride, int spatial_rank = 2) {
  nn::ConvOptions options;
  options.kernel = kernel;
  options.geometry.spatial_rank = spatial_rank;
  for (std::size_t d = 0; d < static_cast<std::size_t>(spatial_rank); ++d) {
    options.geometry.stride[d] = stride;
    options.geometry.padding[d] = kernel / 2;
  }
  return options;
}

/// The same before a batch norm, which subtracts the mean: without a bias. It starts as residual networks do.
inline nn::ConvOptions conv_before_norm(std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  nn::ConvOptions options = conv_options(kernel, stride);
  options.geometry.groups = groups;
  options.bias = false;
  options.kaiming_normal = true;
  return options;
}

/// Pooling of windows with equal extents.
inline ops::PoolGeometry pool_geometry(ops::PoolKind kind, std::int64_t window, std::int64_t stride,
                                       std::int64_t padding, int spatial_rank = 2) {
  ops::PoolGeometry geometry;
  geometry.kind = kind;
  geometry.spatial_rank = spatial_rank;
  for (std::size_t d = 0; d < static_cast<std::size_t>(spatial_rank); ++d) {
    geometry.window[d] = window;
    geometry.stride[d] = stride;
    geometry.padding[d] = padding;
  }
  return geometry;
}

/// The batch norm that the options of a model ask for.
template <class Options>
nn::BatchNormOptions batch_norm_options(const Options& options) {
  return {.momentum = options.batch_norm_momentum, .epsilon = options.batch_norm_epsilon};
}

/// Appends batch norm, unless there is none, and activation to `net`; ReLU is fused into the batch norm.
inline void add_norm_and_activation(nn::Sequential& net, const std::string& prefix, std::int64_t channels,
                                    std::optional<nn::BatchNormOptions> batch_norm, ops::Activation activation) {
  const bool fused = batch_norm && activation == ops::Activation::kRelu;
  if (batch_norm) {
    batch_norm->relu = fused;
    net.add<nn::BatchNorm>(prefix + "norm", channels, *batch_norm);
  }
  if (!fused) net.add<nn::Activation>(prefix + "activation", activation);
}

}  // namespace lockstep::model_zoo
