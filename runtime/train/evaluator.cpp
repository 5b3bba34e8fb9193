// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/evaluator.h"

#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/data/eval_batches.h"

namespace lockstep::train {

namespace {

bool any_rank(bool mine, comm::Communicator& communicator) {
  const Tensor flag = Tensor::from<float>({mine ? 1.0f : 0.0f}, {1});
  communicator.all_reduce(flag, comm::ReduceOp::kMax, 1.0f, Stream::calling_thread());
  return flag.item() != 0.0;
}

}  // namespace

Evaluator::Evaluator(Network& network, data::DatasetPtr dataset, std::int64_t batch, comm::Communicator& communicator)
    : network_(network), dataset_(std::move(dataset)), batch_(batch), communicator_(communicator) {}

std::optional<EvalResult> Evaluator::run(const std::function<bool()>& stop, Answers::Confusion confusion) {
  const autograd::NoGrad no_grad;
  const Task& task = network_.task();
  Answers answers(task, confusion);
  network_.model().train(false);
  const data::EvalBatches batches(dataset_, batch_, communicator_.rank(), communicator_.size());
  bool stopped = false;
  for (std::int64_t i = 0; i < batches.size() && !stopped; ++i) {
    // Also keeps the ranks together: one with fewer samples must not take the others for lost.
    stopped = any_rank(stop(), communicator_);
    const data::Batch share = batches[i];
    if (stopped || share.input.size(0) == 0) continue;
    const data::Batch there = share.to(network_.device());
    const Tensor output = network_.forward(there.input);
    answers.add(output, share.target, task.loss(output, there, 1.0).item());
  }
  network_.model().train(true);
  if (stopped) return std::nullopt;
  return answers.total(communicator_);
}

}  // namespace lockstep::train
