// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/sliding_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/nn/forward.h"

namespace lockstep::train {

namespace {

constexpr std::int64_t kVoxelsAtOnce = std::int64_t{1} << 19;
/// MONAI's: a weight of 0 would leave a voxel without an answer.
constexpr float kLeastWeight = 1e-3f;

/// Of the three dimensions in space.
using Place = std::array<std::int64_t, 3>;

Place place_of(const Shape& shape) { return {shape[0], shape[1], shape[2]}; }

void require_sound(const Tensor& volume, const Shape& patch, const SlidingWindowOptions& options) {
  require_defined(volume, "sliding_window", "the volume");
  if (volume.shape().rank() != 4 || volume.dtype() != DType::kFloat32 || volume.device() != kCpu) {
    throw ShapeError("sliding_window: expected a volume [D, H, W, C] of float32 on the CPU, found " + describe(volume));
  }
  if (volume.numel() == 0) throw ShapeError("sliding_window: the volume " + volume.shape().str() + " has no voxels");
  if (patch.rank() != 3 || patch.numel() < 1) {
    throw ShapeError("sliding_window: expected a patch [D, H, W] of extents >= 1, found " + patch.str());
  }
  if (!(options.overlap >= 0 && options.overlap < 1)) {
    throw UsageError(fmt::format("sliding_window: the overlap must be >= 0 and < 1, is {}", options.overlap));
  }
  if (!(options.sigma_scale > 0 && std::isfinite(options.sigma_scale))) {
    throw UsageError(fmt::format("sliding_window: sigma_scale must be > 0, is {}", options.sigma_scale));
  }
  if (options.batch < 0) {
    throw UsageError(fmt::format("sliding_window: the batch must be >= 0, is {}", options.batch));
  }
}

/// Sums of weighted answers to the windows of one volume, and of their weights.
class Blend {
 public:
  Blend(const Tensor& volume, const Shape& patch, const SlidingWindowOptions& options)
      : volume_(volume),
        extents_(place_of(volume.shape())),
        patch_(place_of(patch)),
        weights_(window_weights(patch, options)) {
    std::array<std::vector<std::int64_t>, 3> starts;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t padding = std::max<std::int64_t>(patch_[d] - extents_[d], 0);
      starts[d] = window_starts(extents_[d] + padding, patch_[d], options.overlap);
      for (std::int64_t& start : starts[d]) start -= padding / 2;
    }
    for (const std::int64_t z : starts[0]) {
      for (const std::int64_t y : starts[1]) {
        for (const std::int64_t x : starts[2]) windows_.push_back({z, y, x});
      }
    }
    weight_sums_.resize(static_cast<std::size_t>(volume.numel() / volume.size(3)));
  }

  std::size_t windows() const { return windows_.size(); }

  /// Copies a window; what lies outside the volume stays as it is.
  void cut(std::size_t window, std::span<float> out) const {
    const auto channels = static_cast<std::size_t>(volume_.size(3));
    const auto voxels = volume_.as<float>();
    for_each_row(window, [&](std::size_t inside, std::size_t in_volume, std::size_t count) {
      std::ranges::copy(voxels.subspan(in_volume * channels, count * channels),
                        out.begin() + static_cast<std::ptrdiff_t>(inside * channels));
    });
  }

  /// `answer`: [D, H, W, channels] of the window.
  void add(std::size_t window, std::span<const float> answer, std::size_t channels) {
    if (!sums_.defined()) {
      sums_ = Tensor::zeros(volume_.shape().with(3, static_cast<std::int64_t>(channels)), DType::kFloat32);
    }
    const auto sums = sums_.mutable_as<float>();
    for_each_row(window, [&](std::size_t inside, std::size_t in_volume, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        const float weight = weights_[inside + i];
        const auto from = answer.subspan((inside + i) * channels, channels);
        const auto to = sums.subspan((in_volume + i) * channels, channels);
        for (std::size_t c = 0; c < channels; ++c) to[c] += weight * from[c];
        weight_sums_[in_volume + i] += weight;
      }
    });
  }

  Tensor mean() {
    const auto channels = static_cast<std::size_t>(sums_.size(3));
    const auto sums = sums_.mutable_as<float>();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= weight_sums_[i / channels];
    return sums_;
  }

