// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/share.h"

#include <atomic>
#include <cmath>

#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

std::atomic<std::uint64_t> asked{0};

}  // namespace

Share share_of(std::int64_t step_samples, int ranks, bool average) {
  const double samples = static_cast<double>(step_samples);
  const double world = static_cast<double>(ranks);
  const double divisor = std::ceil(samples / world);
  const double factor = average ? divisor * world / samples : divisor / samples;
  return {.loss_divisor = divisor, .gradient_factor = static_cast<float>(factor), .loss_factor = divisor / samples};
}

const Share& ShareOutput::share() const {
  if (!share_) {
    throw UsageError("the batch does not say how many samples its step has",
                     "Set its step_samples to those of all ranks and micro-batches of the step.");
  }
  asked.fetch_add(1, std::memory_order_relaxed);
  return *share_;
}

std::uint64_t ShareOutput::shares_asked() { return asked.load(std::memory_order_relaxed); }

}  // namespace lockstep::comm
