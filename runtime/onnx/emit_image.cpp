// SPDX-License-Identifier: Apache-2.0
// Operations on images and volumes, whose channels come first in ONNX.
#include "runtime/kernels/geometry/spatial.h"
#include "runtime/onnx/emitter.h"
#include "runtime/ops/operation_options.h"

namespace lockstep::onnx {

namespace {

using Extents = std::vector<std::int64_t>;

Extents first(const std::array<std::int64_t, 3>& extents, int count) {
  return {extents.begin(), extents.begin() + count};
}

/// The padding of both sides, which are alike.
Extents pads(const std::array<std::int64_t, 3>& padding, int count) {
  Extents both = first(padding, count);
  both.insert(both.end(), padding.begin(), padding.begin() + count);
  return both;
}

/// The order of [O, kernel..., C] -> [O, C, kernel...]; transposed convolution: [C, kernel..., O] -> [C, O, kernel...].
std::vector<int> channels_second(const Shape& weight) { return order_to(Layout::kFirst, weight.rank()); }

std::vector<std::string> operands(const Emitter& emitter) {
  std::vector<std::string> names{emitter.in(0, Layout::kFirst),
                                 emitter.weight(1, channels_second(emitter.value(1).shape))};
  if (emitter.has(2)) names.push_back(emitter.weight(2));
  return names;
}

Extents kernel_of(const Shape& weight, int count) {
  Extents extents;
  for (int d = 0; d < count; ++d) extents.push_back(weight[d + 1]);
  return extents;
}

void conv(const Emitter& emitter) {
  const auto& geometry = emitter.options<ops::ConvGeometry>();
  const int count = geometry.spatial_rank;
  emitter.out(emitter.node("Conv", operands(emitter),
                           {{"kernel_shape", kernel_of(emitter.value(1).shape, count)},
                            {"strides", first(geometry.stride, count)},
                            {"pads", pads(geometry.padding, count)},
                            {"dilations", first(geometry.dilation, count)},
                            {"group", geometry.groups}}),
              Layout::kFirst);
}

void conv_transpose(const Emitter& emitter) {
  const auto& geometry = emitter.options<ops::ConvGeometry>();
  const int count = geometry.spatial_rank;
  const Shape& weight = emitter.value(1).shape;
  const Shape least = kernels::conv_transpose_output_shape(emitter.value(0).shape, weight, geometry, {});
  Extents more;
  for (int d = 1; d <= count; ++d) more.push_back(emitter.result().shape[d] - least[d]);
  emitter.out(emitter.node("ConvTranspose", operands(emitter),
                           {{"kernel_shape", kernel_of(weight, count)},
                            {"strides", first(geometry.stride, count)},
                            {"pads", pads(geometry.padding, count)},
                            {"output_padding", more},
                            {"dilations", first(geometry.dilation, count)},
                            {"group", geometry.groups}}),
              Layout::kFirst);
}

void pool(const Emitter& emitter) {
  const auto& geometry = emitter.options<ops::PoolGeometry>();
  const int count = geometry.spatial_rank;
  const bool max = geometry.kind == ops::PoolKind::kMax;
  std::vector<Attribute> attributes{{"kernel_shape", first(geometry.window, count)},
                                    {"strides", first(geometry.stride, count)},
                                    {"pads", pads(geometry.padding, count)}};
  if (!max) attributes.push_back({"count_include_pad", std::int64_t{geometry.count_include_pad}});
  emitter.out(emitter.node(max ? "MaxPool" : "AveragePool", {emitter.in(0, Layout::kFirst)}, attributes),
              Layout::kFirst);
}

/// x, gamma, beta, residual, running statistics [2, C]
void batch_norm(const Emitter& emitter) {
  const auto& options = emitter.options<ops::InferenceNormOptions>();
  const Tensor& running = emitter.value(4).constant;
  const Shape channels{running.size(1)};
  std::string y = emitter.node("BatchNormalization",
                               {emitter.in(0, Layout::kFirst), emitter.weight(1), emitter.weight(2),
                                emitter.stored(running.rows(0, 1).reshaped(channels), "running_mean"),
                                emitter.stored(running.rows(1, 2).reshaped(channels), "running_var")},
                               {{"epsilon", static_cast<float>(options.epsilon)}});
  if (emitter.has(3)) y = emitter.node("Add", {y, emitter.in(3, Layout::kFirst)});
  if (options.relu) y = emitter.node("Relu", {y});
  emitter.out(y, Layout::kFirst);
}

/// Group and instance norm: the second is the first with a group a channel.
void group_norm(const Emitter& emitter) {
  const auto& options = emitter.options<ops::NormalizationOptions>();
  const Shape& shape = emitter.value(0).shape;
  const std::int64_t channels = shape.back();
  const auto constant = [&](int input, float otherwise) {
    if (emitter.has(input)) return emitter.weight(input);
    return emitter.floats(std::vector<float>(static_cast<std::size_t>(channels), otherwise), {channels});
  };
  const std::vector<Attribute> epsilon{{"epsilon", static_cast<float>(options.epsilon)}};
  const std::string x = emitter.in(0, Layout::kFirst);
  if (options.groups == channels) {
    return emitter.out(emitter.node("InstanceNormalization", {x, constant(1, 1), constant(2, 0)}, epsilon),
                       Layout::kFirst);
  }
  const auto of_groups = [&](float value) {
    return emitter.floats(std::vector<float>(static_cast<std::size_t>(options.groups), value), {options.groups});
  };
  const std::string grouped = emitter.reshaped(x, {0, options.groups, -1});
  const std::string normal = emitter.node("InstanceNormalization", {grouped, of_groups(1), of_groups(0)}, epsilon);
  Extents whole{0, channels}, line{channels};
  for (int d = 1; d + 1 < shape.rank(); ++d) {
    whole.push_back(shape[d]);
    line.push_back(1);
  }
  std::string y = emitter.reshaped(normal, whole);
  if (emitter.has(1)) y = emitter.node("Mul", {y, emitter.reshaped(emitter.weight(1), line)});
  if (emitter.has(2)) y = emitter.node("Add", {y, emitter.reshaped(emitter.weight(2), line)});
  emitter.out(y, Layout::kFirst);
}

void upsample(const Emitter& emitter) {
  const auto& geometry = emitter.options<kernels::UpsampleGeometry>();
  const Shape &from = emitter.value(0).shape, &to = emitter.result().shape;
  std::vector<float> scales{1, 1};
  for (int d = 0; d < geometry.spatial_rank; ++d) {
    const double factor = geometry.scale_factor[static_cast<std::size_t>(d)];
    scales.push_back(
        static_cast<float>(factor > 0 ? factor : static_cast<double>(to[d + 1]) / static_cast<double>(from[d + 1])));
  }
  const bool nearest = geometry.mode == ops::UpsampleMode::kNearest;
  const std::string places = nearest ? "asymmetric" : geometry.align_corners ? "align_corners" : "half_pixel";
  std::vector<Attribute> attributes{{"mode", std::string(nearest ? "nearest" : "linear")},
                                    {"coordinate_transformation_mode", places}};
  if (nearest) attributes.push_back({"nearest_mode", std::string("floor")});
  const auto count = static_cast<std::int64_t>(scales.size());
  emitter.out(emitter.node("Resize", {emitter.in(0, Layout::kFirst), "", emitter.floats(scales, {count})}, attributes),
              Layout::kFirst);
}

}  // namespace

bool emit_image(const Emitter& emitter) {
  const std::string& name = emitter.name();
  if (name == "conv") {
    conv(emitter);
  } else if (name == "conv_transpose") {
    conv_transpose(emitter);
  } else if (name == "max_pool" || name == "average_pool") {
    pool(emitter);
  } else if (name == "global_average_pool") {
    const std::string pooled = emitter.node("GlobalAveragePool", {emitter.in(0, Layout::kFirst)});
    emitter.out(emitter.node("Flatten", {pooled}, {{"axis", std::int64_t{1}}}));
  } else if (name == "batch_norm") {
    batch_norm(emitter);
  } else if (name == "group_norm" || name == "instance_norm") {
    group_norm(emitter);
  } else if (name == "upsample_nearest" || name == "upsample_linear") {
    upsample(emitter);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
