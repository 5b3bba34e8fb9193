// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/trace_range.h"

#include <nvtx3/nvToolsExt.h>

namespace lockstep {

TraceRange::TraceRange(const char* name) { nvtxRangePushA(name); }
TraceRange::~TraceRange() { nvtxRangePop(); }

}  // namespace lockstep
