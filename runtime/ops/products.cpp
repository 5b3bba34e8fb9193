// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/products.h"

#include <fmt/format.h>

#include <limits>

#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/matmul.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

void require_rank(amp::Op op, const Tensor& x, int rank) {
  if (x.shape().rank() != rank) {
    throw ShapeError(fmt::format("{}: expected a tensor of rank {}, found {}", name_of(op), rank, describe(x)));
  }
}

/// Two operands of these ranks in the dtype in which the operation runs.
struct Factors {
  Tensor a, b;

  Factors(amp::Op op, const Tensor& first, int rank_a, const Tensor& second, int rank_b)
      : a(amp::autocast(op, first, "the first operand")), b(amp::autocast(op, second, "the second operand")) {
    require_rank(op, a, rank_a);
    require_rank(op, b, rank_b);
  }
};

Tensor column(const Tensor& v) { return reshape(v, {v.numel(), 1}); }

Tensor times_column(const Tensor& a, const Tensor& v) { return reshape(matmul(a, column(v)), {a.size(0)}); }

/// alpha a b of matrices or batches of them, float32 for 16-bit operands: neither the product nor its gradients are
/// rounded before alpha multiplies them.
Tensor wide_product(const Tensor& a, const Tensor& b, double alpha);

/// The values that the backward pass of wide_product keeps.
struct WideProduct {
  SavedTensor a;
  SavedTensor b;
  double alpha;

  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(2);
    const kernels::MatrixProducts& matrix_products = kernels::MatrixProducts::on(dy.device());
    Tensor slope = dy;
    if (dy.dtype() != a.peek().dtype()) {  // it comes from a 16-bit sum, whose dtype holds it exactly
      slope = Tensor::empty(dy.shape(), a.peek().dtype(), dy.device());
      kernels::cast(dy, slope);
    }
    const auto gradient = [&](const Tensor& of, const Tensor& left, bool transpose_left, const Tensor& right,
                              bool transpose_right) {
      const Tensor wide = Tensor::empty(of.shape(), wide_of(of.dtype()), of.device());
      matrix_products.matmul(left, transpose_left, right, transpose_right, {}, false, wide);
      if (alpha != 1) kernels::scale(wide, alpha, nullptr, wide);
      return wide;
    };
    if (context.needs(0)) grads[0] = gradient(a.peek(), slope, false, context.saved(b), true);
    if (context.needs(1)) grads[1] = gradient(b.peek(), context.saved(a), true, slope, false);
    return grads;
  }

  std::vector<Tensor> recorded(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(2);
    const auto gradient = [&](const Tensor& product) { return alpha == 1 ? product : scale(product, alpha); };
    const DType wide = wide_of(a.peek().dtype());
    if (context.needs(0)) grads[0] = gradient(matmul(dy, false, autograd::cast(context.saved(b), wide), true));
    if (context.needs(1)) grads[1] = gradient(matmul(autograd::cast(context.saved(a), wide), true, dy, false));
    return grads;
  }
};

Tensor wide_product(const Tensor& a, const Tensor& b, double alpha) {
  const int rank = a.shape().rank();
  if (b.shape().rank() != rank || a.size(-1) != b.size(-2) || (rank == 3 && a.size(0) != b.size(0))) {
    throw ShapeError("a product of " + describe(a) + " and " + describe(b));
  }
  const Tensor y = Tensor::empty(a.shape().with(-1, b.size(-1)), wide_of(a.dtype()), a.device());
  const kernels::MatrixProducts& matrix_products = kernels::MatrixProducts::on(a.device());
  matrix_products.matmul(a, false, b, false, {}, false, y);
  if (alpha != 1) kernels::scale(y, alpha, nullptr, y);
  autograd::record(y, name_of(amp::Op::kMatmul), {a, b},
                   both_of(WideProduct{SavedTensor::in_graph(a), SavedTensor::in_graph(b), alpha}));
  return y;
}

/// The wide product plus beta times the input, rounded to the operands' dtype.
Tensor sum_of(amp::Op op, const Tensor& input, const Tensor& product, DType dtype, double beta) {
  if (beta == 0) return autograd::cast(product, dtype);
  require_defined(input, name_of(op), "the input");
  if (input.dtype() != dtype) {
    throw ShapeError(fmt::format("{} of {} and a product of {}: they need one dtype", name_of(op), describe(input),
                                 lockstep::name_of(dtype)));
  }
  const Tensor summand = autograd::cast(input, product.dtype());
  return autograd::cast(add(expand(beta == 1 ? summand : scale(summand, beta), product.shape()), product), dtype);
}

}  // namespace

Tensor mm(const Tensor& first, const Tensor& second) {
  const auto [a, b] = Factors(amp::Op::kMm, first, 2, second, 2);
  const WithoutAutocast as_they_are;
  return matmul(a, b);
}

