// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/conv_plan.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/cpu/isa.h"

namespace lockstep::kernels::cpu {

namespace {

using dnnl::memory;

/// A convolution as oneDNN names it: channels before the spatial dimensions, groups as a dimension of the weights.
struct Problem {
  memory::dims x, weight, y, bias, stride, padding, dilation;
  memory::format_tag activation_layout;
  memory::format_tag weight_layout;

  Problem(const ConvGeometry& geometry, const Shape& x_shape, const Shape& weight_shape, const Shape& y_shape);

  memory::desc activation(const memory::dims& dims, DType dtype) const {
    return {dims, data_type(dtype), activation_layout};
  }
  memory::desc plain_weight(DType dtype) const { return {weight, data_type(dtype), weight_layout}; }
  memory::desc any_weight(DType dtype) const { return {weight, data_type(dtype), memory::format_tag::any}; }

  dnnl::convolution_forward::primitive_desc forward(DType dtype, bool with_bias) const;
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

dnnl::convolution_forward::primitive_desc Problem::forward(DType dtype, bool with_bias) const {
  const memory::desc shift = with_bias ? memory::desc(bias, data_type(dtype), memory::format_tag::x) : memory::desc();
  return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, activation(x, dtype),
           any_weight(dtype), shift, activation(y, dtype), stride, dilation, padding, padding},
          user_scratchpad(),
          engine()};
}

PrimitiveKey key_of(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& y) {
  return PrimitiveKey()
      .add(geometry.groups)
      .add(geometry.stride)
      .add(geometry.padding)
      .add(geometry.dilation)
      .add(x)
      .add(weight)
      .add(y);
}

/// Weights in the layout that a primitive wants.
class Weights {
 public:
  Weights() = default;
  Weights(const memory::desc& plain, const memory::desc& wanted)
      : reorder_(reorder(plain, wanted, false)), bytes_(wanted.get_size()) {}

  /// Valid while `storage` lives.
  const void* arrange(const Tensor& weight, Storage& storage) {
    if (!reorder_) return weight.data();
    storage = Storage::allocate(bytes_, kCpu);
    reorder_.run({weight.data(), storage.data()});
    return storage.data();
  }

 private:
  Primitive reorder_;
  std::size_t bytes_ = 0;
};

}  // namespace

DType conv_dtype(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y,
                 DType dtype) {
  if (dtype != DType::kBFloat16 || !has_native_bfloat16()) return DType::kFloat32;
  // oneDNN's bfloat16 kernels work on 16 channels at a time, and backward ones on 16 pixels of a row: with fewer they
  // mostly multiply padding and lose to float32.
  constexpr std::int64_t kLanes = 16;
  const bool wide = y[-2] >= kLanes;
  const bool deep = x.back() / geometry.groups >= kLanes && weight.front() / geometry.groups >= kLanes;
  const bool dense = std::ranges::all_of(geometry.stride, [](std::int64_t stride) { return stride == 1; });
  const bool native = deep && (pass == ConvPass::kForward || wide || (pass == ConvPass::kData && dense));
  return native ? DType::kBFloat16 : DType::kFloat32;
}

void onednn_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const Tensor& y) {
  struct Plan {
    Weights weights;
    Primitive primitive;
  };
  thread_local PrimitiveCache<Plan> plans("conv_forward");
  Plan& plan = plans.get(key_of(geometry, x, weight, y).add(bias), [&] {
    const Problem problem(geometry, x.shape(), weight.shape(), y.shape());
    const auto descriptor = problem.forward(x.dtype(), bias.defined());
    return Plan{Weights(problem.plain_weight(weight.dtype()), descriptor.weights_desc()),
                Primitive::make<dnnl::convolution_forward>(descriptor, {{DNNL_ARG_SRC, descriptor.src_desc()},
                                                                        {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                                                                        {DNNL_ARG_BIAS, descriptor.bias_desc()},
                                                                        {DNNL_ARG_DST, descriptor.dst_desc()}})};
  });
  Storage storage;
  plan.primitive.run(
      {x.data(), plan.weights.arrange(weight, storage), bias.defined() ? bias.data() : nullptr, y.data()});
}

void onednn_backward_data(const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  struct Plan {
    Weights weights;
    Primitive primitive;
  };
  thread_local PrimitiveCache<Plan> plans("conv_backward_data");
  Plan& plan = plans.get(key_of(geometry, dx, weight, dy), [&] {
    const Problem problem(geometry, dx.shape(), weight.shape(), dy.shape());
    const dnnl::convolution_backward_data::primitive_desc descriptor(
        {dnnl::algorithm::convolution_direct, problem.activation(problem.x, dx.dtype()),
         problem.any_weight(weight.dtype()), problem.activation(problem.y, dy.dtype()), problem.stride,
         problem.dilation, problem.padding, problem.padding},
        user_scratchpad(), engine(), problem.forward(dx.dtype(), false));
    return Plan{Weights(problem.plain_weight(weight.dtype()), descriptor.weights_desc()),
                Primitive::make<dnnl::convolution_backward_data>(descriptor,
                                                                 {{DNNL_ARG_DIFF_DST, descriptor.diff_dst_desc()},
                                                                  {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                                                                  {DNNL_ARG_DIFF_SRC, descriptor.diff_src_desc()}})};
  });
  Storage storage;
  plan.primitive.run({dy.data(), plan.weights.arrange(weight, storage), dx.data()});
}

void onednn_backward_weights(const ConvGeometry& geometry, const Tensor& x, const Tensor& dy, bool add,
                             const Tensor& dweight) {
  struct Plan {
    Primitive primitive;
    Primitive write;
    Primitive add;
    std::size_t bytes;
  };
  thread_local PrimitiveCache<Plan> plans("conv_backward_weights");
  Plan& plan = plans.get(key_of(geometry, x, dweight, dy), [&] {
    const Problem problem(geometry, x.shape(), dweight.shape(), dy.shape());
    const dnnl::convolution_backward_weights::primitive_desc descriptor(
        {dnnl::algorithm::convolution_direct, problem.activation(problem.x, x.dtype()),
         problem.any_weight(dweight.dtype()), problem.activation(problem.y, dy.dtype()), problem.stride,
         problem.dilation, problem.padding, problem.padding},
        user_scratchpad(), engine(), problem.forward(x.dtype(), false));
    const memory::desc blocked = descriptor.diff_weights_desc();
    const memory::desc plain = problem.plain_weight(dweight.dtype());
    return Plan{Primitive::make<dnnl::convolution_backward_weights>(descriptor,
                                                                    {{DNNL_ARG_SRC, descriptor.src_desc()},
                                                                     {DNNL_ARG_DIFF_DST, descriptor.diff_dst_desc()},
                                                                     {DNNL_ARG_DIFF_WEIGHTS, blocked}}),
                reorder(blocked, plain, false), reorder(blocked, plain, true), blocked.get_size()};
  });
  if (!add && !plan.write) return plan.primitive.run({x.data(), dy.data(), dweight.data()});
  const Storage blocked = Storage::allocate(plan.bytes, kCpu);
  plan.primitive.run({x.data(), dy.data(), blocked.data()});
  (add ? plan.add : plan.write).run({blocked.data(), dweight.data()});
}

}  // namespace lockstep::kernels::cpu
