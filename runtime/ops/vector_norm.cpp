// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/vector_norm.h"

#include <cmath>

#include "runtime/autograd/cast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/dim_sums.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/unary.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;
using kernels::Term;

namespace {

/// -1, 0 or 1, a constant. Unlike sign() NaN for NaN: a GradScaler must see it in the gradient.
Tensor sign_of(const Tensor& x) {
  const Tensor at = x.detach();
  return where(gt(at, 0), 1, where(lt(at, 0), -1, at));
}

/// The root of the sum of squares over the marked dimensions, which stay.
Tensor length(amp::Op op, const Tensor& x, const DimSet& dims, DType dtype) {
  const Tensor squares = sum_over(x, dims, Term::kSquare, 1.0, wide_of(dtype));
  const Tensor root = Tensor::empty(squares.shape(), squares.dtype(), x.device());
  {
    const autograd::NoGrad values;
    kernels::cast(sqrt(squares), root);
  }
  const Tensor y = Tensor::empty(squares.shape(), dtype, x.device());
  kernels::cast(root, y);
  autograd::record(y, name_of(op), {x},
                   {.recorded = [x = SavedTensor::in_graph(x), y = SavedTensor(y)](const Tensor& dy,
                                                                                   const BackwardContext& context) {
                     const Tensor norm = context.result(y);
                     const Tensor none = eq(norm.detach(), 0);
                     const Tensor factor = where(none, 0, div(dy, where(none, 1, norm)));
                     return std::vector<Tensor>{mul(context.saved(x), factor)};
                   }});
  return y;
}

/// The sum of |x| over the marked dimensions, which stay.
Tensor sum_of_sizes(amp::Op op, const Tensor& x, const DimSet& dims, DType dtype) {
  const Tensor y = sum_over(x, dims, Term::kAbsolute, 1.0, dtype);
  autograd::record(y, name_of(op), {x},
                   {.recorded = [x = SavedTensor(x)](const Tensor& dy, const BackwardContext& context) {
                     return std::vector<Tensor>{mul(sign_of(context.saved(x)), dy)};
                   }});
  return y;
}

/// x as it is read and the dtype of its norm.
struct Measured {
  Tensor x;
  DType dtype;

  Measured(amp::Op op, const Tensor& input, const NormOptions& options)
      : x((require_defined(input, name_of(op), "the input"), input)),
        dtype(options.dtype ? *options.dtype : amp::dtype_for(op, input)) {
    if (options.dtype) x = autograd::cast(input, *options.dtype);
    // A kernel reads 16-bit dtypes exactly, and what is made of operations does not have to.
    if (!is_floating(input.dtype())) throw ShapeError(std::string(name_of(op)) + " of " + describe(input));
  }
};

/// x^exponent for x >= 0 and an exponent > 0. Below 1 it has an infinite slope at 0, which becomes 0, as PyTorch's
/// norms have it.
Tensor power_with_slope(const Tensor& x, double exponent) {
  if (exponent >= 1) return pow(x, exponent);
  const Tensor none = eq(x.detach(), 0);
  return where(none, 0, pow(where(none, 1, x), exponent));
}

/// The root of the sum of powers, in steps.
Tensor root_of_powers(const Tensor& x, double order, const Dims& dims) {
  if (order < 0) return pow(sum(pow(abs(x), order), dims, {.keepdim = true}), 1 / order);
  return power_with_slope(sum(power_with_slope(abs(x), order), dims, {.keepdim = true}), 1 / order);
}

Tensor vector_norm_of(amp::Op op, const Measured& measured, double order, const DimSet& set, const Dims& dims) {
  const auto& [x, dtype] = measured;
  if (order == 2) return length(op, x, set, dtype);
  if (order == 1) return sum_of_sizes(op, x, set, dtype);
  if (order == kInfinite) return autograd::cast(amax(abs(x), dims, true), dtype);
  if (order == -kInfinite) return autograd::cast(amin(abs(x), dims, true), dtype);
  const Tensor wide = autograd::cast(x, wide_of(dtype));
  if (order == 0)
    return autograd::cast(sum(where(ne(wide.detach(), 0), 1, zeros_like(wide)), dims, {.keepdim = true}), dtype);
  return autograd::cast(root_of_powers(wide, order, dims), dtype);
}

}  // namespace

Tensor vector_norm(const Tensor& input, double order, const Dims& dims, const NormOptions& options) {
  if (std::isnan(order)) throw UsageError("vector_norm of order NaN");
  const Measured measured(amp::Op::kVectorNorm, input, options);
  const Shape& shape = measured.x.shape();
  const DimSet set = dims_of("vector_norm", dims, shape.rank());
  const WithoutAutocast as_it_is;
  return reshape(vector_norm_of(amp::Op::kVectorNorm, measured, order, set, dims),
                 reduced_shape(shape, set, options.keepdim));
}

