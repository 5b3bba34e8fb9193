// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/core_yield.h"

#include <sched.h>

namespace lockstep {

bool yield_core() {
  thread_local YieldChoice choice;
  const auto before = YieldChoice::Clock::now();
  if (!choice.yields(before)) return false;
  sched_yield();
  choice.yielded(before, YieldChoice::Clock::now());
  return true;
}

}  // namespace lockstep
