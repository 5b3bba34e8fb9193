// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/gpu_use.h"

#include "runtime/tensor/gpu.h"
#include "runtime/train/record/median.h"

namespace lockstep::train {

namespace {
constexpr std::uint64_t kWarmUp = 3;
}

LaunchTimer::LaunchTimer() : waits_(gpu::host_waits()), begin_(std::chrono::steady_clock::now()) {}

Launch LaunchTimer::stop() const { return {std::chrono::steady_clock::now() - begin_, gpu::host_waits() - waits_}; }

void GpuUse::count(const Launch& launch) {
  if (++launches_ <= kWarmUp) return;
  host_waits_ += launch.host_waits;
  times_us_.push_back(static_cast<float>(launch.time.count()));
}

GpuSummary GpuUse::summary(Device device, std::uint64_t graph_launches) const {
  return {.name = gpu::describe(device).name,
          .launch_us_p50 = median(times_us_),
          .host_waits = host_waits_,
          .graph_launches = graph_launches};
}

}  // namespace lockstep::train
