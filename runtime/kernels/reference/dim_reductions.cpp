// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/dim_reductions.h"

#include <cmath>

#include "runtime/kernels/functors/extreme.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// Calls f(at, first, stride, n) for every element `at` of the result, which is made of n elements from `first` on.
template <class F>
void for_each_result(const checks::Middle& x, F f) {
  for (std::int64_t at = 0; at < x.outer * x.inner; ++at) {
    f(static_cast<std::size_t>(at), static_cast<std::size_t>(at / x.inner * x.n * x.inner + at % x.inner),
      static_cast<std::size_t>(x.inner), static_cast<std::size_t>(x.n));
  }
}

double term_of(Term term, double x) {
  switch (term) {
    case Term::kValue:
      return x;
    case Term::kAbsolute:
      return std::abs(x);
    case Term::kSquare:
      return x * x;
  }
  return x;
}

void sum_dim(const Tensor& x, Term term, double factor, const Tensor& out) {
  const checks::Middle extents = checks::sum_dim(x, out);
  const Values values = load(x);
  Values sums(static_cast<std::size_t>(out.numel()));
  for_each_result(extents, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t n) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += term_of(term, values[first + k * stride]);
    sums[at] = factor * sum;
  });
  store(sums, out);
}

void variance_dim(const Tensor& x, double divisor, const Tensor& variance) {
  const checks::Middle extents = checks::variance_dim(x, variance);
  const Values values = load(x);
  Values variances(static_cast<std::size_t>(variance.numel()));
  for_each_result(extents, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t n) {
    double mean = 0;
    for (std::size_t k = 0; k < n; ++k) mean += values[first + k * stride] / static_cast<double>(n);
    double squares = 0;
    for (std::size_t k = 0; k < n; ++k) squares += std::pow(values[first + k * stride] - mean, 2);
    variances[at] = divisor > 0 ? squares / divisor : NAN;
  });
  store(variances, variance);
}

void extreme_dim(const Tensor& x, Extreme which, const Tensor& values, const Tensor& indices) {
  const checks::Middle extents = checks::extreme_dim(x, values, indices);
  const Values all = load(x);
  Values found(static_cast<std::size_t>(extents.outer * extents.inner)), places(found.size());
  for_each_result(extents, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t n) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < n; ++k) {
      if (is_more_extreme(which, all[first + k * stride], all[first + best * stride])) best = k;
    }
    found[at] = all[first + best * stride];
    places[at] = static_cast<double>(best);
  });
  if (values.defined()) store(found, values);
  if (indices.defined()) store(places, indices);
}

void extreme_shares(const Tensor& x, const Tensor& extremes, const Tensor& shares) {
  const checks::Middle extents = checks::extreme_shares(x, extremes, shares);
  const Values values = load(x), of = load(extremes);
  Values result(values.size());
  for_each_result(extents, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t n) {
    double count = 0;
    for (std::size_t k = 0; k < n; ++k) count += is_extreme(values[first + k * stride], of[at]) ? 1 : 0;
    for (std::size_t k = 0; k < n; ++k) {
      result[first + k * stride] = is_extreme(values[first + k * stride], of[at]) ? 1 / count : 0;
    }
  });
  store(result, shares);
}

}  // namespace

const DimReductions kDimReductions{
    .sum_dim = sum_dim, .variance_dim = variance_dim, .extreme_dim = extreme_dim, .extreme_shares = extreme_shares};

}  // namespace lockstep::kernels::reference
