// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/nn/arena.h"
#include "runtime/optim/optimizer.h"
#include "runtime/step/loop_parts.h"

namespace lockstep::checkpoint {
struct Checkpoint;
}

namespace lockstep::step {

/// The tensors of a checkpoint by logical name: "model/<parameter>" (float32 masters), "statistics/<name>",
/// "optimizer/<state>/<parameter>" (its shape, or [1] for a number a parameter), "optimizer/step/<parameter>" (int64
/// [1], the steps applied to it), "mean/<parameter>" (a running mean of the masters). The names of parts that have one
/// stand between: "model/<model>/<parameter>", "optimizer/<optimizer>/<state>/<model>/<parameter>",
/// "mean/<mean>/<model>/<parameter>". They are views: writing into them restores.
std::map<std::string, Tensor> state_tensors(const std::vector<Named<nn::Arena>>& models,
                                            const std::vector<Named<optim::Optimizer>>& optimizers,
                                            const std::vector<Named<optim::WeightMean>>& means = {});
std::map<std::string, Tensor> state_tensors(const LoopParts& parts);

/// Copies of the tensors on the CPU; tensors that lie there are not copied.
std::map<std::string, Tensor> host_copies(const std::map<std::string, Tensor>& tensors);

/// Writes a checkpoint's tensors into the models and optimizers of rank 0. Throws UsageError that lists every missing,
/// extra and misshaped name before anything is written.
void restore_tensors(const LoopParts& parts, const checkpoint::Checkpoint& saved);

/// Which of a checkpoint's weights a model is given.
enum class Weights : std::uint8_t {
  kMean,  ///< their running mean, where the checkpoint has one
  kRaw,   ///< those that the optimizer has left
};
/// Whether the checkpoint has a running mean of the weights.
bool has_mean(const checkpoint::Checkpoint& saved);

/// A checkpoint's weights and running statistics, by the names of state_tensors(): "model/<parameter>".
std::map<std::string, Tensor> weights_of(const checkpoint::Checkpoint& saved, Weights which);

/// Writes those of the model alone, for evaluation. Throws as above.
void restore_weights(nn::Arena& arena, const checkpoint::Checkpoint& saved, Weights which = Weights::kMean);

/// Writes a checkpoint's weights and running statistics into a model without an arena. Throws as above.
void restore_model(nn::Module& model, const checkpoint::Checkpoint& saved, Weights which = Weights::kMean);

/// Makes every rank's optimizer state and applied steps those of rank 0. A collective.
void broadcast_optimizer(optim::Optimizer& optimizer, comm::Communicator& communicator);

}  // namespace lockstep::step
