// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/evaluator.h"

#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/data/eval_batches.h"
#include "runtime/train/skipped_samples.h"

namespace lockstep::train {

namespace {

double over_ranks(double mine, comm::ReduceOp operation, comm::Communicator& communicator) {
  const Tensor number = Tensor::from<float>({static_cast<float>(mine)}, {1});
  communicator.all_reduce(number, operation, 1.0f, Stream::calling_thread());
  return number.item();
}

bool any_rank(bool mine, comm::Communicator& communicator) {
  return over_ranks(mine ? 1 : 0, comm::ReduceOp::kMax, communicator) != 0;
}

}  // namespace

Evaluator::Evaluator(Network& network, const Task& task, data::DatasetPtr dataset, std::int64_t batch,
                     comm::Communicator& communicator, const data::SampleErrors& errors)
    : network_(network),
      task_(task),
      dataset_(std::move(dataset)),
      batch_(batch),
      communicator_(communicator),
      errors_(errors) {}

std::optional<EvalResult> Evaluator::run(const std::function<bool()>& stop, Answers::Confusion confusion) {
  const autograd::NoGrad no_grad;
  Answers answers(task_, confusion);
  network_.model().train(false);
  const data::EvalBatches batches(dataset_, batch_, communicator_.rank(), communicator_.size(), errors_);
  bool stopped = false;
  std::int64_t skipped = 0;
  for (std::int64_t i = 0; i < batches.size() && !stopped; ++i) {
    // Also keeps the ranks together: one with fewer samples must not take the others for lost.
    stopped = any_rank(stop(), communicator_);
    const data::Batch share = batches[i];
    skipped += share.skipped_samples;
    if (stopped || share.input.size(0) == 0) continue;
    const data::Batch there = share.to(network_.device());
    const Tensor output = network_.forward(there.input);
    answers.add(output, share.target, task_.loss(output, there, 1.0).item());
  }
  network_.model().train(true);
  if (stopped) return std::nullopt;
  EvalResult result = answers.total(communicator_);
  if (errors_.on_error == data::OnError::kSkip) {
    const double all = over_ranks(static_cast<double>(skipped), comm::ReduceOp::kSum, communicator_);
    result.skipped_samples = static_cast<std::uint64_t>(all);
    require_few(*result.skipped_samples, errors_, "the evaluation data");
  }
  return result;
}

}  // namespace lockstep::train
