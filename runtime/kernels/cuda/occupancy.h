// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/device.h"

namespace lockstep::kernels::cuda {

/// Blocks of so many threads of a kernel that the device runs at the same time, at least one: its multiprocessors times
/// those that fit on one. Asked once for each kernel and number of threads; also while a graph is captured.
/// Thread-safe.
std::int64_t resident_blocks(Device device, const void* kernel, int threads);

}  // namespace lockstep::kernels::cuda