 private:
  /// Calls `visit` for each row of a window, as far as it lies in the volume, with the place of its first voxel in the
  /// window and in the volume, and the number of its voxels.
  template <class Visit>
  void for_each_row(std::size_t window, const Visit& visit) const {
    const Place& begin = windows_[window];
    Place from{}, to{};
    for (std::size_t d = 0; d < 3; ++d) {
      from[d] = std::max<std::int64_t>(-begin[d], 0);
      to[d] = std::min(patch_[d], extents_[d] - begin[d]);
    }
    const auto index = [](const Place& at, const Place& extents) {
      return static_cast<std::size_t>((at[0] * extents[1] + at[1]) * extents[2] + at[2]);
    };
    for (std::int64_t z = from[0]; z < to[0]; ++z) {
      for (std::int64_t y = from[1]; y < to[1]; ++y) {
        visit(index({z, y, from[2]}, patch_), index({begin[0] + z, begin[1] + y, begin[2] + from[2]}, extents_),
              static_cast<std::size_t>(to[2] - from[2]));
      }
    }
  }

  const Tensor& volume_;
  Place extents_;
  Place patch_;
  std::vector<float> weights_;
  std::vector<Place> windows_;  ///< where each begins in the volume; below 0 in the padding
  std::vector<float> weight_sums_;
  Tensor sums_;
};

/// The channels of an answer to n windows of this patch.
std::size_t channels_of(const Tensor& answer, const Shape& windows) {
  const Shape& shape = answer.shape();
  const bool fits = (shape.rank() == 4 || shape.rank() == 5) &&
                    std::ranges::equal(shape.extents().first(4), windows.extents().first(4));
  if (fits) return static_cast<std::size_t>(shape.rank() == 5 ? shape[4] : 1);
  throw ShapeError(fmt::format("sliding_window: the model answers {} to windows {}: expected an answer for each voxel",
                               shape.str(), windows.str()));
}

}  // namespace

std::vector<std::int64_t> window_starts(std::int64_t extent, std::int64_t patch, double overlap) {
  const auto step = std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(patch) * (1 - overlap)), 1);
  std::vector<std::int64_t> starts;
  for (std::int64_t start = 0; start + patch < extent; start += step) starts.push_back(start);
  starts.push_back(extent - patch);
  return starts;
}

std::vector<float> window_weights(const Shape& patch, const SlidingWindowOptions& options) {
  std::vector<float> weights(static_cast<std::size_t>(patch.numel()), 1.0f);
  if (options.weights == WindowWeights::kConstant) return weights;
  std::array<std::vector<float>, 3> curves;
  for (int d = 0; d < 3; ++d) {
    const auto sigma = static_cast<float>(static_cast<double>(patch[d]) * options.sigma_scale);
    for (std::int64_t i = 0; i < patch[d]; ++i) {
      const float x = static_cast<float>(i) - static_cast<float>(patch[d] - 1) / 2;
      curves[static_cast<std::size_t>(d)].push_back(std::exp(x * x / (-2 * sigma * sigma)));
    }
  }
  auto weight = weights.begin();
  for (const float z : curves[0]) {
    for (const float y : curves[1]) {
      for (const float x : curves[2]) *weight++ = z * y * x;
    }
  }
  const float least = std::max(*std::ranges::min_element(weights), kLeastWeight);
  for (float& each : weights) each = std::max(each, least);
  return weights;
}

Tensor sliding_window(const WindowModel& model, const Tensor& volume, const Shape& patch,
                      const SlidingWindowOptions& options) {
  require_sound(volume, patch, options);
  Blend blend(volume, patch, options);
  const std::int64_t fitting = std::max<std::int64_t>(kVoxelsAtOnce / patch.numel(), 1);
  const auto batch = static_cast<std::size_t>(options.batch > 0 ? options.batch : fitting);
  const Shape window_shape{patch[0], patch[1], patch[2], volume.size(3)};
  for (std::size_t first = 0; first < blend.windows(); first += batch) {
    const std::size_t count = std::min(batch, blend.windows() - first);
    const Tensor windows = Tensor::zeros(window_shape.batched(static_cast<std::int64_t>(count)), DType::kFloat32);
    const auto size = static_cast<std::size_t>(window_shape.numel());
    for (std::size_t i = 0; i < count; ++i) {
      blend.cut(first + i, windows.mutable_as<float>().subspan(i * size, size));
    }
    // Under autocast a model may end in 16 bits.
    const Tensor answers = model(windows.to(options.device)).detach().to(kCpu).to(DType::kFloat32);
    const std::size_t channels = channels_of(answers, windows.shape());
    const std::size_t answer_size = static_cast<std::size_t>(patch.numel()) * channels;
    for (std::size_t i = 0; i < count; ++i) {
      blend.add(first + i, answers.as<float>().subspan(i * answer_size, answer_size), channels);
    }
  }
  return blend.mean();
}

Tensor sliding_window(nn::Module& model, const Tensor& volume, const Shape& patch,
                      const SlidingWindowOptions& options) {
  const autograd::NoGrad no_grad;
  return sliding_window([&model](const Tensor& windows) { return nn::forward(model, windows); }, volume, patch,
                        options);
}

}  // namespace lockstep::train
