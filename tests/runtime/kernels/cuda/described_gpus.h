// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>

namespace lockstep::kernels::cuda {

/// A GPU as cuDNN knows it: enough to choose and build plans, with no GPU in the machine.
struct DescribedGpu {
  std::string name;
  int compute_capability;  ///< 900 is 9.0
  int multiprocessors;
  int shared_memory;           ///< bytes that a block can have
  int reserved_shared_memory;  ///< bytes that the system keeps of a block's
  int threads;                 ///< of a multiprocessor
  int blocks;                  ///< of a multiprocessor
  int clock_khz;
  int memory_clock_khz;
  int l2_bytes;
  long long memory_bytes;

  bool has_bfloat16() const { return compute_capability >= 800; }

  /// CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION of cuDNN 9.
  std::string properties() const {
    return fmt::format(
        R"({{"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,)"
        R"( "multiProcessorCount": {}, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,)"
        R"( "maxSharedMemoryPerBlockOptin": {}, "reservedSharedMemoryPerBlock": {}, "maxRegistersPerSM": 65536,)"
        R"( "maxCtasPerSM": {}, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": {}, "pciDeviceId": 0, "isTccDriver": 0,)"
        R"( "supportCoopLaunch": 1, "smClockRateKHz": {}, "memClockRateKHz": {}, "l2CacheSize": {}, "deviceVer": {},)"
        R"( "driverVer": 13000, "cudaDeviceId": 0, "totalGlobalMem": {}, "deviceName": "{}"}})",
        multiprocessors, shared_memory, reserved_shared_memory, blocks, threads, clock_khz, memory_clock_khz, l2_bytes,
        compute_capability, memory_bytes, name);
  }

  friend std::ostream& operator<<(std::ostream& out, const DescribedGpu& gpu) { return out << gpu.name; }
};

inline const DescribedGpu kT4{"Tesla T4", 750, 40, 65536, 0, 1024, 16, 1590000, 5001000, 4 << 20, 15'800'000'000};
inline const DescribedGpu kA100{"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 1024, 2048, 32, 1410000, 1593000, 40 << 20,
                                85'000'000'000};
inline const DescribedGpu kH100{"NVIDIA H100 80GB HBM3", 900, 132, 232448, 1024, 2048, 32, 1980000, 2619000, 50 << 20,
                                85'000'000'000};

}  // namespace lockstep::kernels::cuda
