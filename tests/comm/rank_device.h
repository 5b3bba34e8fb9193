// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "comm/group/launch_environment.h"
#include "tests/support/devices.h"

namespace lockstep::comm {

/// Where this rank computes: the CPU, or its GPU, which it shares with others where there are fewer.
inline Device rank_device(Device device = lockstep::devices::device()) {
  if (device == kCpu) return kCpu;
  return {DeviceType::kCuda, launch_environment().local_rank % std::max(gpu::device_count(), 1)};
}

}  // namespace lockstep::comm
