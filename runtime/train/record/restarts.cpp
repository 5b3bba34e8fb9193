// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/restarts.h"

#include <array>
#include <cstdlib>

namespace lockstep::train {

int restart_count() {
  for (const char* name : std::array{"LOCKSTEP_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}) {
    const char* count = std::getenv(name);
    if (count != nullptr && std::atoi(count) > 0) return std::atoi(count);
  }
  return 0;
}

}  // namespace lockstep::train