Tensor bmm(const Tensor& first, const Tensor& second) {
  const auto [a, b] = Factors(amp::Op::kBmm, first, 3, second, 3);
  const WithoutAutocast as_they_are;
  return matmul(a, b);
}

Tensor mv(const Tensor& first, const Tensor& second) {
  const auto [a, v] = Factors(amp::Op::kMv, first, 2, second, 1);
  const WithoutAutocast as_they_are;
  return times_column(a, v);
}

namespace {

Tensor dot(amp::Op op, const Tensor& first, const Tensor& second) {
  const auto [a, b] = Operands(op, first, second);
  require_rank(op, a, 1);
  require_rank(op, b, 1);
  const WithoutAutocast as_they_are;
  return reshape(matmul(reshape(a, {1, a.numel()}), column(b)), {});
}

}  // namespace

Tensor dot(const Tensor& a, const Tensor& b) { return dot(amp::Op::kDot, a, b); }
Tensor vdot(const Tensor& a, const Tensor& b) { return dot(amp::Op::kVdot, a, b); }

Tensor bilinear(const Tensor& first, const Tensor& second, const Tensor& weight_in, const Tensor& bias_in) {
  constexpr amp::Op kOp = amp::Op::kBilinear;
  const auto [a, b] = Operands(kOp, first, second);
  const auto [with_weight, weight] = Operands(kOp, a, weight_in);
  const DType dtype = weight.dtype();
  const bool fits = a.shape().rank() >= 1 && b.shape().rank() == a.shape().rank() && weight.shape().rank() == 3 &&
                    a.size(-1) == weight.size(1) && b.size(-1) == weight.size(2) &&
                    b.shape().with(-1, 1) == a.shape().with(-1, 1);
  if (!fits || (bias_in.defined() && bias_in.numel() != weight.size(0))) {
    throw ShapeError("bilinear of " + describe(first) + " and " + describe(second) + " with a weight " +
                     describe(weight_in) + (bias_in.defined() ? " and a bias " + describe(bias_in) : ""));
  }
  const WithoutAutocast as_they_are;
  const DType wide = wide_of(dtype);
  const std::int64_t rows = a.shape().rows();
  const auto as_rows = [&](const Tensor& x) { return reshape(autograd::cast(x, wide), {rows, x.size(-1)}); };
  const Tensor of_a = einsum("ni,oij->noj", as_rows(a), autograd::cast(weight, wide));
  Tensor y = reshape(einsum("noj,nj->no", of_a, as_rows(b)), a.shape().with(-1, weight.size(0)));
  if (bias_in.defined()) y = add(y, autograd::cast(bias_in, wide));
  return autograd::cast(y, dtype);
}

Tensor vecdot(const Tensor& first, const Tensor& second, int dim) {
  const Tensor a = amp::autocast(amp::Op::kVecdot, first, "the first operand");
  const Tensor b = amp::autocast(amp::Op::kVecdot, second, "the second operand");
  const DType dtype = promote(a.dtype(), b.dtype());
  const WithoutAutocast as_they_are;
  // Products of 16-bit numbers are exact in float32.
  const DType wide = wide_of(dtype);
  return autograd::cast(sum(mul(autograd::cast(a, wide), autograd::cast(b, wide)), dim), dtype);
}

Tensor addmm(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, b] = Factors(amp::Op::kAddmm, first, 2, second, 2);
  const Tensor summand = amp::autocast_if_defined(amp::Op::kAddmm, input);
  const WithoutAutocast as_they_are;
  return sum_of(amp::Op::kAddmm, summand, wide_product(a, b, options.alpha), a.dtype(), options.beta);
}

Tensor addmv(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, v] = Factors(amp::Op::kAddmv, first, 2, second, 1);
  const Tensor summand = amp::autocast_if_defined(amp::Op::kAddmv, input);
  const WithoutAutocast as_they_are;
  const Tensor product = reshape(wide_product(a, column(v), options.alpha), {a.size(0)});
  return sum_of(amp::Op::kAddmv, summand, product, a.dtype(), options.beta);
}

Tensor addr(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [u, v] = Factors(amp::Op::kAddr, first, 1, second, 1);
  const Tensor summand = amp::autocast_if_defined(amp::Op::kAddr, input);
  const WithoutAutocast as_they_are;
  const DType wide = wide_of(u.dtype());
  const Tensor product = mul(autograd::cast(column(u), wide), autograd::cast(reshape(v, {1, v.numel()}), wide));
  const Tensor scaled = options.alpha == 1 ? product : scale(product, options.alpha);
  return sum_of(amp::Op::kAddr, summand, scaled, u.dtype(), options.beta);
}

