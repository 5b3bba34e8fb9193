// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/kernels/plan_cache/plan_cache.h"
#include "runtime/tensor/device.h"

namespace lockstep::kernels::cuda {

/// The library and the GPU, on which plans depend beside the problem: "cudnn-9.13.0-NVIDIA H200-sm90-132". `library`
/// has the version in its name.
std::string plan_machine(const std::string& library, Device device);

/// The plans of such a machine, in a folder of their own below `folder`; keeps nothing where that is empty.
PlanCache plan_cache_of(const std::string& machine, const std::string& folder);

}  // namespace lockstep::kernels::cuda
