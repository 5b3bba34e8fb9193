// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/pool.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"

namespace lockstep::ops {

using autograd::BackwardContext;

namespace {

Tensor max_pool(const Tensor& input, const kernels::PoolGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kMaxPool, input);
  const Tensor y = Tensor::empty(kernels::pool_output_shape(x.shape(), geometry), x.dtype(), x.device());
  const Tensor indices = Tensor::empty(y.shape(), DType::kInt32, x.device());
  kernels::backend(x.device()).pool_forward(geometry, x, y, indices);
  autograd::record(y, name_of(amp::Op::kMaxPool), {x},
                   {.fused = [geometry, indices, shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
                     kernels::backend(dy.device()).pool_backward(geometry, dy, indices, dx);
                     return std::vector<Tensor>{dx};
                   }});
  return y;
}

/// [N, spatial'..., C] -> shape [N, spatial..., C]: average pooling transposed, so that each is the other's gradient.
Tensor average_pool_gradient(const Tensor& input, const kernels::PoolGeometry& geometry, const Shape& shape) {
  const Tensor dy = amp::autocast(amp::Op::kAveragePoolGradient, input);
  const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
  kernels::backend(dy.device()).pool_backward(geometry, dy, {}, dx);
  autograd::record(dx, name_of(amp::Op::kAveragePoolGradient), {dy},
                   {.recorded = [geometry](const Tensor& grad, const BackwardContext&) {
                     return std::vector<Tensor>{pool(grad, geometry)};
                   }});
  return dx;
}

Tensor average_pool(const Tensor& input, const kernels::PoolGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kAveragePool, input);
  const Tensor y = Tensor::empty(kernels::pool_output_shape(x.shape(), geometry), x.dtype(), x.device());
  kernels::backend(x.device()).pool_forward(geometry, x, y, {});
  autograd::record(y, name_of(amp::Op::kAveragePool), {x},
                   {.recorded = [geometry, shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{average_pool_gradient(dy, geometry, shape)};
                   }});
  return y;
}

/// [N, C] -> shape [N, spatial..., C]: global average pooling transposed, so that each is the other's gradient.
Tensor global_average_pool_gradient(const Tensor& input, const Shape& shape) {
  const Tensor dy = amp::autocast(amp::Op::kGlobalAveragePoolGradient, input);
  const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
  kernels::backend(dy.device()).global_average_pool_backward(dy, dx);
  autograd::record(dx, name_of(amp::Op::kGlobalAveragePoolGradient), {dy},
                   {.recorded = [](const Tensor& grad, const BackwardContext&) {
                     return std::vector<Tensor>{global_average_pool(grad)};
                   }});
  return dx;
}

}  // namespace

Tensor pool(const Tensor& x, const kernels::PoolGeometry& geometry) {
  return geometry.kind == kernels::PoolKind::kMax ? max_pool(x, geometry) : average_pool(x, geometry);
}

Tensor global_average_pool(const Tensor& input) {
  const Tensor x = amp::autocast(amp::Op::kGlobalAveragePool, input);
  const Tensor y = Tensor::empty({x.size(0), x.shape().back()}, x.dtype(), x.device());
  kernels::backend(x.device()).global_average_pool(x, y);
  autograd::record(y, name_of(amp::Op::kGlobalAveragePool), {x},
                   {.recorded = [shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{global_average_pool_gradient(dy, shape)};
                   }});
  return y;
}

}  // namespace lockstep::ops
