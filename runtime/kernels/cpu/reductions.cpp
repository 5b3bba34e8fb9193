// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reductions.h"

#include "runtime/kernels/cpu/channel_sums.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

ChannelPartials partial_sums(const Tensor& x, std::int64_t rows, std::int64_t channels) {
  ChannelPartials partials(rows, channels, 1);
  partials.fill([&](std::int64_t chunk, std::int64_t first_element, std::int64_t chunk_rows) {
    loops().sum_rows(input(x).from(first_element), chunk_rows, channels, partials.at(chunk, 0));
  });
  return partials;
}

void sum(const Tensor& x, double factor, const Tensor& out) {
  checks::sum(x, out);
  if (!is_fast(x)) return reference::kReductions.sum(x, factor, out);
  kElementwise.fill(out, factor * partial_sums(x, x.numel(), 1).totals(0)[0]);
}

void sum_rows(const Tensor& x, bool accumulate_to_out, const Tensor& out) {
  checks::sum_rows(x, out);
  if (!is_fast(x) || !is_fast(out)) return reference::kReductions.sum_rows(x, accumulate_to_out, out);
  const std::int64_t channels = out.numel();
  const Tensor sums = Tensor::empty(out.shape(), DType::kFloat32);
  round_to_float(partial_sums(x, x.shape().rows(), channels).totals(0), sums);
  if (accumulate_to_out) {
    kElementwise.accumulate(sums, out);
  } else {
    kElementwise.cast(sums, out);
  }
}

}  // namespace

const Reductions kReductions{.sum = sum, .sum_rows = sum_rows};

}  // namespace lockstep::kernels::cpu
