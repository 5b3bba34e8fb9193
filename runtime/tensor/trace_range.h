// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// What a thread does within a TraceRange.
enum class RangeKind : std::uint8_t {
  kWork,
  kData,           ///< waits for the next batch
  kCommunication,  ///< is in a collective, or waits for one
  kDevice,         ///< waits for what a GPU has been given
};

/// "work", "data", "communication", "device"
std::string_view name_of(RangeKind kind);

/// Is told of the ranges of one thread, the innermost of which ends first.
class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  /// `name` is a string literal.
  virtual void range_begins(const char* name, RangeKind kind) = 0;
  virtual void range_ends() = 0;
};

/// Makes `observer` this thread's, null for none. Returns the one before. Call it outside any range.
RangeObserver* observe_ranges(RangeObserver* observer);

/// Makes `observer` that of every thread that has none of its own, null for none. Returns the one before. Any of the
/// threads may call it, several at a time; it must live until they are past what it is told of.
RangeObserver* observe_other_ranges(RangeObserver* observer);

/// Names what the calling thread does while this lives: an NVTX range for NVIDIA's profilers, and a range of the
/// thread's RangeObserver at its begin. Ranges nest. Costs a test of a pointer where no profiler listens and nobody
/// observes.
class [[nodiscard]] TraceRange {
 public:
  /// `name` is a string literal.
  [[nodiscard]] explicit TraceRange(const char* name, RangeKind kind = RangeKind::kWork);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  RangeObserver* observer_;
};

namespace gpu {

// An NVTX range of the calling thread; nothing in a build without CUDA.
void push_range(const char* name);
void pop_range();

}  // namespace gpu

}  // namespace lockstep
