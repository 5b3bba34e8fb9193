// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/share.h"

#include <cmath>

namespace lockstep::comm {

Share share_of(std::int64_t step_samples, int ranks, bool average) {
  const double samples = static_cast<double>(step_samples);
  const double world = static_cast<double>(ranks);
  const double divisor = std::ceil(samples / world);
  const double factor = average ? divisor * world / samples : divisor / samples;
  return {.loss_divisor = divisor, .gradient_factor = static_cast<float>(factor), .loss_factor = divisor / samples};
}

}  // namespace lockstep::comm
