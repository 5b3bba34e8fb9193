// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/plan_machine.h"

#include <algorithm>
#include <cctype>

#include "runtime/tensor/gpu.h"

namespace lockstep::kernels::cuda {

std::string plan_machine(const std::string& library, Device device) {
  const gpu::Description found = gpu::describe(device);
  return library + "-" + found.name + "-sm" + std::to_string(found.compute_capability) + "-" +
         std::to_string(found.multiprocessors);
}

PlanCache plan_cache_of(const std::string& machine, const std::string& folder) {
  if (folder.empty()) return PlanCache("");
  std::string name = machine;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '_');
  return PlanCache(folder + "/" + name);
}

}  // namespace lockstep::kernels::cuda
