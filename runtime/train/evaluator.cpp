// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/evaluator.h"

#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/train/over_ranks.h"
#include "runtime/train/skipped_samples.h"

namespace lockstep::train {

namespace {

data::LoaderOptions one_pass(const data::Dataset& dataset, data::LoaderOptions loading) {
  const auto batches = data::steps_per_epoch(dataset.size(), loading.global_batch, loading.drop_last);
  loading.steps = static_cast<std::uint64_t>(batches);
  return loading;
}

}  // namespace

Evaluator::Evaluator(Network& network, const Task& task, data::DatasetPtr dataset, const data::LoaderOptions& loading,
                     comm::Communicator& communicator)
    : network_(network),
      task_(task),
      dataset_(std::move(dataset)),
      loading_(one_pass(*dataset_, loading)),
      slots_(data::slots_for(*dataset_, loading_)),
      communicator_(communicator) {}

std::optional<EvalResult> Evaluator::run(const std::function<bool()>& stop, Answers::Confusion confusion) {
  const autograd::NoGrad no_grad;
  Answers answers(task_, confusion);
  network_.model().train(false);
  data::Loader batches(dataset_, loading_, slots_);
  bool stopped = false;
  std::int64_t skipped = 0;
  for (std::uint64_t i = 0; i < loading_.steps && !stopped; ++i) {
    // Also keeps the ranks together: one with fewer samples must not take the others for lost.
    stopped = any_rank(stop(), communicator_);
    const data::Batch share = batches.next();
    skipped += share.skipped_samples;
    if (stopped || share.input.size(0) == 0) continue;
    const data::Batch there = share.to(network_.device());
    const Tensor output = network_.forward(there.input);
    answers.add(output, share.target, task_.loss(output, there, 1.0).item());
  }
  network_.model().train(true);
  if (stopped) return std::nullopt;
  EvalResult result = answers.total(communicator_);
  if (loading_.errors.on_error == data::OnError::kSkip) {
    const double all = over_ranks(static_cast<double>(skipped), comm::ReduceOp::kSum, communicator_);
    result.skipped_samples = static_cast<std::uint64_t>(all);
    require_few(*result.skipped_samples, loading_.errors, "the evaluation data");
  }
  return result;
}

}  // namespace lockstep::train
