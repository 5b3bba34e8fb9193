// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/pool.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"

namespace lockstep::ops {

using autograd::BackwardContext;

Tensor pool(const Tensor& input, const kernels::PoolGeometry& geometry) {
  const bool max = geometry.kind == kernels::PoolKind::kMax;
  const Tensor x = amp::autocast(max ? amp::Op::kMaxPool : amp::Op::kAveragePool, input);
  const Tensor y = Tensor::empty(kernels::pool_output_shape(x.shape(), geometry), x.dtype(), x.device());
  const Tensor indices = max ? Tensor::empty(y.shape(), DType::kInt32, x.device()) : Tensor();
  kernels::backend(x.device()).pool_forward(geometry, x, y, indices);
  autograd::record(y, max ? "max_pool" : "average_pool", {x},
                   {.fused = [geometry, indices, shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
                     kernels::backend(dy.device()).pool_backward(geometry, dy, indices, dx);
                     return std::vector<Tensor>{dx};
                   }});
  return y;
}

Tensor global_average_pool(const Tensor& input) {
  const Tensor x = amp::autocast(amp::Op::kGlobalAveragePool, input);
  const Tensor y = Tensor::empty({x.size(0), x.shape().back()}, x.dtype(), x.device());
  kernels::backend(x.device()).global_average_pool(x, y);
  autograd::record(y, "global_average_pool", {x},
                   {.fused = [shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
                     kernels::backend(dy.device()).global_average_pool_backward(dy, dx);
                     return std::vector<Tensor>{dx};
                   }});
  return y;
}

}  // namespace lockstep::ops
