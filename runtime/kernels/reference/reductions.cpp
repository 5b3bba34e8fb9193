// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reductions.h"

#include <numeric>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

void sum(const Tensor& x, double factor, const Tensor& out) {
  checks::sum(x, out);
  const Values values = load(x);
  store({factor * std::accumulate(values.begin(), values.end(), 0.0)}, out);
}

void sum_rows(const Tensor& x, bool accumulate, const Tensor& out) {
  checks::sum_rows(x, out);
  const Values values = load(x);
  Values sums = load_if(accumulate, out);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
  store(sums, out);
}

}  // namespace

const Reductions kReductions{.sum = sum, .sum_rows = sum_rows};

}  // namespace lockstep::kernels::reference
