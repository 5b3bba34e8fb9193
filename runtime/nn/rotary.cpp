// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/rotary.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/ops/shape.h"

namespace lockstep::nn {

RotaryPositions::RotaryPositions(std::int64_t context, std::int64_t channels, double theta,
                                 const std::optional<ops::RotaryScaling>& scaling)
    : context_(context), frequencies_(ops::rotary_frequencies(channels, theta, scaling)) {}

Tensor RotaryPositions::apply(const Tensor& x, std::int64_t first) {
  const std::int64_t length = x.size(-2);
  if (first < 0 || first + length > context_) {
    throw ShapeError("rotary positions " + std::to_string(first) + " to " + std::to_string(first + length) +
                     " of a context of " + std::to_string(context_));
  }
  // No angle is needed, and the table of all positions may be large.
  if (x.numel() == 0 && x.device() == kCpu) {
    return ops::rotary(x, ops::rotary_table(length, frequencies_, ops::wide_of(x.dtype())));
  }
  const ops::RotaryTable table = table_for(x);
  if (length == context_) return ops::rotary(x, table);
  return ops::rotary(x, {table.cos.detach_rows(first, first + length), table.sin.detach_rows(first, first + length)});
}

ops::RotaryTable RotaryPositions::table_for(const Tensor& x) {
  const std::scoped_lock lock(mutex_);
  const DType dtype = ops::wide_of(x.dtype());
  if (!table_.cos.defined() || table_.cos.device() != x.device() || table_.cos.dtype() != dtype) {
    const ops::RotaryTable made = ops::rotary_table(context_, frequencies_, dtype);
    table_ = {made.cos.to(x.device()), made.sin.to(x.device())};
  }
  return table_;
}

}  // namespace lockstep::nn
