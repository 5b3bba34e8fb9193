// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// Names what the calling thread does while this lives, for NVIDIA's profilers: an NVTX range. Ranges nest. Costs a
/// test of a pointer where no profiler listens, and nothing in a build without CUDA.
class [[nodiscard]] TraceRange {
 public:
  [[nodiscard]] explicit TraceRange(const char* name);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};

}  // namespace lockstep
