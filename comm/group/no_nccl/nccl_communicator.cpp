// SPDX-License-Identifier: Apache-2.0
// A build without CUDA: nothing travels between GPUs.
#include "comm/group/nccl_communicator.h"

#include "comm/group/versions.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator>, Device device,
                                                     const CommunicatorOptions&) {
  throw EnvironmentError("no collectives between GPUs for " + str(device) + ": this build has no NCCL",
                         "Use --device cpu, or build where CUDA and NCCL are installed.");
}

std::string nccl_version() { return {}; }

}  // namespace lockstep::comm
