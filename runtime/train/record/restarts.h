// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::train {

/// How often the ranks of this job were started again, as our launcher, torchrun or Slurm says; else 0.
int restart_count();

}  // namespace lockstep::train
