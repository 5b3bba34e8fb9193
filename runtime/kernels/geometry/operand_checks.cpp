// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/operand_checks.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/losses.h"
#include "runtime/kernels/matmul.h"

namespace lockstep::kernels::checks {

void cast(const Tensor& in, const Tensor& out) { Check("cast").defined("in", in).shape("out", out, in.shape()); }

void same_shape_floating(std::string_view operation, const Tensor& in, const Tensor& out) {
  Check(operation).floating("in", in).floating("out", out).shape("out", out, in.shape());
}

void same(std::string_view operation, const Tensor& in, const Tensor& out) {
  Check(operation).floating("in", in).like("out", out, in);
}

bool is_narrow_addend(Binary function, const Tensor& a, const Tensor& b) {
  return function == Binary::kAdd && a.dtype() == DType::kFloat32 && b.defined() && is_reduced(b.dtype()) &&
         a.shape() == b.shape();
}

void binary(Binary function, const Tensor& a, const Tensor& b, const Tensor& out) {
  const Check check(name_of(function));
  check.floating("a", a);
  if (!is_narrow_addend(function, a, b)) check.dtype("b", b, a.dtype());
  check.shape("out", out, broadcast_shape(name_of(function), a.shape(), b.shape()));
  check.dtype("out", out, is_comparison(function) ? DType::kBool : a.dtype());
}

void binary_with_number(Binary function, const Tensor& x, const Tensor& out) {
  const Check check(name_of(function));
  check.floating("x", x).shape("out", out, x.shape());
  check.dtype("out", out, is_comparison(function) ? DType::kBool : x.dtype());
}

void ternary(const TernaryFunction& function, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  const Check check("ternary");
  check.floating("b", b).dtype("a", a, function.kind == Ternary::kWhere ? DType::kBool : b.dtype());
  check.dtype("c", c, b.dtype()).dtype("out", out, b.dtype());
  check.shape("out", out, broadcast_shape("ternary", broadcast_shape("ternary", a.shape(), b.shape()), c.shape()));
}

void expand(const Tensor& in, const Tensor& out) {
  const Check check("expand");
  check.floating("in", in).dtype("out", out, in.dtype());
  check.shape("out", out, broadcast_shape("expand", in.shape(), out.shape()));
}

void unary_backward(const Tensor& at, const Tensor& dy, const Tensor& dx) {
  Check("unary_backward").floating("at", at).like("dy", dy, at).like("dx", dx, at);
}

void dropout(const Tensor& x, double p, const Tensor& y) {
  same("dropout", x, y);
  if (!(p >= 0 && p <= 1)) throw UsageError("dropout: p must be in [0, 1], found " + std::to_string(p));
}

void random(std::int64_t first_element, const Tensor& out) {
  Check("random").floating("out", out);
  if (first_element < 0) throw UsageError("random: the first element is number " + std::to_string(first_element));
}

void sum(const Tensor& x, const Tensor& out) {
  Check("sum").floating("x", x).floating("out", out).numel("out", out, 1);
}

void sum_rows(const Tensor& x, const Tensor& out) {
  Check("sum_rows")
      .floating("x", x)
      .rank_at_least("x", x, 1)
      .floating("out", out)
      .shape("out", out, {x.shape().back()});
}

namespace {

void epilogue_of(const Check& check, const Epilogue& epilogue, const MatmulExtents& extents, bool transpose_a,
                 bool accumulate, const Tensor& a, const Tensor& out) {
  const bool activated = epilogue.activation != Activation::kNone;
  const bool derived = epilogue.derivative != Activation::kNone;
  if (epilogue.bias.defined()) check.dtype("bias", epilogue.bias, a.dtype()).shape("bias", epilogue.bias, {extents.n});
  check.that(!(activated && derived), "an activation and a derivative exclude each other");
  check.that(!(accumulate && (activated || derived)), "nothing can be added to behind an activation or a derivative");
  check.that(!(epilogue.bias.defined() && derived), "a bias and a derivative exclude each other");
  check.that(activated || !epilogue.preactivation.defined(), "a preactivation belongs to an activation");
  if (epilogue.preactivation.defined()) check.like("preactivation", epilogue.preactivation, out);
  if (derived) check.like("derivative_at", epilogue.derivative_at, out);
  if (!epilogue.bias_gradient.defined()) return;
  check.that(transpose_a && a.shape().rank() == 2, "a bias_gradient needs a transposed a of rank 2");
  check.floating("bias_gradient", epilogue.bias_gradient).shape("bias_gradient", epilogue.bias_gradient, {extents.m});
}

}  // namespace

MatmulExtents matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
                     bool accumulate, const Tensor& out) {
  const Check check("matmul");
  check.floating("a", a).rank_at_least("a", a, 2).dtype("b", b, a.dtype()).rank_at_least("b", b, 2);
  const bool batched = a.shape().rank() == 3;
  const auto operands = [&](const char* fault) {
    return "a " + a.shape().str() + (transpose_a ? " transposed" : "") + " and b " + b.shape().str() +
           (transpose_b ? " transposed" : "") + fault;
  };
  check.that(a.shape().rank() <= 3 && a.shape().rank() == b.shape().rank() && (!batched || a.size(0) == b.size(0)),
             [&] { return operands(" must both have rank 2, or rank 3 with equal first extents"); });
  const MatmulExtents extents{.batch = batched ? a.size(0) : 1,
                              .m = a.size(transpose_a ? -1 : -2),
                              .n = b.size(transpose_b ? -2 : -1),
                              .k = a.size(transpose_a ? -2 : -1)};
  check.that(b.size(transpose_b ? -1 : -2) == extents.k,
             [&] { return operands(" differ in the dimension that is summed over"); });
  check.shape("out", out, batched ? Shape{extents.batch, extents.m, extents.n} : Shape{extents.m, extents.n});
  if (out.dtype() != DType::kFloat32) check.dtype("out", out, a.dtype());
  epilogue_of(check, epilogue, extents, transpose_a, accumulate, a, out);
  return extents;
}

