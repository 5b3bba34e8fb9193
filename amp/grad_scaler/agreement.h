// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/group/communicator.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// What all ranks agreed on before anything changes.
struct Verdict {
  bool found_inf = false;
  int slot = -1;  ///< the first bad parameter in the arena's order (the order of backward); -1 when none is
  int rank = -1;  ///< the lowest rank whose own gradient of it was bad; -1 when only the sum over ranks was
};

/// The explicit MAX over ranks that makes a step applied or skipped by all alike. `reduced` flags (float32
/// [parameters]) are those of the reduced gradients, `local` those of this rank's own gradients before the reduction;
/// undefined where nobody looked, as on a lone rank, whose own are the reduced ones. A collective.
Verdict agree(const Tensor& reduced, const Tensor& local, comm::Communicator& communicator);

}  // namespace lockstep::amp
