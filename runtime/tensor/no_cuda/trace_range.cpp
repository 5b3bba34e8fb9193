// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/trace_range.h"

namespace lockstep {

TraceRange::TraceRange(const char*) {}
TraceRange::~TraceRange() = default;

}  // namespace lockstep
