// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/resnet.h"

#include <algorithm>
#include <array>
#include <vector>

#include "model_zoo/blocks.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/checkpoint.h"

namespace lockstep::model_zoo {

namespace {

/// Convolutions with batch norm and a shortcut around them; addition and ReLU are fused into the last batch norm.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(std::int64_t in, std::int64_t width, std::int64_t stride, bool bottleneck, const ResnetOptions& options)
      : norm_options_(batch_norm_options(options)) {
    const bool zero_init = options.zero_init_residual;
    const std::int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      add_stage("0", in, width, 1, 1, 1.0);
      add_stage("1", width, width, 3, stride, 1.0);
      add_stage("2", width, out, 1, 1, zero_init ? 0.0 : 1.0);
    } else {
      add_stage("0", in, width, 3, stride, 1.0);
      add_stage("1", width, width, 3, 1, zero_init ? 0.0 : 1.0);
    }
    if (stride != 1 || in != out) {
      shortcut_conv_ = &add_module<nn::Conv>("shortcut_conv", in, out, conv_before_norm(1, stride));
      shortcut_norm_ = &add_module<nn::BatchNorm>("shortcut_norm", out, norm_options_);
    }
  }

  Tensor forward(const Tensor& x) override {
    const Tensor shortcut = shortcut_conv_ ? (*shortcut_norm_)((*shortcut_conv_)(x)) : x;
    Tensor y = x;
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      const Tensor residual = i + 1 == convs_.size() ? shortcut : Tensor();
      y = norms_[i]->call((*convs_[i])(y), [&](const Tensor& z) { return norms_[i]->forward(z, residual); });
    }
    return y;
  }

 private:
  void add_stage(const std::string& suffix, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                 double gamma) {
    convs_.push_back(&add_module<nn::Conv>("conv" + suffix, in, out, conv_before_norm(kernel, stride)));
    nn::BatchNormOptions options = norm_options_;
    options.relu = true;
    options.initial_gamma = gamma;
    norms_.push_back(&add_module<nn::BatchNorm>("norm" + suffix, out, options));
  }

  nn::BatchNormOptions norm_options_;
  std::vector<nn::Conv*> convs_;
  std::vector<nn::BatchNorm*> norms_;
  nn::Conv* shortcut_conv_ = nullptr;
  nn::BatchNorm* shortcut_norm_ = nullptr;
};

class Resnet : public nn::Sequential {
 public:
  explicit Resnet(bool checkpoint_activations) : checkpoint_activations_(checkpoint_activations) {}

 protected:
  Tensor run(nn::Module& module, const Tensor& x) override {
    const bool again = checkpoint_activations_ && dynamic_cast<const ResidualBlock*>(&module) != nullptr;
    return again ? nn::checkpoint(module, x) : module(x);
  }

 private:
  bool checkpoint_activations_;
};

struct Architecture {
  std::array<int, 4> blocks;
  bool bottleneck;
};

/// The architecture of a depth that problems_of() allows.
Architecture architecture_of(std::int64_t depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, false};
    case 34:
      return {{3, 4, 6, 3}, false};
    case 50:
      return {{3, 4, 6, 3}, true};
    case 101:
      return {{3, 4, 23, 3}, true};
    default:  // 152
      return {{3, 8, 36, 3}, true};
  }
}

}  // namespace

FieldProblems problems_of(const ResnetOptions& options) {
  constexpr std::array<std::int64_t, 5> kDepths{18, 34, 50, 101, 152};
  FieldChecks checks;
  const bool known = std::ranges::find(kDepths, options.depth) != kDepths.end();
  checks.check(known, "depth", "one of 18, 34, 50, 101, 152", static_cast<double>(options.depth));
  check_fields(options, checks);
  return checks.problems();
}

std::unique_ptr<nn::Module> make_model(const ResnetOptions& options, const ModelInput& input) {
  require_none(problems_of(options), "model.resnet");
  require_images(input, "model.resnet");
  const Architecture architecture = architecture_of(options.depth);
  auto net = std::make_unique<Resnet>(options.checkpoint_activations);
  std::int64_t width = options.width;
  nn::BatchNormOptions stem_norm = batch_norm_options(options);
  stem_norm.relu = true;
  if (options.stem == ResnetStem::kCifar) {
    net->add<nn::Conv>("stem_conv", input.sample_shape.back(), width, conv_before_norm(3, 1));
    net->add<nn::BatchNorm>("stem_norm", width, stem_norm);
  } else {
    net->add<nn::Conv>("stem_conv", input.sample_shape.back(), width, conv_before_norm(7, 2));
    net->add<nn::BatchNorm>("stem_norm", width, stem_norm);
    net->add<nn::Pool>("stem_pool", pool_geometry(ops::PoolKind::kMax, 3, 2, 1));
  }
  std::int64_t in = width;
  for (std::size_t stage = 0; stage < architecture.blocks.size(); ++stage) {
    for (int block = 0; block < architecture.blocks[stage]; ++block) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      net->add<ResidualBlock>("stage" + std::to_string(stage) + "_block" + std::to_string(block), in, width, stride,
                              architecture.bottleneck, options);
      in = architecture.bottleneck ? 4 * width : width;
    }
    width *= 2;
  }
  net->add<nn::GlobalAveragePool>("pool");
  net->add<nn::Linear>("classifier", in, input.outputs);
  return net;
}

}  // namespace lockstep::model_zoo
