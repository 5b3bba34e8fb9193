// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/conv_plans.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/kernels/cuda/segment_tables.h"

namespace lockstep::kernels::cuda {

/// What the kernels of one GPU keep between calls. Thread-safe.
struct DeviceState {
  explicit DeviceState(Device device) : segments(device), matmuls(device), convolutions(device) {}

  SegmentTables segments;
  MatmulPlans matmuls;
  ConvPlans convolutions;
};

/// Made at its first use, and never destroyed: the driver may be gone before static objects are. Thread-safe.
DeviceState& state_of(Device device);

}  // namespace lockstep::kernels::cuda
