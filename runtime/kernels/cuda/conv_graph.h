// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/conv_problem.h"
#include "runtime/kernels/cuda/cudnn_plan.h"

namespace lockstep::kernels::cuda {

/// One pass of a convolution as a graph of cuDNN, and where its tensors lie.
CudnnProblem graph_of(const ConvProblem& problem);
CudnnAddresses addresses_of(const ConvData& data);

}  // namespace lockstep::kernels::cuda
