// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/pool.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/pooling.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;

namespace {

/// The choice of max pooling. places() gives the maxima's places in their images, int64 [N, pixels', C].
struct Chosen {
  kernels::PoolGeometry geometry;
  Tensor indices;  ///< int32, y's shape
  Shape x;

  Tensor places() const {
    const Tensor wide = Tensor::empty(as_pixels(indices.shape()), DType::kInt64, indices.device());
    kernels::cast(indices.detach(wide.shape()), wide);
    return wide;
  }
  static Shape as_pixels(const Shape& shape) {
    std::int64_t pixels = 1;
    for (int d = 1; d + 1 < shape.rank(); ++d) pixels *= shape[d];
    return {shape.front(), pixels, shape.back()};
  }
};

/// [N, spatial'..., C] -> [N, spatial..., C]: adds each gradient at the place of its maximum. The gradient of this
/// operation is gathered from those places.
Tensor max_pool_gradient(const Tensor& input, const Chosen& chosen) {
  const Tensor dy = amp::autocast(amp::Op::kMaxPoolGradient, input);
  const Tensor dx = Tensor::empty(chosen.x, dy.dtype(), dy.device());
  kernels::Pooling::on(dy.device()).pool_backward(chosen.geometry, dy, chosen.indices, dx);
  autograd::record(dx, name_of(amp::Op::kMaxPoolGradient), {dy},
                   {.recorded = [chosen](const Tensor& grad, const BackwardContext&) {
                     const Tensor pixels = reshape(grad, Chosen::as_pixels(chosen.x));
                     return std::vector<Tensor>{reshape(gather(pixels, 1, chosen.places()), chosen.indices.shape())};
                   }});
  return dx;
}

Tensor max_pool(const Tensor& input, const kernels::PoolGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kMaxPool, input);
  const Tensor y = Tensor::empty(kernels::pool_output_shape(x.shape(), geometry), x.dtype(), x.device());
  const Tensor indices = Tensor::empty(y.shape(), DType::kInt32, x.device());
  kernels::Pooling::on(x.device()).pool_forward(geometry, x, y, indices);
  autograd::record(
      y, name_of(amp::Op::kMaxPool), {x},
      {.recorded = [chosen = Chosen{geometry, indices, x.shape()}](const Tensor& dy, const BackwardContext&) {
        return std::vector<Tensor>{max_pool_gradient(dy, chosen)};
      }});
  autograd::note_options(y, geometry);
  return y;
}

/// [N, spatial'..., C] -> shape [N, spatial..., C]: average pooling transposed, so that each is the other's gradient.
Tensor average_pool_gradient(const Tensor& input, const kernels::PoolGeometry& geometry, const Shape& shape) {
  const Tensor dy = amp::autocast(amp::Op::kAveragePoolGradient, input);
  const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
  kernels::Pooling::on(dy.device()).pool_backward(geometry, dy, {}, dx);
  autograd::record(dx, name_of(amp::Op::kAveragePoolGradient), {dy},
                   {.recorded = [geometry](const Tensor& grad, const BackwardContext&) {
                     return std::vector<Tensor>{pool(grad, geometry)};
                   }});
  return dx;
}

Tensor average_pool(const Tensor& input, const kernels::PoolGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kAveragePool, input);
  const Tensor y = Tensor::empty(kernels::pool_output_shape(x.shape(), geometry), x.dtype(), x.device());
  kernels::Pooling::on(x.device()).pool_forward(geometry, x, y, {});
  autograd::record(y, name_of(amp::Op::kAveragePool), {x},
                   {.recorded = [geometry, shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{average_pool_gradient(dy, geometry, shape)};
                   }});
  autograd::note_options(y, geometry);
  return y;
}

/// [N, C] -> shape [N, spatial..., C]: global average pooling transposed, so that each is the other's gradient.
Tensor global_average_pool_gradient(const Tensor& input, const Shape& shape) {
  const Tensor dy = amp::autocast(amp::Op::kGlobalAveragePoolGradient, input);
  const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
  kernels::Pooling::on(dy.device()).global_average_pool_backward(dy, dx);
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
  kernels::Pooling::on(x.device()).global_average_pool(x, y);
  autograd::record(y, name_of(amp::Op::kGlobalAveragePool), {x},
                   {.recorded = [shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{global_average_pool_gradient(dy, shape)};
                   }});
  return y;
}

}  // namespace lockstep::ops
