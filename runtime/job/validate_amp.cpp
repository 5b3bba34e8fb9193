// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

void check(const LossScale& scale, Checker& checker) {
  const std::string path = "amp.loss_scale";
  checker.positive(scale.init(), path + ".init");
  checker.check(scale.growth_factor() > 1 && scale.growth_factor() <= 1e6, path + ".growth_factor", "> 1",
                scale.growth_factor());
  checker.check(scale.backoff_factor() > 0 && scale.backoff_factor() < 1, path + ".backoff_factor", "> 0 and < 1",
                scale.backoff_factor());
  checker.at_least_one(scale.growth_interval(), path + ".growth_interval");
  checker.at_least_one(scale.max_consecutive_skips(), path + ".max_consecutive_skips");
  if (!checker.positive(scale.min(), path + ".min") || !checker.positive(scale.max(), path + ".max")) return;
  if (!scale.dynamic() || !checker.trusts({path + ".min", path + ".max", path + ".init"})) return;
  if (scale.min() > scale.max()) {
    checker.check(false, path + ".min", "<= max", scale.min());
  } else {
    checker.check(scale.init() >= scale.min(), path + ".init", ">= min", scale.init());
    checker.check(scale.init() <= scale.max(), path + ".init", "<= max", scale.init());
  }
}

}  // namespace

void validate_amp(const Amp& amp, Checker& checker) {
  if (amp.has_loss_scale()) check(amp.loss_scale(), checker);
  const std::string level = OptLevel_Name(amp.opt_level());
  const std::string dtype = Precision_Name(amp.dtype());
  if (!checker.trusts({"amp.opt_level", "amp.dtype", "amp.master_weights", "amp.keep_batch_norm_fp32"})) return;
  if (amp.opt_level() == O0 && amp.dtype() != FP32) {
    checker.error("amp.dtype", dtype + " contradicts opt_level O0, which computes in FP32; use O1 or leave dtype out");
  } else if (amp.opt_level() != O0 && amp.dtype() == FP32) {
    checker.error("amp.dtype", "FP32 contradicts opt_level " + level + "; use O0, or FP16 or BF16 here");
  }
  if (amp.opt_level() != O3 && amp.opt_level() != O2 && !amp.master_weights()) {
    checker.error("amp.master_weights", "cannot be false under " + level + ", whose weights are fp32; use O2 or O3");
  }
  if (amp.opt_level() != O3 && amp.opt_level() != O2 && !amp.keep_batch_norm_fp32()) {
    checker.error("amp.keep_batch_norm_fp32",
                  "cannot be false under " + level + ", whose weights are fp32; use O2 or O3");
  }
}

}  // namespace lockstep::job
