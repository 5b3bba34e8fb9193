// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reference/softmax.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

double log_sum_exp(std::span<const double> row) {
  if (row.empty()) return -INFINITY;
  const double largest = *std::ranges::max_element(row);
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double value : row) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

namespace {

void softmax(const Tensor& x, bool log, const Tensor& y) {
  checks::softmax(x, y);
  Values values = load(x);
  for_each_row(values, x.shape().back(), [&](std::size_t, std::span<double> row) {
    const double norm = log_sum_exp(row);
    for (double& value : row) value = log ? value - norm : std::exp(value - norm);
  });
  store(values, y);
}

void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  checks::softmax_backward(y, dy, dx);
  const Values output = load(y);
  Values gradient = load(dy);
  for_each_row(gradient, y.shape().back(), [&](std::size_t first, std::span<double> row) {
    const double* out = output.data() + first;
    double sum = 0;
    for (std::size_t c = 0; c < row.size(); ++c) sum += log ? row[c] : row[c] * out[c];
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = log ? row[c] - std::exp(out[c]) * sum : out[c] * (row[c] - sum);
    }
  });
  store(gradient, dx);
}

}  // namespace

const Softmax kSoftmax{.softmax = softmax, .softmax_backward = softmax_backward};

}  // namespace lockstep::kernels::reference
