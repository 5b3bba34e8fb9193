// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/tensor/device.h"
#include "runtime/train/record/summary.h"

namespace lockstep::train {

/// The time that the host took to hand a GPU one step.
struct Launch {
  std::chrono::duration<double, std::micro> time{};
  std::uint64_t host_waits = 0;
};

class LaunchTimer {
 public:
  LaunchTimer();
  Launch stop() const;

 private:
  std::uint64_t waits_;
  std::chrono::steady_clock::time_point begin_;
};

/// Adds launches up, but for those in which memory is taken, libraries choose their kernels and the step is captured.
class GpuUse {
 public:
  void count(const Launch& launch);
  GpuSummary summary(Device device, std::uint64_t graph_launches) const;

 private:
  std::uint64_t launches_ = 0;
  std::uint64_t host_waits_ = 0;
  std::vector<float> times_us_;
};

}  // namespace lockstep::train
