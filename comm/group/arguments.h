// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/communicator.h"

namespace lockstep::comm {

// The checks of every communicator before it enqueues a collective. `name` is the collective's, for messages.

/// Throws ShapeError unless the tensor lies in host memory.
void check_host(const char* name, const Tensor& tensor);
/// Throws ShapeError unless the tensor lies on the CPU or on `device`.
void check_device(const char* name, const Tensor& tensor, Device device);
/// Throws ShapeError unless both tensors lie on one device, and that is the CPU or `device`.
void check_device(const char* name, const Tensor& in, const Tensor& out, Device device);
/// Throws ShapeError unless `op` is defined for `dtype` and takes this `premultiply`.
void check_reduction(const char* name, DType dtype, ReduceOp op, float premultiply);
/// Throws ShapeError unless `whole` holds `size` times the elements of `part`.
void check_slices(const char* name, const Tensor& whole, const Tensor& part, int size);
/// Throws UsageError unless 0 <= root < size.
void check_root(const char* name, int root, int size);

}  // namespace lockstep::comm
