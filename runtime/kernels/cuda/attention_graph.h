// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/attention_problem.h"
#include "runtime/kernels/cuda/cudnn_plan.h"

namespace lockstep::kernels::cuda {

/// One pass of attention as a graph of cuDNN, and where its tensors lie. The gradients are those of its deterministic
/// algorithm, which stores the gradients of the scores, of 16 bits, in the workspace. No note of an engine tells it
/// from the other one, which adds to dq in whatever order blocks come.
CudnnProblem graph_of(const AttentionProblem& problem);
CudnnAddresses addresses_of(const AttentionData& data);

}  // namespace lockstep::kernels::cuda
