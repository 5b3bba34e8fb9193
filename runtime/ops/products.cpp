// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/products.h"

#include <fmt/format.h>

#include <limits>

#include "runtime/autograd/cast.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

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
      : a(amp::autocast(op, first)), b(amp::autocast(op, second)) {
    require_rank(op, a, rank_a);
    require_rank(op, b, rank_b);
  }
};

Tensor column(const Tensor& v) { return reshape(v, {v.numel(), 1}); }

Tensor times_column(const Tensor& a, const Tensor& v) { return reshape(matmul(a, column(v)), {a.size(0)}); }

Tensor combined(amp::Op op, const Tensor& input_in, const Tensor& product, const AddOptions& options) {
  const Tensor scaled = options.alpha == 1 ? product : scale(product, options.alpha);
  if (options.beta == 0) return scaled;
  const Tensor input = amp::autocast(op, input_in);
  if (input.dtype() != product.dtype()) {
    throw ShapeError(
        fmt::format("{} of {} and a product {}: they need one dtype", name_of(op), describe(input), describe(product)));
  }
  return add(expand(options.beta == 1 ? input : scale(input, options.beta), product.shape()), scaled);
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

Tensor dot(const Tensor& first, const Tensor& second) {
  const auto [a, b] = Operands(amp::Op::kDot, first, second);
  require_rank(amp::Op::kDot, a, 1);
  require_rank(amp::Op::kDot, b, 1);
  const WithoutAutocast as_they_are;
  return reshape(matmul(reshape(a, {1, a.numel()}), column(b)), {});
}

Tensor vecdot(const Tensor& first, const Tensor& second, int dim) {
  const Tensor a = amp::autocast(amp::Op::kVecdot, first);
  const Tensor b = amp::autocast(amp::Op::kVecdot, second);
  const DType dtype = promote(a.dtype(), b.dtype());
  const WithoutAutocast as_they_are;
  // Products of 16-bit numbers are exact in float32.
  const DType wide = wide_of(dtype);
  return autograd::cast(sum(mul(autograd::cast(a, wide), autograd::cast(b, wide)), dim), dtype);
}

Tensor addmm(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, b] = Factors(amp::Op::kAddmm, first, 2, second, 2);
  const Tensor summand = amp::autocast(amp::Op::kAddmm, input);
  const WithoutAutocast as_they_are;
  return combined(amp::Op::kAddmm, summand, matmul(a, b), options);
}

Tensor addmv(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, v] = Factors(amp::Op::kAddmv, first, 2, second, 1);
  const Tensor summand = amp::autocast(amp::Op::kAddmv, input);
  const WithoutAutocast as_they_are;
  return combined(amp::Op::kAddmv, summand, times_column(a, v), options);
}

Tensor addr(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [u, v] = Factors(amp::Op::kAddr, first, 1, second, 1);
  const Tensor summand = amp::autocast(amp::Op::kAddr, input);
  const WithoutAutocast as_they_are;
  return combined(amp::Op::kAddr, summand, mul(column(u), reshape(v, {1, v.numel()})), options);
}

Tensor addbmm(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, b] = Factors(amp::Op::kAddbmm, first, 3, second, 3);
  if (a.size(0) != b.size(0) || a.size(2) != b.size(1)) {
    throw ShapeError("addbmm of " + describe(a) + " and " + describe(b));
  }
  const Tensor summand = amp::autocast(amp::Op::kAddbmm, input);
  const WithoutAutocast as_they_are;
  // The batch is a part of what is summed over.
  const std::int64_t inner = a.size(0) * a.size(2);
  const Tensor wide = reshape(permute(a, {1, 0, 2}), {a.size(1), inner});
  return combined(amp::Op::kAddbmm, summand, matmul(wide, reshape(b, {inner, b.size(2)})), options);
}

Tensor baddbmm(const Tensor& input, const Tensor& first, const Tensor& second, const AddOptions& options) {
  const auto [a, b] = Factors(amp::Op::kBaddbmm, first, 3, second, 3);
  const Tensor summand = amp::autocast(amp::Op::kBaddbmm, input);
  const WithoutAutocast as_they_are;
  return combined(amp::Op::kBaddbmm, summand, matmul(a, b), options);
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

}  // namespace lockstep::ops
