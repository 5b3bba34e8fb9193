// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/unet.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model_zoo/blocks.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/upsample.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/shape.h"

namespace lockstep::model_zoo {

namespace {

template <int kRank>
std::string path_of(const UnetOptions<kRank>&) {
  return "model." + std::string(UnetOptions<kRank>::kKind);
}

/// How many numbers answer to a pixel or voxel. Throws FieldError for data without a target for each.
template <int kRank>
std::int64_t outputs_of(const UnetOptions<kRank>& options, const ModelInput& input) {
  const Shape& sample = input.sample_shape;
  const Shape& target = input.target_shape;
  bool fits = input.vocabulary == 0 && sample.rank() == kRank + 1 && target.rank() >= kRank;
  for (int d = 0; fits && d < kRank; ++d) fits = sample[d] == target[d];
  if (fits && target.rank() == kRank) return input.classes > 0 ? input.classes : 1;
  if (fits && target.rank() == kRank + 1 && input.classes == 0) return target.back();
  throw FieldError(path_of(options),
                   fmt::format("needs samples {} with a target a {}, the data has samples {} and targets {}",
                               kRank == 2 ? "[height, width, channels]" : "[depth, height, width, channels]",
                               kRank == 2 ? "pixel" : "voxel", sample.str(), target.str()));
}

template <int kRank>
void require_extents(const UnetOptions<kRank>& options, const Shape& sample) {
  const std::int64_t multiple = std::int64_t{1} << options.levels;
  std::int64_t lowest = 1;
  for (int d = 0; d < kRank; ++d) {
    lowest *= sample[d] / multiple;
    if (sample[d] % multiple == 0) continue;
    throw FieldError(path_of(options) + ".levels",
                     fmt::format("{} levels need extents that are multiples of {}, samples have the shape {}",
                                 options.levels, multiple, sample.str()),
                     kRank == 2 ? "Take fewer levels, or another size of the samples."
                                : "Take fewer levels, or windows of other extents with data.augment.patch.");
  }
  if (options.norm != UnetNorm::kInstance || lowest > 1) return;
  throw FieldError(path_of(options) + ".norm",
                   fmt::format("INSTANCE needs more than one {} on the lowest level; samples have the shape {} and {} "
                               "levels",
                               kRank == 2 ? "pixel" : "voxel", sample.str(), options.levels),
                   "Take fewer levels, or another norm.");
}

template <int kRank>
void add_norm(nn::Sequential& net, const std::string& prefix, std::int64_t channels,
              const UnetOptions<kRank>& options) {
  if (options.norm == UnetNorm::kBatch) {
    return add_norm_and_activation(net, prefix, channels, batch_norm_options(options), options.activation);
  }
  if (options.norm == UnetNorm::kInstance) {
    net.add<nn::InstanceNorm>(prefix + "norm", channels, nn::NormOptions());
  } else {
    net.add<nn::GroupNorm>(prefix + "norm", options.groups, channels);
  }
  net.add<nn::Activation>(prefix + "activation", options.activation);
}

/// The convolutions of a level, on the way down or up, each with its norm and activation.
class Level : public nn::Sequential {
 public:
  template <int kRank>
  Level(std::int64_t in, std::int64_t out, const UnetOptions<kRank>& options) {
    for (std::int64_t i = 0; i < options.convolutions; ++i) {
      const std::string prefix = "stage" + std::to_string(i) + "_";
      nn::ConvOptions conv = conv_options(3, 1, kRank);
      // Batch and instance norm subtract the mean of each channel: a bias before them would be lost.
      conv.bias = options.norm == UnetNorm::kGroup;
      add<nn::Conv>(prefix + "conv", i == 0 ? in : out, out, conv);
      add_norm(*this, prefix, out, options);
    }
  }
};

/// [N, spatial..., in] -> [N, 2 spatial..., out]
class Up : public nn::Sequential {
 public:
  Up(std::int64_t in, std::int64_t out, UnetUp kind, int rank) {
    if (kind != UnetUp::kTransposed) {
      // Both are linear, and the convolution costs a quarter, or an eighth, before the interpolation.
      add<nn::Conv>("conv", in, out, conv_options(1, 1, rank));
      add<nn::Upsample>("upsample", std::vector<double>{2.0}, ops::UpsampleMode::kLinear);
      return;
    }
    nn::ConvOptions options = conv_options(2, 2, rank);
    options.geometry.padding = {};
    add<nn::ConvTranspose>("conv", in, out, options);
  }
};

class Unet : public nn::Module {
 public:
  template <int kRank>
  Unet(const UnetOptions<kRank>& options, const ModelInput& input)
      : checkpoint_activations_(options.checkpoint_activations),
        drops_last_(input.classes == 0 && input.target_shape.rank() == kRank),
        pool_(pool_geometry(ops::PoolKind::kMax, 2, 2, 0, kRank)) {
    std::int64_t in = input.sample_shape.back();
    std::int64_t channels = options.channels;
    for (std::int64_t level = 0; level < options.levels; ++level) {
      down_.push_back(&add_module<Level>("down" + std::to_string(level), in, channels, options));
      in = channels;
      channels *= 2;
    }
    bottom_ = &add_module<Level>("bottom", in, channels, options);
    for (std::int64_t level = options.levels - 1; level >= 0; --level) {
      const std::string suffix = std::to_string(level);
      double_.push_back(&add_module<Up>("double" + suffix, channels, channels / 2, options.up, kRank));
      channels /= 2;
      up_.push_back(&add_module<Level>("up" + suffix, 2 * channels, channels, options));
    }
    head_ = &add_module<nn::Conv>("head", channels, outputs_of(options, input), conv_options(1, 1, kRank));
  }

