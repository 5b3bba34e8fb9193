// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "runtime/tensor/device.h"

namespace lockstep::gpu {

// For code that waits for a device.

/// Adds to host_waits(): the calling thread is about to block until a device has finished.
void count_host_wait();
/// Throws what set_failure() was given for the device.
void rethrow_failure(Device device);
/// Polls `done` until it returns true. Throws what set_failure() was given for the device as soon as it is given. Does
/// not block in a call of the driver, which would return only when hanging work ends. Counts as one host wait.
void wait_until(Device device, const std::function<bool()>& done);

}  // namespace lockstep::gpu
