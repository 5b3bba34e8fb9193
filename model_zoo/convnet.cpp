// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/convnet.h"

#include <fmt/format.h>

#include "model_zoo/blocks.h"
#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

namespace {

/// The shape behind an operation on `input`; where it does not fit, the option at `path` is what is wrong.
template <class F>
Shape shape_behind(const std::string& path, const Shape& input, F&& output_shape) {
  try {
    return output_shape();
  } catch (const ShapeError& error) {
    throw FieldError(path, "does not fit its input " + input.str() + ": " + error.what());
  }
}

/// Appends block i; `shape` is that of a batch of one sample, [1, H, W, C], before and then behind it.
void add_block(nn::Sequential& net, const ConvnetOptions& model, std::size_t i, Shape& shape) {
  const ConvBlockOptions& block = model.blocks[i];
  const std::string prefix = "block" + std::to_string(i) + "_";
  const std::string path = "model.convnet.block[" + std::to_string(i) + "]";
  const std::int64_t channels = block.channels;
  nn::ConvOptions options = conv_options(block.kernel, block.stride);
  options.bias = !block.batch_norm;  // batch norm subtracts the mean, a bias before it would be lost
  const Shape weight{channels, options.kernel, options.kernel, shape.back()};
  net.add<nn::Conv>(prefix + "conv", shape.back(), channels, options);
  shape = shape_behind(path, shape, [&] { return kernels::conv_output_shape(shape, weight, options.geometry); });
  std::optional<nn::BatchNormOptions> norm;
  if (block.batch_norm) norm = batch_norm_options(model);
  add_norm_and_activation(net, prefix, channels, norm, block.activation);
  if (block.max_pool > 0) {
    const auto pool = pool_geometry(ops::PoolKind::kMax, block.max_pool, block.max_pool, 0);
    net.add<nn::Pool>(prefix + "pool", pool);
    shape = shape_behind(path + ".max_pool", shape, [&] { return kernels::pool_output_shape(shape, pool); });
  }
  if (block.dropout > 0) net.add<nn::Dropout>(prefix + "dropout", block.dropout);
}

}  // namespace

FieldProblems problems_of(const ConvnetOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  for (std::size_t i = 0; i < options.blocks.size(); ++i) {
    const std::int64_t kernel = options.blocks[i].kernel;
    checks.check(kernel >= 1 && kernel % 2 == 1, fmt::format("block[{}].kernel", i), "odd",
                 static_cast<double>(kernel));
  }
  return checks.problems();
}

std::unique_ptr<nn::Module> make_model(const ConvnetOptions& options, const ModelInput& input) {
  require_none(problems_of(options), "model.convnet");
  require_images(input, "model.convnet");
  auto net = std::make_unique<nn::Sequential>();
  Shape shape{1, input.sample_shape[0], input.sample_shape[1], input.sample_shape[2]};
  for (std::size_t i = 0; i < options.blocks.size(); ++i) add_block(*net, options, i, shape);
  const bool global = options.head_pool == HeadPool::kGlobalAverage;
  if (global) {
    net->add<nn::GlobalAveragePool>("head_pool");
  } else {
    net->add<nn::Flatten>("flatten");
  }
  std::int64_t width = global ? shape.back() : shape.numel();
  for (std::size_t i = 0; i < options.hidden.size(); ++i) {
    net->add<nn::Linear>("hidden" + std::to_string(i), width, options.hidden[i], true, ops::Activation::kRelu);
    width = options.hidden[i];
  }
  if (options.dropout > 0) net->add<nn::Dropout>("dropout", options.dropout);
  net->add<nn::Linear>("classifier", width, input.outputs);
  return net;
}

}  // namespace lockstep::model_zoo
