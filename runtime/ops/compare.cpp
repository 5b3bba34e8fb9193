// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/compare.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/integers.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;
using kernels::Binary;

namespace {

Tensor compare(Binary function, const Tensor& first, const Tensor& second) {
  if (are_integers(amp::Op::kCompare, first, second)) {
    return compare(function, cast(first.detach(), DType::kFloat64), cast(second.detach(), DType::kFloat64));
  }
  const auto [a, b] = Operands(amp::Op::kCompare, first, second);
  const Shape shape = kernels::broadcast_shape(name_of(function), a.shape(), b.shape());
  const Tensor out = Tensor::empty(shape, DType::kBool, a.device());
  kernels::Elementwise::on(a.device()).binary(function, a, b, out);
  autograd::record(out, name_of(amp::Op::kCompare), {a, b}, {});
  autograd::note_options(out, BinaryOptions{.function = function});
  return out;
}

Tensor compare(Binary function, const Tensor& first, double second) {
  if (counts_in_integers(amp::Op::kCompare, first, {})) {
    return compare(function, cast(first.detach(), DType::kFloat64), second);
  }
  const Tensor a = amp::autocast(amp::Op::kCompare, first);
  const Tensor out = Tensor::empty(a.shape(), DType::kBool, a.device());
  kernels::Elementwise::on(a.device()).binary_with_number(function, a, second, false, out);
  autograd::record(out, name_of(amp::Op::kCompare), {a}, {});
  autograd::note_options(out, BinaryOptions{function, true, second, false});
  return out;
}

/// The number as a scalar that any shape broadcasts.
Tensor scalar_like(const Tensor& tensor, double value) {
  require_defined(tensor, "where", "the other operand");
  return new_full(tensor, {}, value);
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare(Binary::kEqual, a, b); }
Tensor eq(const Tensor& a, double b) { return compare(Binary::kEqual, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare(Binary::kNotEqual, a, b); }
Tensor ne(const Tensor& a, double b) { return compare(Binary::kNotEqual, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare(Binary::kLess, a, b); }
Tensor lt(const Tensor& a, double b) { return compare(Binary::kLess, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare(Binary::kLessEqual, a, b); }
Tensor le(const Tensor& a, double b) { return compare(Binary::kLessEqual, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare(Binary::kGreater, a, b); }
Tensor gt(const Tensor& a, double b) { return compare(Binary::kGreater, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare(Binary::kGreaterEqual, a, b); }
Tensor ge(const Tensor& a, double b) { return compare(Binary::kGreaterEqual, a, b); }

Tensor where(const Tensor& condition, const Tensor& first, const Tensor& second) {
  require_defined(condition, "where", "the condition");
  const auto [a, b] = Operands(amp::Op::kWhere, first, second);
  const Shape shape =
      kernels::broadcast_shape("where", kernels::broadcast_shape("where", condition.shape(), a.shape()), b.shape());
  const Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  kernels::Elementwise::on(a.device()).ternary({kernels::Ternary::kWhere}, condition, a, b, out);
  autograd::record(out, "where", {a, b},
                   {.recorded = [condition = SavedTensor(condition), of_a = a.shape(), of_b = b.shape()](
                                    const Tensor& dy, const BackwardContext& context) {
                     const Tensor& holds = context.saved(condition);
                     std::vector<Tensor> grads(2);
                     if (context.needs(0)) grads[0] = sum_to(where(holds, dy, 0), of_a);
                     if (context.needs(1)) grads[1] = sum_to(where(holds, 0, dy), of_b);
                     return grads;
                   }});
  return out;
}

Tensor where(const Tensor& condition, const Tensor& a, double b) { return where(condition, a, scalar_like(a, b)); }
Tensor where(const Tensor& condition, double a, const Tensor& b) { return where(condition, scalar_like(b, a), b); }

}  // namespace lockstep::ops
