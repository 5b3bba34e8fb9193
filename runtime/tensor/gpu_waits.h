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
/// Asks again and again until the device is `done`, or throws what set_failure() was given for it as soon as that is
/// there: a call that blocks would hold the host as long as the work hangs. Counts as one host wait.
void wait_until(Device device, const std::function<bool()>& done);

}  // namespace lockstep::gpu
