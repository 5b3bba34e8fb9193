// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/trace_range.h"

#include <utility>

namespace lockstep {

namespace {
thread_local RangeObserver* range_observer = nullptr;
}

RangeObserver* observe_ranges(RangeObserver* observer) { return std::exchange(range_observer, observer); }

TraceRange::TraceRange(const char* name, RangeKind kind) {
  gpu::push_range(name);
  if (range_observer != nullptr) range_observer->range_begins(name, kind);
}

TraceRange::~TraceRange() {
  if (range_observer != nullptr) range_observer->range_ends();
  gpu::pop_range();
}

}  // namespace lockstep
