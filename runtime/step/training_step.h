// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/data/batch.h"
#include "runtime/nn/arena.h"
#include "runtime/ops/losses.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/weight_mean.h"
#include "runtime/step/step_graph.h"
#include "runtime/step/step_inputs.h"
#include "runtime/step/step_observer.h"
#include "runtime/step/step_outcome.h"
#include "runtime/step/uploader.h"
#include "runtime/tensor/device_value.h"

namespace lockstep::step {

/// A float32 scalar: the sum of the samples' losses divided by options.divisor, on this rank's `output` and `target`.
/// Where batches have weights, options.sample_weight is a number a sample, which its loss counts times. ops::mse is
/// such a function, and so is ops::cross_entropy for one label a sample. It is called twice for mixtures, once for each
/// of their labels, and once more in the first step in which the divisor is not the number of samples here: a loss that
/// ignores it is then a UsageError. On a GPU only the first step is looked at, which is then waited for.
using Loss = std::function<Tensor(const Tensor& output, const Tensor& target, const ops::LossOptions& options)>;

/// Whether a step becomes a CUDA graph once its shapes have come twice in a row; the same bits either way.
enum class Graph {
  kAuto,  ///< on a GPU; where the step cannot be captured on any rank, all go on without, and rank 0 logs why
  kOn,    ///< on a GPU; an error where it cannot be captured, and on a CPU
  kOff,
};

/// A number of each rank that all ranks get to know: it travels with what a step's last collective adds up.
struct RankNumbers {
  std::function<float()> mine = [] { return 0.0f; };  ///< is asked before that collective
  std::vector<float> all = {};                        ///< by rank, of the last step
};

struct TrainingStepOptions {
  Graph graph = Graph::kAuto;
  std::vector<StepObserver*> observers = {};  ///< told in this order
  optim::WeightMean* mean = nullptr;          ///< of the weights, updated with them
  RankNumbers* rank_numbers = nullptr;        ///< on the CPU alone: a GPU is not asked while it works
  /// Every so many steps the ranks compare_weights() at the end of a step; 0: never.
  std::uint64_t compare_weights_every = 0;
};

/// One step of training from a batch to updated weights: forward at the model's opt level, loss, backward with the
/// reduction of gradients, the ranks' verdict, update of weights and loss scale. Losses are means over the step's
/// samples on all ranks, however uneven the shares are. A step is appended to the device's current stream and does not
/// wait for the device.
class TrainingStep {
 public:
  /// `optimizer` updates the model of `ddp`. All three and what the options point to must outlive this. Throws
  /// UsageError where the optimizer updates another model, for Graph::kOn on a CPU, and for numbers of ranks on a GPU.
  TrainingStep(comm::DistributedDataParallel& ddp, optim::Optimizer& optimizer, amp::GradScaler& scaler, Loss loss,
               TrainingStepOptions options = {});
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  /// Trains on this rank's share of one batch, on the CPU, as data::Loader gives it, or on the device; a rank may have
  /// no sample. Batches that do not name their step are of the one after the last. `stop`: this rank's wish to stop,
  /// which the outcome adds up over ranks. A collective. Where several ranks have GPUs, batches of a loop's own, which
  /// are not dealt (data::Batch), cost a small collective of the CPU before each step: StepGraph.
  void run(const data::Batch& batch, bool stop = false) { run(std::span(&batch, 1), stop); }
  /// Trains on several micro-batches, whose gradients add up to one step's.
  void run(std::span<const data::Batch> micro_batches, bool stop = false);
  /// Trains on inputs that lie on the device, from an Uploader.
  void run(const StepInputs& inputs);

  /// The outcome of the last step. Waits for a GPU. Throws as require_progress() does.
  StepOutcome outcome() const;
  /// Throws NumericsError, on every rank alike, once as many steps in a row were skipped as the scaler allows, and
  /// PeerError, as GradScaler::require_same_state() does, where the ranks differed in the step: every rank looks at the
  /// same steps.
  void require_progress(const StepOutcome& outcome) const;
  /// Compares masters, the optimizer's state, batch-norm statistics and the mean of the weights of all ranks: see
  /// comm::require_equal_weights(). Statistics of ranks that do not synchronise them become those of rank 0 before.
  /// Waits for a GPU. A collective.
  void compare_weights();
  /// The outcome on the device, until the next step writes it. A Readback brings it to the host without waiting.
  const DeviceValue<StepOutcome>& device_outcome() const { return outcome_; }
  /// The first parameter whose gradient was not finite; empty where all were.
  std::string bad_parameter(const StepOutcome& outcome) const;

  /// Steps that were launched as a graph so far.
  std::uint64_t graph_launches() const { return graph_ ? graph_->launches() : 0; }
  /// Kernels, copies and fills of the step that is launched as a graph; 0 where none is.
  std::size_t graph_nodes() const { return graph_ ? graph_->nodes() : 0; }

 private:
  /// The settings of a captured step that its user may change: frozen parameters, modules in evaluation, the rates.
  StepGraph::Setting setting() const;
  /// compute(), or the graph that was made of it.
  void compute_by_graph(const StepInputs& inputs);
  void compute(const StepInputs& inputs);
  /// Adds `sums` up over ranks, in place; the ranks' numbers with them.
  void share(const Tensor& sums);
  void forward_and_backward(const StepInputs& inputs, std::size_t micro_batch, const Tensor& loss_sum);
  Tensor loss_of(const data::Batch& batch, const Tensor& output, double divisor) const;
  /// The same. Throws UsageError where it would be the same with another divisor; looks once.
  Tensor checked_loss_of(const data::Batch& batch, const Tensor& output, double divisor);
  bool needs_phases(std::uint64_t step) const;
  template <class Tell>
  void tell(Tell&& tell) const {
    for (StepObserver* const observer : observers_) tell(*observer);
  }

  comm::DistributedDataParallel& ddp_;
  optim::Optimizer& optimizer_;
  amp::GradScaler& scaler_;
  nn::Arena& arena_;
  Loss loss_;
  std::vector<StepObserver*> observers_;
  optim::WeightMean* mean_;
  RankNumbers* rank_numbers_;
  std::uint64_t compare_weights_every_;
  Device device_;
  Uploader uploader_;
  DeviceValue<StepOutcome> outcome_;
  Tensor shared_;                   ///< the step's sums and the ranks' numbers; undefined without numbers
  std::optional<StepGraph> graph_;  ///< where steps may become graphs
  std::uint64_t step_ = 0;          ///< the last one
  bool divisor_checked_ = false;    ///< checked_loss_of() has looked, or may no more
};

}  // namespace lockstep::step
