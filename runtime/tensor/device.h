// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep {

enum class DeviceType { kCpu, kCuda };

/// Where a tensor lies and where its operations run.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr Device kCpu{};

/// "cpu", "cuda:0"
inline std::string str(Device device) {
  return device.type == DeviceType::kCpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace lockstep
