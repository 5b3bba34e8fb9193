// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/tensor/device.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// The device memory that one training step took, in bytes.
struct DryRun {
  std::size_t peak = 0;                  ///< of everything at once
  std::size_t activations = 0;           ///< the most of what the forward pass took
  std::size_t activation_gradients = 0;  ///< the most of what the backward pass took beside
  double step_ms = 0.0;                  ///< of this step, in which libraries choose their kernels
};

/// Trains one step, with the samples that the first of `ranks` ranks has, in this process alone; faults of the job are
/// left out. Writes nothing. Throws what training throws.
DryRun dry_run(const job::Job& job, int ranks, Device device);

}  // namespace lockstep::train
