// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/train_step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "comm/group/device_waits.h"
#include "runtime/job/training_options.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/elementwise.h"
#include "runtime/tensor/error.h"

namespace lockstep::train {

void require_graph_device(const job::Train& train, Device device) {
  if (train.cuda_graph() != job::ON || device != kCpu) return;
  throw FieldError("train.cuda_graph", "ON needs a GPU, but this run is on the CPU", "Leave it at AUTO.");
}

TrainStep::TrainStep(const job::Job& job, comm::World& world, Network& network)
    : job_(job),
      world_(world),
      network_(network),
      board_(StatusBoard::from_environment()),
      faults_(job, world.rank(), world.size(), network.arena()),
      ddp_(network.model(), world, job::ddp_options(job.comm())),
      scaler_(world, job::grad_scaler_options(job.amp().loss_scale())),
      outcome_(StepOutcome{}, network.device()) {
  require_graph_device(job_.train(), network_.device());
  // A step that is captured must not be the one that takes this memory.
  if (job_.train().accumulate() > 1) network_.arena().float32_grads();
  ddp_.reducer().set_on_gradient([this](std::size_t slot) { faults_.on_gradient(slot); });
}

bool TrainStep::Key::operator==(const Key& other) const {
  return samples == other.samples &&
         std::ranges::equal(tensors, other.tensors, [](const Tensor& mine, const Tensor& theirs) {
           return mine.data() == theirs.data() && mine.shape() == theirs.shape() && mine.dtype() == theirs.dtype();
         });
}

TrainStep::Key TrainStep::key_of(const StepInputs& inputs) {
  Key key{{inputs.positions, inputs.stop}, {}};
  for (const data::Batch& batch : inputs.micro_batches) {
    key.tensors.insert(key.tensors.end(), {batch.input, batch.target});
    // The same on all ranks, so that all of them capture, and launch, at the same step.
    key.samples.push_back(batch.step_samples);
  }
  return key;
}

void TrainStep::run(const StepInputs& inputs) {
  faults_.enter(inputs.step, 0);
  network_.arena().take_over_writes();
  const bool graphs = network_.device() != kCpu && job_.train().cuda_graph() != job::OFF;
  // A fault strikes one step, which no recorded one knows of.
  if (!graphs || faults_.planned_at(inputs.step)) {
    compute(inputs);
  } else {
    Key key = key_of(inputs);
    if (!(graph_ && key == captured_) && key == last_) capture(inputs);
    if (graph_ && key == captured_) {
      comm::launch_watched(*world_.communicator(), Stream::current(network_.device()), [this] { graph_->launch(); });
      ++graph_launches_;
    } else {
      compute(inputs);
    }
    last_ = std::move(key);
  }
  faults_.after_step();
}

void TrainStep::capture(const StepInputs& inputs) {
  graph_.reset();
  // What the eager step used can serve the graph.
  gpu::release_cached(network_.device());
  graph_.emplace(network_.device());
  graph_->capture([this, inputs] { compute(inputs); });
  captured_ = key_of(inputs);
}

void TrainStep::compute(const StepInputs& inputs) {
  optim::Optimizer& optimizer = network_.optimizer();
  optimizer.zero_grad();
  const Tensor loss_and_stop = outcome_.field(offsetof(StepOutcome, loss), DType::kFloat32, 2);
  kernels::backend(network_.device()).fill(loss_and_stop.rows(0, 1), 0.0);
  loss_and_stop.rows(1, 2).copy_from(inputs.stop);
  for (std::size_t m = 0; m < inputs.micro_batches.size(); ++m) {
    faults_.enter(inputs.step, static_cast<std::uint32_t>(m));
    std::optional<comm::DistributedDataParallel::NoSync> no_sync;
    if (m + 1 < inputs.micro_batches.size()) no_sync.emplace(ddp_);
    forward_and_backward(inputs, m, loss_and_stop.rows(0, 1));
  }
  board_.set(world_.rank(), RankPhase::kStep, inputs.step);
  const DeviceValue<amp::Verdict> verdict = scaler_.step(optimizer);
  scaler_.adapt();
  // What every rank must know alike: the step's loss, and whether any of them was told to stop.
  world_.communicator()->all_reduce(loss_and_stop, comm::ReduceOp::kSum, 1.0f, Stream::current(network_.device()));
  const auto report = [this](std::size_t offset, const Tensor& bytes) {
    outcome_.field(offset, DType::kUInt8, bytes.numel()).copy_from(bytes);
  };
  report(offsetof(StepOutcome, verdict), verdict.bytes());
  report(offsetof(StepOutcome, scale), scaler_.state().bytes());
  report(offsetof(StepOutcome, schedule), optimizer.schedule().bytes());
  if (const Tensor norm = optimizer.device_gradient_norm(); norm.defined()) {
    outcome_.field(offsetof(StepOutcome, grad_norm), DType::kFloat32, 1).copy_from(norm);
  }
}

void TrainStep::forward_and_backward(const StepInputs& inputs, std::size_t micro_batch, const Tensor& loss_sum) {
  const data::Batch& batch = inputs.micro_batches[micro_batch];
  board_.set(world_.rank(), RankPhase::kForward, inputs.step);
  faults_.at(job::FORWARD);
  const nn::StepContext context(job_.seed(), inputs.position(micro_batch));
  // A rank's loss is its sum over the largest share, as a lone rank's is over the whole step: where shares are uneven
  // too, its 16-bit gradients are then no larger than those of the mean. The reduction makes up for the rest.
  const double world = static_cast<double>(world_.size());
  const double samples = static_cast<double>(batch.step_samples);
  const double divisor = std::ceil(samples / world);
  const double weight = ddp_.loss_weight(1, 1);
  ddp_.reducer().set_factor(static_cast<float>(divisor * world / samples * (weight / world)));
  Tensor loss = network_.loss(network_.forward(batch.input), batch.target, divisor);
  if (const double factor = faults_.loss_factor(); factor != 1.0) loss = ops::scale(loss, factor);
  const kernels::Backend& backend = kernels::backend(network_.device());
  const Tensor part = Tensor::empty({1}, DType::kFloat32, network_.device());
  backend.scale(loss.reshaped({1}), divisor / samples, nullptr, part);
  backend.accumulate(part, loss_sum);

  board_.set(world_.rank(), RankPhase::kBackward, inputs.step);
  scaler_.scale(loss).backward();
}

}  // namespace lockstep::train
