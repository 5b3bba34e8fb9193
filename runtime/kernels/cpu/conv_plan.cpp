// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/conv_plan.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/cpu/conv_loops.h"
#include "runtime/kernels/cpu/conv_products.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/onednn/api.h"

namespace lockstep::kernels::cpu {

namespace {

using dnnl::memory;

/// A convolution as oneDNN names it: channels before the spatial dimensions, groups as a dimension of the weights.
struct Problem {
  memory::dims x, weight, y, bias, stride, padding, dilation;
  memory::format_tag activation_layout;
  memory::format_tag weight_layout;

  Problem(const ConvGeometry& geometry, const Shape& x_shape, const Shape& weight_shape, const Shape& y_shape);

  /// The layouts in which activations and weights lie in tensors.
  memory::desc plain_activation(const memory::dims& dims, DType dtype) const {
    return {dims, data_type(dtype), activation_layout};
  }
  memory::desc plain_weight(DType dtype) const { return {weight, data_type(dtype), weight_layout}; }

  /// The problem in the layouts that a primitive of the algorithm takes.
  onednn::Convolution described(ConvAlgorithm algorithm, DType dtype, bool with_bias) const;
  memory::desc any_weight(DType dtype) const { return {weight, data_type(dtype), memory::format_tag::any}; }
};

/// [first, spatial..., last] as [first, last, spatial...]
memory::dims channels_first(const Shape& shape) {
  memory::dims dims(shape.extents().begin(), shape.extents().end());
  std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

Problem::Problem(const ConvGeometry& geometry, const Shape& x_shape, const Shape& weight_shape, const Shape& y_shape)
    : x(channels_first(x_shape)),
      weight(channels_first(weight_shape)),
      y(channels_first(y_shape)),
      bias{weight_shape.front()} {
  using Tag = memory::format_tag;
  constexpr std::array kActivations{Tag::nwc, Tag::nhwc, Tag::ndhwc};
  constexpr std::array kWeights{Tag::owi, Tag::ohwi, Tag::odhwi};
  constexpr std::array kGroupedWeights{Tag::gowi, Tag::gohwi, Tag::godhwi};
  const auto rank = static_cast<std::size_t>(geometry.spatial_rank);
  activation_layout = kActivations[rank - 1];
  weight_layout = (geometry.groups > 1 ? kGroupedWeights : kWeights)[rank - 1];
  if (geometry.groups > 1) {
    weight.front() /= geometry.groups;
    weight.insert(weight.begin(), geometry.groups);
  }
  for (std::size_t d = 0; d < rank; ++d) {
    stride.push_back(geometry.stride[d]);
    padding.push_back(geometry.padding[d]);
    dilation.push_back(geometry.dilation[d] - 1);
  }
}

dnnl::algorithm named(ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kWinograd ? dnnl::algorithm::convolution_winograd
                                               : dnnl::algorithm::convolution_direct;
}

onednn::Convolution Problem::described(ConvAlgorithm algorithm, DType dtype, bool with_bias) const {
  const auto activation = [&](const memory::dims& dims) {
    return memory::desc(dims, data_type(dtype),
                        algorithm == ConvAlgorithm::kDirect ? activation_layout : memory::format_tag::any);
  };
  const memory::desc shift = with_bias ? memory::desc(bias, data_type(dtype), memory::format_tag::x) : memory::desc();
  return {named(algorithm), activation(x), any_weight(dtype), shift, activation(y), stride, dilation, padding};
}

/// The result of `describe` for the algorithm, or for the direct one where oneDNN or this processor lacks Winograd's.
template <class Describe>
auto describe_available(ConvAlgorithm algorithm, Describe describe) {
  if (algorithm != ConvAlgorithm::kWinograd) return describe(algorithm);
  try {
    return describe(algorithm);
  } catch (const dnnl::error&) {
    return describe(ConvAlgorithm::kDirect);
  }
}

PrimitiveKey key_of(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& x, const Tensor& weight,
                    const Tensor& y) {
  return PrimitiveKey()
      .add(static_cast<std::int64_t>(algorithm))
      .add(geometry.groups)
      .add(geometry.stride)
      .add(geometry.padding)
      .add(geometry.dilation)
      .add(x)
      .add(weight)
      .add(y);
}

/// A tensor that a primitive reads, in the layout that it wants.
class ReorderedInput {
 public:
  ReorderedInput() = default;
  ReorderedInput(const memory::desc& plain, const memory::desc& wanted)
      : reorder_(reorder(plain, wanted, false)), bytes_(wanted.get_size()) {}

  /// Valid while `storage` lives.
  const void* arrange(const Tensor& tensor, Storage& storage) {
    if (!reorder_) return tensor.data();
    storage = Storage::allocate(bytes_, kCpu);
    reorder_.run({tensor.data(), storage.data()});
    return storage.data();
  }

 private:
  Primitive reorder_;
  std::size_t bytes_ = 0;
};

/// A tensor that a primitive makes, in the layout that it chose.
class ReorderedOutput {
 public:
  ReorderedOutput() = default;
  ReorderedOutput(const memory::desc& made, const memory::desc& plain)
      : write_(reorder(made, plain, false)), add_(reorder(made, plain, true)), bytes_(made.get_size()) {}

  /// Runs `make(data)`, which writes its result there, and brings the result to the tensor.
  template <class Make>
  void store(const Tensor& tensor, bool add, Make make) {
    if (!add && !write_) return make(tensor.data());
    const Storage made = Storage::allocate(bytes_, kCpu);
    make(made.data());
    (add ? add_ : write_).run({made.data(), tensor.data()});
  }

 private:
  Primitive write_;
  Primitive add_;
  std::size_t bytes_ = 0;
};

/// Elements of bfloat16 that oneDNN's kernels take at a time.
constexpr std::int64_t kLanes = 16;

/// Pixels of x that the window passes over for each pixel of y.
std::int64_t step_of(const ConvGeometry& geometry) {
  std::int64_t step = 1;
  for (std::size_t d = 0; d < static_cast<std::size_t>(geometry.spatial_rank); ++d) step *= geometry.stride[d];
  return step;
}

std::int64_t pixels_of(const Shape& image) { return image.numel() / (image.front() * image.back()); }

}  // namespace

DType conv_dtype(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& y, DType dtype) {
  if (dtype != DType::kBFloat16 || !has_native_bfloat16()) return DType::kFloat32;
  // oneDNN's kernels work on so many channels at a time: with fewer they mostly multiply padding and lose to float32.
  // Tiles are so fast that they win even where half of what they multiply is padding.
  const bool tiles = has_bfloat16_tiles() && geometry.groups == 1;
  const std::int64_t fewest = !tiles ? kLanes : pass == ConvPass::kForward ? 3 : 4;
  return std::min(x.back(), y.back()) / geometry.groups >= fewest ? DType::kBFloat16 : DType::kFloat32;
}

bool multiplies_matrices(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                         const Shape& y, bool tiles) {
  if (geometry.groups > 1 || std::min(x.back(), y.back()) < kLanes) return false;
  const std::int64_t taps = weight.numel() / (weight.front() * weight.back());
  const std::int64_t step = step_of(geometry);
  const bool data = pass == ConvPass::kData;
  const std::int64_t patch = data ? pixels_of(x) * taps * y.back() / step : pixels_of(y) * taps * x.back();
  constexpr std::int64_t kMostInAnImage = std::int64_t{1} << 23;  // elements: 16 MiB
  if (patch > kMostInAnImage) return false;
  const std::int64_t width = y[-2];
  constexpr std::int64_t kWide = 32;  // channels that are copied fast
  switch (pass) {
    case ConvPass::kForward:
      return width <= (!tiles ? 2 : taps == 1 ? 7 : 4);
    case ConvPass::kData:
      // Where y is smaller than the steps make it, the patches of x's margin are mostly zeros.
      if (!tiles || pixels_of(x) > 2 * step * pixels_of(y)) return false;
      return step == 1 ? width <= (taps == 1 ? 14 : 4) : step <= 4 && std::min(x.back(), y.back()) >= 64;
    case ConvPass::kWeights:
      // oneDNN's kernel is faster on whole tiles of pixels of a row, if these lie side by side or have few channels,
      // which are copied in small pieces.
      if (tiles) return width < kLanes || taps == 1 || (step > 1 && x.back() >= kWide);
      // Without tiles it loses where a row's pixels do not lie side by side, where so few pixels are summed that its
      // own sums of the weights' size cost more than they, and where a row of a 1x1 window is shorter than half a
      // register.
      if (x.back() < kWide) return false;
      return step > 1 ? width < kLanes : pixels_of(y) * y.front() <= 512 || (taps == 1 && width < 8);
  }
  return false;
}

ConvAlgorithm conv_algorithm(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                             const Shape& y, DType dtype) {
  const auto both = [](const auto& of_dimension, std::int64_t value) {
    return of_dimension[0] == value && of_dimension[1] == value;
  };
  const bool usual = geometry.spatial_rank == 2 && geometry.groups == 1 && weight[1] == 3 && weight[2] == 3 &&
                     both(geometry.stride, 1) && both(geometry.dilation, 1) && both(geometry.padding, 1);
  if (dtype == DType::kBFloat16 && multiplies_matrices(pass, geometry, x, weight, y, has_bfloat16_tiles())) {
    return ConvAlgorithm::kProducts;
  }
  if (!usual || dtype != DType::kFloat32) return ConvAlgorithm::kDirect;
  // The bounds were measured on Zen 5. With fewer channels Winograd's transforms, with fewer tiles of 4 x 4 outputs the
  // transformed weights cost more than the multiplications that are saved.
  constexpr std::int64_t kTile = 4;
  const auto tiles_along = [](std::int64_t extent) { return (extent + kTile - 1) / kTile; };
  const std::int64_t tiles = y.front() * tiles_along(y[1]) * tiles_along(y[2]);
  if (tiles >= 64 && std::min(x.back(), y.back()) >= 32) return ConvAlgorithm::kWinograd;
  // Weights past the second-level cache are read once an image's row where activations are plain.
  const std::int64_t summed_channels = pass == ConvPass::kForward ? x.back() : y.back();
  const bool small = y[1] * y[2] <= 16 && y.front() >= 4;
  if (pass != ConvPass::kWeights && small && summed_channels >= 512) return ConvAlgorithm::kDirectBlocked;
  return ConvAlgorithm::kDirect;
}

void onednn_forward(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& x, const Tensor& weight,
                    const Tensor& bias, const Tensor& y) {
  if (algorithm == ConvAlgorithm::kProducts) return conv_forward_by_products(geometry, x, weight, bias, y);
  struct Plan {
    ReorderedInput x, weight;
    ReorderedOutput y;
    Primitive primitive;
  };
  thread_local PrimitiveCache<Plan> plans("conv_forward");
  Plan& plan = plans.get(key_of(algorithm, geometry, x, weight, y).add(bias), [&]() -> Plan {
    const Problem problem(geometry, x.shape(), weight.shape(), y.shape());
    const auto descriptor = describe_available(algorithm, [&](ConvAlgorithm chosen) {
      return onednn::forward(problem.described(chosen, x.dtype(), bias.defined()));
    });
    if (is_plain(descriptor.impl_info_str())) return {};
    return Plan{ReorderedInput(problem.plain_activation(problem.x, x.dtype()), descriptor.src_desc()),
                ReorderedInput(problem.plain_weight(weight.dtype()), descriptor.weights_desc()),
                ReorderedOutput(descriptor.dst_desc(), problem.plain_activation(problem.y, y.dtype())),
                Primitive::make<dnnl::convolution_forward>(descriptor, {{DNNL_ARG_SRC, descriptor.src_desc()},
                                                                        {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                                                                        {DNNL_ARG_BIAS, descriptor.bias_desc()},
                                                                        {DNNL_ARG_DST, descriptor.dst_desc()}})};
  });
  if (!plan.primitive) return conv_forward_by_loops(geometry, x, weight, bias, y);
  Storage arranged_x, arranged_weight;
  const void* from = plan.x.arrange(x, arranged_x);
  const void* by = plan.weight.arrange(weight, arranged_weight);
  const void* shift = bias.defined() ? bias.data() : nullptr;
  plan.y.store(y, false, [&](void* to) { plan.primitive.run({from, by, shift, to}); });
}

void onednn_backward_data(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight,
                          const Tensor& dx) {
  if (algorithm == ConvAlgorithm::kProducts) return conv_backward_data_by_products(geometry, dy, weight, dx);
  struct Plan {
    ReorderedInput dy, weight;
    ReorderedOutput dx;
    Primitive primitive;
  };
  thread_local PrimitiveCache<Plan> plans("conv_backward_data");
  Plan& plan = plans.get(key_of(algorithm, geometry, dx, weight, dy), [&]() -> Plan {
    const Problem problem(geometry, dx.shape(), weight.shape(), dy.shape());
    const auto descriptor = describe_available(algorithm, [&](ConvAlgorithm chosen) {
      return onednn::backward_data(problem.described(chosen, dx.dtype(), false));
    });
    if (is_plain(descriptor.impl_info_str())) return {};
    return Plan{ReorderedInput(problem.plain_activation(problem.y, dy.dtype()), descriptor.diff_dst_desc()),
                ReorderedInput(problem.plain_weight(weight.dtype()), descriptor.weights_desc()),
                ReorderedOutput(descriptor.diff_src_desc(), problem.plain_activation(problem.x, dx.dtype())),
                Primitive::make<dnnl::convolution_backward_data>(descriptor,
                                                                 {{DNNL_ARG_DIFF_DST, descriptor.diff_dst_desc()},
                                                                  {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                                                                  {DNNL_ARG_DIFF_SRC, descriptor.diff_src_desc()}})};
  });
  if (!plan.primitive) return conv_backward_data_by_loops(geometry, dy, weight, dx);
  Storage arranged_dy, arranged_weight;
  const void* from = plan.dy.arrange(dy, arranged_dy);
  const void* by = plan.weight.arrange(weight, arranged_weight);
  plan.dx.store(dx, false, [&](void* to) { plan.primitive.run({from, by, to}); });
}

void onednn_backward_weights(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& x, const Tensor& dy,
                             bool add, const Tensor& dweight) {
  if (algorithm == ConvAlgorithm::kProducts) return conv_backward_weights_by_products(geometry, x, dy, add, dweight);
  struct Plan {
    ReorderedInput x, dy;
    ReorderedOutput dweight;
    Primitive primitive;
  };
  thread_local PrimitiveCache<Plan> plans("conv_backward_weights");
  Plan& plan = plans.get(key_of(algorithm, geometry, x, dweight, dy), [&]() -> Plan {
    const Problem problem(geometry, x.shape(), dweight.shape(), dy.shape());
    const auto descriptor = describe_available(algorithm, [&](ConvAlgorithm chosen) {
      return onednn::backward_weights(problem.described(chosen, x.dtype(), false), problem.any_weight(DType::kFloat32));
    });
    if (is_plain(descriptor.impl_info_str())) return {};
    return Plan{ReorderedInput(problem.plain_activation(problem.x, x.dtype()), descriptor.src_desc()),
                ReorderedInput(problem.plain_activation(problem.y, dy.dtype()), descriptor.diff_dst_desc()),
                ReorderedOutput(descriptor.diff_weights_desc(), problem.plain_weight(dweight.dtype())),
                Primitive::make<dnnl::convolution_backward_weights>(
                    descriptor, {{DNNL_ARG_SRC, descriptor.src_desc()},
                                 {DNNL_ARG_DIFF_DST, descriptor.diff_dst_desc()},
                                 {DNNL_ARG_DIFF_WEIGHTS, descriptor.diff_weights_desc()}})};
  });
  if (!plan.primitive) return conv_backward_weights_by_loops(geometry, x, dy, add, dweight);
  Storage arranged_x, arranged_dy;
  const void* left = plan.x.arrange(x, arranged_x);
  const void* right = plan.dy.arrange(dy, arranged_dy);
  plan.dweight.store(dweight, add, [&](void* to) { plan.primitive.run({left, right, to}); });
}

}  // namespace lockstep::kernels::cpu
