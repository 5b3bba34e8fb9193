// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/attention_problem.h"
#include "runtime/kernels/cuda/bias_gradient_choice.h"
#include "runtime/kernels/cuda/conv_problem.h"
#include "runtime/kernels/cuda/cudnn_plans.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/kernels/cuda/segment_tables.h"

namespace lockstep::kernels::cuda {

/// The state that the kernels of one GPU keep between calls. Thread-safe.
struct DeviceState {
  explicit DeviceState(Device device) : segments(device), matmuls(device), bias_gradients(device), cudnn(device) {}

  SegmentTables segments;
  MatmulPlans matmuls;
  BiasGradientChoice bias_gradients;
  Cudnn cudnn;
  CudnnPlans<ConvProblem, ConvData> convolutions{cudnn};
  CudnnPlans<AttentionProblem, AttentionData> attentions{cudnn};
};

/// Made at its first use, and never destroyed: the driver may be gone before static objects are. Thread-safe.
DeviceState& state_of(Device device);

}  // namespace lockstep::kernels::cuda
