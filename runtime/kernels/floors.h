// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "runtime/tensor/device.h"
#include "runtime/tensor/dtype.h"

namespace lockstep::kernels {

// What this machine can do, measured where it is asked for: the floors of an operation's time.

/// The shortest time of one `run`, in seconds, of those that begin within `time` behind a first one; with a GPU's work
/// finished.
double shortest_seconds(const std::function<void()>& run, Device device, std::chrono::milliseconds time);

/// The shortest time of a product of two matrices of `size` rows and columns.
double seconds_of_product(DType dtype, std::int64_t size, Device device, std::chrono::milliseconds time);

/// Multiplications and additions a second that products in `dtype` can reach on all threads: the faster of a loop of
/// the processor's vector instructions, of float32 where it has none in the dtype, and of a product of large matrices,
/// which also takes a processor's tiles and all that a GPU has.
double product_floor(DType dtype, Device device);

/// Bytes read and written a second by a copy of so many bytes, on all threads.
double copy_floor(std::int64_t bytes, Device device);

}  // namespace lockstep::kernels
