// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/faults.h"
#include "runtime/train/network.h"
#include "runtime/train/status_board.h"
#include "runtime/train/step_inputs.h"
#include "runtime/train/step_outcome.h"

namespace lockstep::train {

/// Throws FieldError for train.cuda_graph: ON on a CPU.
void require_graph_device(const job::Train& train, Device device);

/// One step of training, from inputs on the device to its outcome there: forward, backward, reduction, verdict, update,
/// loss scale. On a GPU it is captured as a CUDA graph when its shapes have come twice in a row, and launched as that
/// from then on; the same work either way. Steps of other shapes in between, as at the end of an epoch, run without.
class TrainStep {
 public:
  /// A collective. `network` must outlive this. Throws as require_graph_device() does.
  TrainStep(const job::Job& job, comm::World& world, Network& network);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  comm::DistributedDataParallel& ddp() { return ddp_; }
  amp::GradScaler& scaler() { return scaler_; }
  const amp::GradScaler& scaler() const { return scaler_; }
  const Faults& faults() const { return faults_; }

  /// Appends the step to the device's current stream; does not wait for the device. A collective.
  void run(const StepInputs& inputs);
  /// Of the last step.
  const DeviceValue<StepOutcome>& outcome() const { return outcome_; }
  /// Steps that were launched as a graph so far.
  std::uint64_t graph_launches() const { return graph_launches_; }

 private:
  /// What a captured step depends on.
  struct Key {
    std::vector<Tensor> tensors;  ///< the same memory; kept, so that nothing else comes to lie there
    std::vector<std::int64_t> samples;
    bool operator==(const Key& other) const;
  };
  static Key key_of(const StepInputs& inputs);

  void compute(const StepInputs& inputs);
  void forward_and_backward(const StepInputs& inputs, std::size_t micro_batch, const Tensor& loss);
  void capture(const StepInputs& inputs);

  const job::Job& job_;
  comm::World& world_;
  Network& network_;
  StatusBoard board_;
  Faults faults_;
  comm::DistributedDataParallel ddp_;
  amp::GradScaler scaler_;
  DeviceValue<StepOutcome> outcome_;

  Key last_;      ///< of the step before
  Key captured_;  ///< of graph_
  std::optional<gpu::Graph> graph_;
  std::uint64_t graph_launches_ = 0;
};

}  // namespace lockstep::train
