// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/device_state.h"

#include <map>
#include <mutex>

namespace lockstep::kernels::cuda {

DeviceState& state_of(Device device) {
  static std::mutex mutex;
  static std::map<int, DeviceState*>& states = *new std::map<int, DeviceState*>;
  const std::lock_guard lock(mutex);
  DeviceState*& state = states[device.index];
  if (state == nullptr) state = new DeviceState(device);
  return *state;
}

}  // namespace lockstep::kernels::cuda
