// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

void softmax(const Tensor& x, bool log, const Tensor& y) {
  checks::softmax(x, y);
  if (!is_fast(x)) return reference::kSoftmax.softmax(x, log, y);
  if (x.numel() == 0) return;
  const std::int64_t channels = x.shape().back();
  parallel_rows(x.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    loops().softmax(input(x).from(first * channels), log, output(y).from(first * channels), rows, channels);
  });
}

void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  checks::softmax_backward(y, dy, dx);
  if (!is_fast(y)) return reference::kSoftmax.softmax_backward(y, log, dy, dx);
  if (y.numel() == 0) return;
  const std::int64_t channels = y.shape().back();
  parallel_rows(y.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    loops().softmax_backward(input(y).from(first * channels), log, input(dy).from(first * channels),
                             output(dx).from(first * channels), rows, channels);
  });
}

}  // namespace

const Softmax kSoftmax{.softmax = softmax, .softmax_backward = softmax_backward};

}  // namespace lockstep::kernels::cpu
