// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mobilenet_v2.h"

#include <utility>

#include "model_zoo/blocks.h"
#include "runtime/base/option_checks.h"
#include "runtime/ops/unary.h"

namespace lockstep::model_zoo {

namespace {

constexpr const char* kMobilenetPath = "model.mobilenet_v2";

/// Blocks with the same output, as table 2 of the paper lists them.
struct BlockGroup {
  std::int64_t expansion;  ///< of the channels within a block
  std::int64_t channels;
  int blocks;
  std::int64_t stride;  ///< of the first one
};
constexpr BlockGroup kBlockGroups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                       {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr std::int64_t kStemChannels = 32, kLastChannels = 1280;

/// The nearest multiple of 8 that is not below nine tenths of `channels`, and at least 8.
std::int64_t multiple_of_8(double channels) {
  std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  if (static_cast<double>(rounded) < 0.9 * channels) rounded += 8;
  return rounded;
}

/// min(x, 6) of what is not negative. Where x is exactly 6 the gradient passes, as that of PyTorch's clamp; relu6's
/// does not.
class AtMost6 : public nn::Module {
 public:
  Tensor forward(const Tensor& x) override { return ops::clamp(x, 0, 6); }
};

class ConvNormRelu6 : public nn::Sequential {
 public:
  ConvNormRelu6(std::int64_t in, std::int64_t out, const nn::ConvOptions& conv, nn::BatchNormOptions norm) {
    norm.relu = true;
    add<nn::Conv>("0", in, out, conv);
    add<nn::BatchNorm>("1", out, norm);
    add<AtMost6>("2");
  }
};

/// A convolution of each channel by itself in the middle of a block, which has `expansion` times the block's channels.
class InvertedLayers : public nn::Module {
 public:
  InvertedLayers(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t expansion,
                 const nn::BatchNormOptions& norm) {
    const std::int64_t wide = in * expansion;
    int number = 0;
    const auto next = [&number] { return std::to_string(number++); };
    if (expansion != 1) widen_ = &add_module<ConvNormRelu6>(next(), in, wide, conv_before_norm(1, 1), norm);
    depthwise_ = &add_module<ConvNormRelu6>(next(), wide, wide, conv_before_norm(3, stride, wide), norm);
    narrow_ = &add_module<nn::Conv>(next(), wide, out, conv_before_norm(1, 1));
    norm_ = &add_module<nn::BatchNorm>(next(), out, norm);
  }

  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  /// The last batch norm adds `residual`, which may be undefined, in the same pass.
  Tensor forward(const Tensor& x, const Tensor& residual) {
    const Tensor wide = widen_ != nullptr ? (*widen_)(x) : x;
    return norm_->call((*narrow_)((*depthwise_)(wide)), [&](const Tensor& z) { return norm_->forward(z, residual); });
  }

 private:
  nn::Module* widen_ = nullptr;
  nn::Module* depthwise_ = nullptr;
  nn::Module* narrow_ = nullptr;
  nn::BatchNorm* norm_ = nullptr;
};

/// The block's input is added where shapes allow it.
class InvertedResidual : public nn::Module {
 public:
  InvertedResidual(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t expansion,
                   const nn::BatchNormOptions& norm)
      : adds_input_(stride == 1 && in == out),
        layers_(add_module<InvertedLayers>("conv", in, out, stride, expansion, norm)) {}

  Tensor forward(const Tensor& x) override {
    return layers_.call(x, [&](const Tensor& z) { return layers_.forward(z, adds_input_ ? z : Tensor()); });
  }

 private:
  bool adds_input_;
  InvertedLayers& layers_;
};

/// torchvision's initial values: those of the classifier; convolutions have theirs.
nn::Initializer mobilenet_initializer(const nn::Parameter& parameter) {
  if (parameter.name == "classifier.1.weight") return nn::Initializer::normal(0.01);
  if (parameter.name == "classifier.1.bias") return nn::Initializer::constant(0);
  return parameter.initializer;
}

}  // namespace

FieldProblems problems_of(const MobilenetV2Options& options) {
  FieldChecks checks;
  check_fields(options, checks);
  return checks.problems();
}

std::unique_ptr<nn::Module> make_model(const MobilenetV2Options& options, const ModelInput& input) {
  require_none(problems_of(options), kMobilenetPath);
  require_images(input, kMobilenetPath);
  const nn::BatchNormOptions norm = batch_norm_options(options);
  const auto scaled = [&options](std::int64_t channels) {
    return multiple_of_8(static_cast<double>(channels) * options.width);
  };
  int strides_left_out = options.small_images ? 2 : 0;
  const auto stride_of = [&strides_left_out](std::int64_t stride) {
    return stride == 2 && strides_left_out-- > 0 ? std::int64_t{1} : stride;
  };

  auto net = std::make_unique<nn::Sequential>();
  auto& features = net->add<nn::Sequential>("features");
  int number = 0;
  std::int64_t in = scaled(kStemChannels);
  features.add<ConvNormRelu6>(std::to_string(number++), input.sample_shape.back(), in,
                              conv_before_norm(3, stride_of(2)), norm);
  for (const BlockGroup& group : kBlockGroups) {
    for (int block = 0; block < group.blocks; ++block) {
      const std::int64_t out = scaled(group.channels), stride = block == 0 ? stride_of(group.stride) : 1;
      features.add<InvertedResidual>(std::to_string(number++), in, out, stride, group.expansion, norm);
      in = out;
    }
  }
  const std::int64_t last = multiple_of_8(static_cast<double>(kLastChannels) * std::max(1.0, options.width));
  features.add<ConvNormRelu6>(std::to_string(number), in, last, conv_before_norm(1, 1), norm);
  net->add<nn::GlobalAveragePool>("pool");
  auto& classifier = net->add<nn::Sequential>("classifier");
  classifier.add<nn::Dropout>("0", options.dropout);
  classifier.add<nn::Linear>("1", last, input.outputs);
  net->choose_initializers(mobilenet_initializer);
  return net;
}

}  // namespace lockstep::model_zoo
