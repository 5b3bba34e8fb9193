// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/deployed_model.h"

#include <chrono>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/nn/forward.h"
#include "runtime/step/replicated.h"
#include "runtime/train/network.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

DeployedModel::DeployedModel(const job::Job& job, const Task& task, const checkpoint::Checkpoint& saved,
                             step::Weights weights, DType dtype, Device device, comm::Communicator& communicator)
    : model_(build_model(job, task)) {
  step::on_rank_zero(communicator,
                     [&] { restore_for(job, saved, [&] { step::restore_model(*model_, saved, weights); }); });
  const auto share = [&](const Tensor& tensor) { communicator.broadcast(tensor, 0, Stream::calling_thread()); };
  for (const nn::Parameter& parameter : model_->parameters()) share(parameter.tensor.detach());
  for (const auto& [name, statistics] : model_->statistics()) share(statistics->committed());
  model_->to(device).to(dtype).train(false);
}

std::int64_t DeployedModel::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const nn::Parameter& parameter : model_->parameters()) {
    bytes += static_cast<std::int64_t>(parameter.tensor.bytes());
  }
  return bytes;
}

Tensor DeployedModel::predict(std::span<const Tensor> inputs) {
  const auto begin = std::chrono::steady_clock::now();
  const Tensor output = nn::forward(*model_, inputs).to(kCpu);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  // The first pass takes memory and chooses kernels: it counts only where there is no other.
  if (++passes_ == 2) samples_ = seconds_ = 0;
  samples_ += static_cast<double>(inputs.front().size(0));
  seconds_ += time.count();
  return output;
}

}  // namespace lockstep::train