Tensor addbmm(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, b] = Factors(amp::Op::kAddbmm, first, 3, second, 3);
  if (a.size(0) != b.size(0) || a.size(2) != b.size(1)) {
    throw ShapeError("addbmm of " + describe(a) + " and " + describe(b));
  }
  const Tensor summand = amp::autocast_if_defined(amp::Op::kAddbmm, input);
  const WithoutAutocast as_they_are;
  // The batch is a part of what is summed over.
  const std::int64_t inner = a.size(0) * a.size(2);
  const Tensor side_by_side = reshape(permute(a, {1, 0, 2}), {a.size(1), inner});
  const Tensor product = wide_product(side_by_side, reshape(b, {inner, b.size(2)}), options.alpha);
  return sum_of(amp::Op::kAddbmm, summand, product, a.dtype(), options.beta);
}

Tensor baddbmm(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, b] = Factors(amp::Op::kBaddbmm, first, 3, second, 3);
  const Tensor summand = amp::autocast_if_defined(amp::Op::kBaddbmm, input);
  const WithoutAutocast as_they_are;
  return sum_of(amp::Op::kBaddbmm, summand, wide_product(a, b, options.alpha), a.dtype(), options.beta);
}

namespace {

/// Multiplies matrices [first, last] where the table says to cut.
Tensor multiply_chain(const std::vector<Tensor>& matrices, const std::vector<std::vector<std::size_t>>& cuts,
                      std::size_t first, std::size_t last) {
  if (first == last) return matrices[first];
  const std::size_t cut = cuts[first][last];
  return matmul(multiply_chain(matrices, cuts, first, cut), multiply_chain(matrices, cuts, cut + 1, last));
}

/// cuts[i][j]: the last matrix of the left part of the cheapest product of matrices i to j.
std::vector<std::vector<std::size_t>> cheapest_cuts(const std::vector<Tensor>& matrices) {
  const std::size_t n = matrices.size();
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0.0));
  std::vector<std::vector<std::size_t>> cuts(n, std::vector<std::size_t>(n, 0));
  for (std::size_t length = 2; length <= n; ++length) {
    for (std::size_t i = 0; i + length <= n; ++i) {
      const std::size_t j = i + length - 1;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (std::size_t k = i; k < j; ++k) {
        const double product = static_cast<double>(matrices[i].size(0)) * static_cast<double>(matrices[k].size(1)) *
                               static_cast<double>(matrices[j].size(1));
        const double total = cost[i][k] + cost[k + 1][j] + product;
        if (total < cost[i][j]) {
          cost[i][j] = total;
          cuts[i][j] = k;
        }
      }
    }
  }
  return cuts;
}

}  // namespace

Tensor chain_matmul(const std::vector<Tensor>& matrices) {
  if (matrices.empty()) throw UsageError("chain_matmul of no matrices");
  std::vector<Tensor> factors;
  for (const Tensor& matrix : matrices) factors.push_back(amp::autocast(amp::Op::kChainMatmul, matrix));
  const bool row = matrices.size() > 1 && factors.front().shape().rank() == 1;
  const bool of_column = matrices.size() > 1 && factors.back().shape().rank() == 1;
  if (row) factors.front() = reshape(factors.front(), {1, factors.front().numel()});
  if (of_column) factors.back() = column(factors.back());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    require_rank(amp::Op::kChainMatmul, factors[i], 2);
    if (i > 0 && factors[i - 1].size(1) != factors[i].size(0)) {
      throw ShapeError("chain_matmul: " + describe(factors[i - 1]) + " before " + describe(factors[i]));
    }
  }
  const WithoutAutocast as_they_are;
  const Tensor product = multiply_chain(factors, cheapest_cuts(factors), 0, factors.size() - 1);
  if (!row && !of_column) return product;
  std::vector<std::int64_t> extents;
  if (!row) extents.push_back(product.size(0));
  if (!of_column) extents.push_back(product.size(1));
  return reshape(product, Shape(extents));
}

Tensor cross(const Tensor& a, const Tensor& b, int dim_in) {
  require_defined(a, "cross", "the first operand");
  require_defined(b, "cross", "the second operand");
  // Counted from the end, so that it is the same dimension of both operands where their ranks differ.
  const int dim = dim_of("cross", dim_in, std::max(a.shape().rank(), b.shape().rank())) -
                  std::max(a.shape().rank(), b.shape().rank());
  for (const Tensor* const operand : {&a, &b}) {
    if (operand->shape().rank() < -dim || operand->size(dim) != 3) {
      throw ShapeError("cross of " + describe(a) + " and " + describe(b) + ": the extent along the dimension is not 3");
    }
  }
  // In turn (1, 2, 0) and (2, 0, 1): y_i = a_j b_k - a_k b_j.
  return sub(mul(roll(a, -1, dim), roll(b, -2, dim)), mul(roll(a, -2, dim), roll(b, -1, dim)));
}

}  // namespace lockstep::ops
