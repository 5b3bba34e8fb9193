// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/verdict.h"

#include "runtime/kernels/decisions.h"
#include "runtime/tensor/stream.h"

namespace lockstep::amp {

DeviceValue<Verdict> agree(const Tensor& reduced, const Tensor& local, comm::Communicator& communicator,
                           const kernels::RankState& state) {
  const Device device = reduced.device();
  const kernels::Decisions& decisions = kernels::Decisions::on(device);
  const DeviceValue<Verdict> verdict(device);
  if (communicator.size() == 1) {
    decisions.judge_alone(reduced, local.defined() ? local : reduced, verdict.data());
    return verdict;
  }
  const Tensor ballot = Tensor::empty({2 * reduced.numel() + kernels::kStateNumbers}, DType::kFloat32, device);
  decisions.cast_ballot(reduced, local, communicator.rank(), communicator.size(), state, ballot);
  communicator.all_reduce(ballot, comm::ReduceOp::kMax, 1.0f, Stream::current(device));
  decisions.count_ballot(ballot, communicator.size(), verdict.data());
  return verdict;
}

}  // namespace lockstep::amp
