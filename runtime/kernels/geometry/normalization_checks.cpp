// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::checks {

namespace {

/// Requires that `y` has x's shape, and x's dtype or a wider one up to float32.
void like_or_wider(const Check& check, const Tensor& x, std::string_view name, const Tensor& y) {
  check.shape(name, y, x.shape());
  if (y.dtype() != DType::kFloat32 || x.dtype() == DType::kFloat64) check.dtype(name, y, x.dtype());
}

/// like_or_wider() of layer norm: y of float32 x may also have 16 bits.
void like_wider_or_narrow(const Check& check, const Tensor& x, std::string_view name, const Tensor& y) {
  if (x.dtype() != DType::kFloat32 || !is_reduced(y.dtype())) return like_or_wider(check, x, name, y);
  check.shape(name, y, x.shape());
}

/// `tensor`, where defined, has the dtype of x's statistics and this shape.
void optional(const Check& check, const Tensor& x, std::string_view name, const Tensor& tensor, const Shape& shape) {
  if (tensor.defined()) check.dtype(name, tensor, accumulation_dtype(x.dtype())).shape(name, tensor, shape);
}

/// The checks that the forward and backward passes of layer norm and group norm share.
void normalization(const Check& check, const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                   const Shape& statistics) {
  optional(check, x, "weight", weight, {x.shape().back()});
  optional(check, x, "mean", mean, statistics);
  check.shape("inv_std", inv_std, statistics).dtype("inv_std", inv_std, accumulation_dtype(x.dtype()));
}

void gradients(const Check& check, const Tensor& x, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  if (dx.defined()) check.like("dx", dx, x);
  optional(check, x, "dweight", dweight, {x.shape().back()});
  optional(check, x, "dbias", dbias, {x.shape().back()});
}

Shape groups_of(const Check& check, const Tensor& x, const Tensor& mean, const Tensor& inv_std) {
  check.floating("x", x).rank_at_least("x", x, 2);
  check.rank_at_least("inv_std", inv_std, 2).like("mean", mean, inv_std);
  const std::int64_t groups = inv_std.shape().back();
  check.that(groups > 0 && x.shape().back() % groups == 0,
             [&] { return std::to_string(groups) + " groups must divide the channels of " + describe(x); });
  return {x.size(0), groups};
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Tensor& mean,
                const Tensor& inv_std) {
  const Check check("layer_norm");
  check.floating("x", x).rank_at_least("x", x, 1);
  normalization(check, x, weight, mean, inv_std, {x.shape().rows()});
  optional(check, x, "bias", bias, {x.shape().back()});
  like_wider_or_narrow(check, x, "y", y);
}

void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  const Check check("layer_norm_backward");
  check.floating("x", x).rank_at_least("x", x, 1);
  normalization(check, x, weight, mean, inv_std, {x.shape().rows()});
  like_wider_or_narrow(check, x, "dy", dy);
  gradients(check, x, dx, dweight, dbias);
}

void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Tensor& mean,
                const Tensor& inv_std) {
  const Check check("group_norm");
  normalization(check, x, weight, mean, inv_std, groups_of(check, x, mean, inv_std));
  optional(check, x, "bias", bias, {x.shape().back()});
  like_or_wider(check, x, "y", y);
}

void group_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  const Check check("group_norm_backward");
  normalization(check, x, weight, mean, inv_std, groups_of(check, x, mean, inv_std));
  like_or_wider(check, x, "dy", dy);
  gradients(check, x, dx, dweight, dbias);
}

}  // namespace lockstep::kernels::checks