void softmax(const Tensor& x, const Tensor& y) {
  Check("softmax").floating("x", x).rank_at_least("x", x, 1).like("y", y, x);
}

void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  Check("softmax_backward").floating("y", y).rank_at_least("y", y, 1).like("dy", dy, y).like("dx", dx, y);
}

void cross_entropy(const Tensor& logits, const CrossEntropyTargets& targets, const Tensor& loss,
                   const Tensor& log_sum_exp) {
  const Check check("cross_entropy");
  check.floating("logits", logits).rank_at_least("logits", logits, 1);
  const std::int64_t rows = logits.shape().rows();
  const DType dtype = accumulation_dtype(logits.dtype());
  check.dtype("targets", targets.classes, DType::kInt64).numel("targets", targets.classes, rows);
  if (targets.class_weights.defined()) {
    check.dtype("class_weights", targets.class_weights, dtype)
        .numel("class_weights", targets.class_weights, logits.shape().back());
  }
  if (targets.row_weights.defined()) {
    check.dtype("row_weights", targets.row_weights, dtype).numel("row_weights", targets.row_weights, rows);
  }
  check.dtype("loss", loss, dtype).numel("loss", loss, 1);
  check.dtype("log_sum_exp", log_sum_exp, dtype).numel("log_sum_exp", log_sum_exp, rows);
  if (!(targets.label_smoothing >= 0 && targets.label_smoothing <= 1)) {
    throw UsageError("cross_entropy: label_smoothing must be in [0, 1], found " +
                     std::to_string(targets.label_smoothing));
  }
}

void target_out_of_range(std::int64_t row, std::int64_t value, std::int64_t classes) {
  throw UsageError("cross_entropy: the target of row " + std::to_string(row) + " is " + std::to_string(value) +
                       ", outside [0, " + std::to_string(classes) + ")",
                   "Check the labels of the data set against the model's number of classes.");
}

void pair_loss(const Tensor& x, const Tensor& target, const Tensor& loss) {
  const Check check("pair_loss");
  check.floating("x", x).shape("target", target, x.shape());
  if (target.dtype() != accumulation_dtype(x.dtype())) check.dtype("target", target, x.dtype());
  check.numel("loss", loss, 1).dtype("loss", loss, accumulation_dtype(x.dtype()));
}

void pair_loss_backward(const Tensor& x, const Tensor& target, PairSide side, const Tensor& dloss,
                        const Tensor& gradient) {
  pair_loss(x, target, dloss);
  same("pair_loss_backward", side == PairSide::kX ? x : target, gradient);
}

}  // namespace lockstep::kernels::checks
