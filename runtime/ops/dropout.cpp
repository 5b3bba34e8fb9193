// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/dropout.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

namespace {

/// x times the key's mask, whose gradient is multiplied by the same mask: made again from its key instead of being
/// kept.
Tensor masked(const Tensor& input, double p, const kernels::DropoutKey& key, std::int64_t first_element) {
  const Tensor x = amp::autocast(amp::Op::kDropout, input);
  const Tensor y = empty_like(x);
  kernels::Pointwise::on(x.device()).dropout(x, p, key, first_element, y);
  autograd::record(y, "dropout", {x},
                   {.recorded = [p, key, first_element](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{masked(dy, p, key, first_element)};
                   }});
  return y;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, const kernels::DropoutKey& key, std::int64_t first_sample) {
  require_defined(x, name_of(amp::Op::kDropout), "the input");
  if (p == 0.0 || x.numel() == 0) return x;
  return masked(x, p, key, first_sample * (x.numel() / x.size(0)));
}

}  // namespace lockstep::ops
