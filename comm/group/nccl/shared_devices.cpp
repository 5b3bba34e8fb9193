// SPDX-License-Identifier: Apache-2.0
#include "comm/group/nccl/shared_devices.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/tensor/cuda/check.h"

namespace lockstep::comm {

void tell_ranks_of_a_device_apart(Communicator& host, Device device) {
  cudaDeviceProp properties{};
  gpu::check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  const std::string mine(properties.uuid.bytes, sizeof properties.uuid.bytes);
  const std::vector<std::string> all = host.all_gather_text(mine);
  if (std::ranges::count(all, mine) < 2) return;
  // A universal identifier is unique over machines, a rank within the job.
  std::string name = "lockstep-rank-" + std::to_string(host.rank()) + "-";
  for (const char byte : mine) name += std::to_string(static_cast<int>(static_cast<unsigned char>(byte)));
  setenv("NCCL_HOSTID", name.c_str(), 0);
}

}  // namespace lockstep::comm
