// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"

namespace lockstep::gpu {

// For code that waits for a device.

/// Adds to host_waits(): the calling thread is about to block until a device has finished.
void count_host_wait();
/// Throws what set_failure() was given for the device.
void rethrow_failure(Device device);

}  // namespace lockstep::gpu