  Tensor forward(const Tensor& x) override {
    std::vector<Tensor> skipped;
    Tensor y = x;
    for (Level* const level : down_) {
      skipped.push_back(run(*level, y));
      y = ops::pool(skipped.back(), pool_);
    }
    y = run(*bottom_, y);
    for (std::size_t i = 0; i < up_.size(); ++i) {
      y = run(*up_[i], ops::cat({skipped.back(), (*double_[i])(y)}, -1));
      skipped.pop_back();
    }
    y = (*head_)(y);
    return drops_last_ ? ops::reshape(y, Shape(y.shape().extents().first(y.shape().extents().size() - 1))) : y;
  }

 private:
  Tensor run(Level& level, const Tensor& x) const {
    return checkpoint_activations_ ? nn::checkpoint(level, x) : level(x);
  }

  bool checkpoint_activations_;
  bool drops_last_;  ///< the answer has no dimension of channels
  ops::PoolGeometry pool_;
  std::vector<Level*> down_;
  Level* bottom_ = nullptr;
  std::vector<Up*> double_;  ///< from the lowest level on
  std::vector<Level*> up_;
  nn::Conv* head_ = nullptr;
};

template <int kRank>
FieldProblems problems_in(const UnetOptions<kRank>& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.norm == UnetNorm::kGroup && options.channels >= 1 && options.groups >= 1) {
    checks.check(options.channels % options.groups == 0, "groups", "a divisor of channels",
                 static_cast<double>(options.groups), {"channels"});
  }
  if (options.up == (kRank == 2 ? UnetUp::kTrilinear : UnetUp::kBilinear)) {
    checks.error("up", kRank == 2 ? "TRILINEAR is for volumes; images have BILINEAR"
                                  : "BILINEAR is for images; volumes have TRILINEAR");
  }
  return checks.problems();
}

template <int kRank>
std::unique_ptr<nn::Module> make_unet(const UnetOptions<kRank>& options, const ModelInput& input) {
  require_none(problems_in(options), path_of(options));
  outputs_of(options, input);
  require_extents(options, input.sample_shape);
  return std::make_unique<Unet>(options, input);
}

}  // namespace

FieldProblems problems_of(const Unet2dOptions& options) { return problems_in(options); }
FieldProblems problems_of(const Unet3dOptions& options) { return problems_in(options); }

std::unique_ptr<nn::Module> make_model(const Unet2dOptions& options, const ModelInput& input) {
  return make_unet(options, input);
}
std::unique_ptr<nn::Module> make_model(const Unet3dOptions& options, const ModelInput& input) {
  return make_unet(options, input);
}

}  // namespace lockstep::model_zoo
