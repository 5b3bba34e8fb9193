// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/dropout.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

Tensor dropout(const Tensor& input, double p, const kernels::DropoutKey& key, std::int64_t first_sample) {
  const Tensor x = amp::autocast(amp::Op::kDropout, input);
  if (p == 0.0 || x.numel() == 0) return x;
  const std::int64_t first_element = first_sample * (x.numel() / x.size(0));
  const Tensor y = empty_like(x);
  kernels::backend(x.device()).dropout(x, p, key, first_element, y);
  // The mask is made again from its key instead of being kept.
  autograd::record(y, "dropout", {x},
                   {.fused = [p, key, first_element](const Tensor& dy, const autograd::BackwardContext&) {
                     const Tensor dx = empty_like(dy);
                     kernels::backend(dy.device()).dropout(dy, p, key, first_element, dx);
                     return std::vector<Tensor>{dx};
                   }});
  return y;
}

}  // namespace lockstep::ops
