// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/nn/module.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::train {

/// How much of a window's answer counts, by its place in the window.
enum class WindowWeights {
  kConstant,  ///< all alike
  kGaussian,  ///< most in the middle, where the model sees most of the surroundings
};

/// The options of MONAI's sliding_window_inference that change numbers, with its defaults.
struct SlidingWindowOptions {
  double overlap = 0.25;  ///< share of a window that the next one covers again; in [0, 1)
  WindowWeights weights = WindowWeights::kConstant;
  double sigma_scale = 0.125;  ///< a Gaussian's standard deviation is this times the window's extent; > 0
  /// Windows of a forward pass; 0: as many as hold 2^19 voxels together, and at least one. It follows from the patch
  /// alone: another batch may round otherwise.
  std::int64_t batch = 0;
  Device device = kCpu;  ///< where the model computes
};

/// What a model answers to windows: [n, D, H, W, C] float32 on `device` -> [n, D, H, W] or [n, D, H, W, K], of any
/// floating dtype on any device.
using WindowModel = std::function<Tensor(const Tensor& windows)>;

/// Where windows of `patch` begin along a dimension of `extent` >= patch: every max(1, floor(patch (1 - overlap))), and
/// the last one where it ends with the volume.
std::vector<std::int64_t> window_starts(std::int64_t extent, std::int64_t patch, double overlap);

/// The weights of a window's voxels, [D, H, W] row-major: 1 each, or the product of exp(-x^2 / (2 sigma^2)) over the
/// dimensions, x being the distance from the middle and sigma = sigma_scale times the extent; at least 0.001, or the
/// least product where that is more.
std::vector<float> window_weights(const Shape& patch, const SlidingWindowOptions& options);

/// What a model of windows answers to a whole volume: [D, H, W, C] float32 on the CPU -> [D, H, W, K], K being 1 where
/// its answers have no channels. Each voxel's answer is the mean over the windows that hold it, by their weights, in
/// float32 and in the order of the windows. Answers are averaged as they come: logits, of a model of this project. A
/// volume that is smaller than the patch [D, H, W] has zeros around it, half of them on either side. The same bits for
/// the same volume, wherever and in whatever company it is predicted.
///
/// MONAI's sliding_window_inference (Apache-2.0, monai/inferers/utils.py) defines windows, weights and padding.
/// Throws UsageError for options without a meaning, ShapeError for other shapes, and what the model throws.
Tensor sliding_window(const WindowModel& model, const Tensor& volume, const Shape& patch,
                      const SlidingWindowOptions& options = {});

/// The same of a module, which runs without gradients, in the mode that it is in, at its opt level (nn::forward).
Tensor sliding_window(nn::Module& model, const Tensor& volume, const Shape& patch,
                      const SlidingWindowOptions& options = {});

}  // namespace lockstep::train
