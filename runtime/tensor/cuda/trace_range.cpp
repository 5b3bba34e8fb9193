// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/trace_range.h"

#include <nvtx3/nvToolsExt.h>

namespace lockstep::gpu {

void push_range(const char* name) { nvtxRangePushA(name); }
void pop_range() { nvtxRangePop(); }

}  // namespace lockstep::gpu
