// SPDX-License-Identifier: Apache-2.0
#include "configs/job.pb.h"
#include "runtime/job/training_options.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

void validate_amp(const Amp& amp, Checker& checker) {
  if (amp.has_loss_scale()) {
    const std::string path = "amp.loss_scale";
    checker.adopt(problems_of(grad_scaler_options(amp.loss_scale())), path);
    // A run that skips for ever is never meant.
    checker.at_least_one(amp.loss_scale().max_consecutive_skips(), path + ".max_consecutive_skips");
  }
  checker.adopt(problems_of(amp_options(amp)), "amp");
}

}  // namespace lockstep::job
