// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <string>

namespace lockstep::kernels::cuda {

/// The GPU for which cuDNN makes plans: that of a handle, or one that is only described. A described GPU gets the same
/// plans, but they cannot run. So any machine can say which plans another one will have.
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  /// Where there is no handle: the properties of a GPU, as cuDNN writes them
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
  std::string properties = {};
};

}  // namespace lockstep::kernels::cuda