Tensor renorm(const Tensor& input, double order, int dim_in, double longest) {
  if (!(order > 0)) throw UsageError("renorm of order " + std::to_string(order) + ", which is not above 0");
  if (!(longest >= 0)) throw UsageError("renorm to the length " + std::to_string(longest) + ", which is below 0");
  const Tensor x = amp::autocast(amp::Op::kRenorm, input);
  if (x.shape().rank() < 2) throw ShapeError("renorm of " + describe(x) + ": expected rank 2 or more");
  const int dim = dim_of("renorm", dim_in, x);
  std::vector<int> others;
  for (int d = 0; d < x.shape().rank(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const WithoutAutocast as_it_is;
  const Tensor wide = autograd::cast(x, wide_of(x.dtype()));
  const Tensor length = vector_norm(wide, order, Dims(others), {.keepdim = true});
  // The 1e-7 is PyTorch's.
  const Tensor factor = where(gt(length, longest), div(longest, add(length, 1e-7)), 1);
  return autograd::cast(mul(wide, factor), x.dtype());
}

Tensor matrix_norm(const Tensor& input, MatrixNorm norm, const NormOptions& options) {
  const Measured measured(amp::Op::kMatrixNorm, input, options);
  const Shape& shape = measured.x.shape();
  if (shape.rank() < 2) throw ShapeError("matrix_norm of " + describe(input) + ": expected rank 2 or more");
  const DimSet both = dims_of("matrix_norm", {-2, -1}, shape.rank());
  const WithoutAutocast as_it_is;
  const auto largest_sum = [&](int along) {
    const DimSet one = dims_of("matrix_norm", along, shape.rank());
    const Tensor sums = sum_of_sizes(amp::Op::kMatrixNorm, measured.x, one, wide_of(measured.dtype));
    return autograd::cast(amax(sums, {-2, -1}, true), measured.dtype);
  };
  const Tensor y = norm == MatrixNorm::kFrobenius ? length(amp::Op::kMatrixNorm, measured.x, both, measured.dtype)
                                                  : largest_sum(norm == MatrixNorm::kOne ? -2 : -1);
  return reshape(y, reduced_shape(shape, both, options.keepdim));
}

Tensor cosine_similarity(const Tensor& first, const Tensor& second, int dim_in, double epsilon) {
  const Tensor a = amp::autocast(amp::Op::kCosineSimilarity, first, "the first operand");
  const Tensor b = amp::autocast(amp::Op::kCosineSimilarity, second, "the second operand");
  const DType dtype = promote(a.dtype(), b.dtype());
  const Shape shape = kernels::broadcast_shape("cosine_similarity", a.shape(), b.shape());
  const int dim = dim_of("cosine_similarity", dim_in, shape.rank());
  const WithoutAutocast as_they_are;
  const auto direction = [&](const Tensor& x) {
    // An element repeated along the dimension counts each time. Repetition along other dimensions keeps the direction.
    const bool whole = x.shape().rank() == shape.rank() && (shape.rank() == 0 || x.size(dim) == shape[dim]);
    const Tensor numbers = autograd::cast(x, wide_of(dtype)), wide = whole ? numbers : expand(numbers, shape);
    return div(wide, clamp(vector_norm(wide, 2, dim, {.keepdim = true}), epsilon));
  };
  return autograd::cast(sum(mul(direction(a), direction(b)), dim), dtype);
}

Tensor logsumexp(const Tensor& input, const Dims& dims, bool keepdim) {
  const Tensor x = amp::autocast(amp::Op::kLogsumexp, input);
  const DimSet set = dims_of("logsumexp", dims, x);
  const WithoutAutocast as_it_is;
  const Tensor wide = autograd::cast(x, wide_of(x.dtype()));
  const Shape kept = reduced_shape(x.shape(), set, true);
  Tensor largest = full(kept, 0, {wide.dtype(), wide.device()});
  if (wide.numel() > 0) {
    // An infinite one would give infinity less infinity.
    const Tensor found = amax(wide.detach(), dims, true);
    largest = where(eq(abs(found), kInfinite), largest, found);
  }
  const Tensor y = add(log(sum(exp(sub(wide, largest)), dims, {.keepdim = true})), largest);
  return autograd::cast(reshape(y, reduced_shape(x.shape(), set, keepdim)), x.dtype());
}

}  // namespace lockstep::ops
