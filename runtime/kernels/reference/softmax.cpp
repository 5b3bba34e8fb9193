// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reference/softmax.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"
#include "runtime/kernels/softmax.h"

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

void normalize_row(std::span<double> row, bool log) {
  const double norm = log_sum_exp(row);
  for (double& value : row) value = log ? value - norm : std::exp(value - norm);
}

/// The gradient takes the place of dy.
void normalize_backward(std::span<const double> y, bool log, std::span<double> dy) {
  double sum = 0;
  for (std::size_t c = 0; c < y.size(); ++c) sum += log ? dy[c] : dy[c] * y[c];
  for (std::size_t c = 0; c < y.size(); ++c) dy[c] = log ? dy[c] - std::exp(y[c]) * sum : y[c] * (dy[c] - sum);
}

void softmax(const Tensor& x, bool log, const Tensor& y) {
  checks::softmax(x, y);
  Values values = load(x);
  for_each_row(values, x.shape().back(), [&](std::size_t, std::span<double> row) { normalize_row(row, log); });
  store(values, y);
}

void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  checks::softmax_backward(y, dy, dx);
  const Values output = load(y);
  Values gradient = load(dy);
  for_each_row(gradient, y.shape().back(), [&](std::size_t first, std::span<double> row) {
    normalize_backward({output.data() + first, row.size()}, log, row);
  });
  store(gradient, dx);
}

/// The elements (o, k, i) of all k, one behind the other.
Values column_of(const Values& values, const checks::Middle& extents, std::int64_t o, std::int64_t i) {
  Values column;
  for (std::int64_t k = 0; k < extents.n; ++k) {
    column.push_back(values[static_cast<std::size_t>((o * extents.n + k) * extents.inner + i)]);
  }
  return column;
}

/// values(o, k, i) = of_column(o, i)[k]
template <class F>
void set_columns(Values& values, const checks::Middle& extents, F of_column) {
  for (std::int64_t o = 0; o < extents.outer; ++o) {
    for (std::int64_t i = 0; i < extents.inner; ++i) {
      const Values column = of_column(o, i);
      for (std::int64_t k = 0; k < extents.n; ++k) {
        values[static_cast<std::size_t>((o * extents.n + k) * extents.inner + i)] = column[static_cast<std::size_t>(k)];
      }
    }
  }
}

void softmax_middle(const Tensor& x, bool log, const Tensor& y) {
  const checks::Middle extents = checks::softmax_middle(x, y);
  Values values = load(x);
  set_columns(values, extents, [&](std::int64_t o, std::int64_t i) {
    Values column = column_of(values, extents, o, i);
    normalize_row(column, log);
    return column;
  });
  store(values, y);
}

void softmax_middle_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  const checks::Middle extents = checks::softmax_middle_backward(y, dy, dx);
  const Values output = load(y);
  Values gradient = load(dy);
  set_columns(gradient, extents, [&](std::int64_t o, std::int64_t i) {
    Values column = column_of(gradient, extents, o, i);
    normalize_backward(column_of(output, extents, o, i), log, column);
    return column;
  });
  store(gradient, dx);
}

}  // namespace

const Softmax kSoftmax{.softmax = softmax,
                       .softmax_backward = softmax_backward,
                       .softmax_middle = softmax_middle,
                       .softmax_middle_backward = softmax_middle_backward};

}  // namespace lockstep::kernels::reference
