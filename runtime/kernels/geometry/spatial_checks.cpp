// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/spatial.h"

namespace lockstep::kernels::checks {

void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& y) {
  const Check check("conv_forward");
  check.floating("x", x).dtype("weight", weight, x.dtype()).dtype("y", y, x.dtype());
  check.shape("y", y, conv_output_shape(x.shape(), weight.shape(), geometry));
  if (bias.defined()) check.dtype("bias", bias, x.dtype()).shape("bias", bias, {weight.size(0)});
}

void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                   const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  const Check check("conv_backward");
  check.floating("x", x).dtype("weight", weight, x.dtype()).dtype("dy", dy, x.dtype());
  check.shape("dy", dy, conv_output_shape(x.shape(), weight.shape(), geometry));
  if (dx.defined()) check.like("dx", dx, x);
  if (dweight.defined()) check.floating("dweight", dweight).shape("dweight", dweight, weight.shape());
  if (dbias.defined()) check.floating("dbias", dbias).shape("dbias", dbias, {weight.size(0)});
}

namespace {

void pool(const Check& check, const PoolGeometry& geometry, const Shape& x, const Tensor& y, const Tensor& indices) {
  check.shape("y", y, pool_output_shape(x, geometry));
  if (geometry.kind == PoolKind::kMax) {
    check.shape("indices", indices, y.shape()).dtype("indices", indices, DType::kInt32);
  } else {
    check.that(!indices.defined(), "average pooling has no indices: pass an undefined tensor");
  }
}

}  // namespace

void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) {
  const Check check("pool_forward");
  check.floating("x", x).dtype("y", y, x.dtype());
  pool(check, geometry, x.shape(), y, indices);
}

void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx) {
  const Check check("pool_backward");
  check.floating("dx", dx).dtype("dy", dy, dx.dtype());
  pool(check, geometry, dx.shape(), dy, indices);
}

void global_average_pool(const Tensor& x, const Tensor& y) {
  const Check check("global_average_pool");
  check.floating("x", x).rank_at_least("x", x, 2);
  check.dtype("y", y, x.dtype()).shape("y", y, {x.shape().front(), x.shape().back()});
}

}  // namespace lockstep::kernels::checks
