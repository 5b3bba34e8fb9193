// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/trace_range.h"

#include <atomic>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep {

namespace {

thread_local RangeObserver* own_range_observer = nullptr;
std::atomic<RangeObserver*> others_range_observer{nullptr};

RangeObserver* range_observer() {
  if (own_range_observer != nullptr) return own_range_observer;
  return others_range_observer.load(std::memory_order_acquire);
}

}  // namespace

std::string_view name_of(RangeKind kind) {
  switch (kind) {
    case RangeKind::kWork:
      return "work";
    case RangeKind::kData:
      return "data";
    case RangeKind::kCommunication:
      return "communication";
    case RangeKind::kDevice:
      return "device";
  }
  throw UsageError("a range of no kind");
}

RangeObserver* observe_ranges(RangeObserver* observer) { return std::exchange(own_range_observer, observer); }
RangeObserver* observe_other_ranges(RangeObserver* observer) { return others_range_observer.exchange(observer); }

TraceRange::TraceRange(const char* name, RangeKind kind) : observer_(range_observer()) {
  gpu::push_range(name);
  if (observer_ != nullptr) observer_->range_begins(name, kind);
}

TraceRange::~TraceRange() {
  if (observer_ != nullptr) observer_->range_ends();
  gpu::pop_range();
}

}  // namespace lockstep
