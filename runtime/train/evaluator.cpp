// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/evaluator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/train/over_ranks.h"

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

std::optional<EvalResult> Evaluator::run(const std::function<bool()>& stop, EvalMetrics::Confusion confusion,
                                         Pictures* pictures) {
  const autograd::NoGrad no_grad;
  EvalMetrics metrics(task_, confusion);
  network_.model().train(false);
  data::Loader batches(dataset_, loading_, slots_);
  bool stopped = false;
  std::int64_t skipped = 0;
  std::vector<data::UnreadSample> unread;
  std::uint64_t first_bad = loading_.steps;
  for (std::uint64_t i = 0; i < loading_.steps && !stopped; ++i) {
    // Also keeps the ranks together: one with fewer samples must not take the others for lost.
    stopped = any_rank(stop(), communicator_);
    data::Batch share = batches.next();
    skipped += share.skipped_samples;
    std::ranges::move(share.unread, std::back_inserter(unread));
    if (stopped || share.input.size(0) == 0) continue;
    const data::Batch there = share.to(network_.device());
    const Tensor output = network_.forward(there);
    const double loss = task_.loss(output, there, 1.0).item();
    metrics.add(output, share.target, loss);
    if (pictures != nullptr) {
      pictures->add(share, output, static_cast<std::int64_t>(i) * loading_.global_batch + share.first_sample);
    }
    if (!std::isfinite(loss)) first_bad = std::min(first_bad, i);
  }
  network_.model().train(true);
  std::optional<std::uint64_t> all_skipped;
  if (loading_.errors.on_error == data::OnError::kSkip) {
    all_skipped =
        static_cast<std::uint64_t>(over_ranks(static_cast<double>(skipped), comm::ReduceOp::kSum, communicator_));
    if (*all_skipped > 0) skipped_names_.tell(std::move(unread), communicator_);
  }
  if (stopped) return std::nullopt;
  EvalResult result = metrics.total(communicator_);
  if (!std::isfinite(result.loss)) result.bad_batch = bad_batch(first_bad);
  result.skipped_samples = all_skipped;
  if (all_skipped) require_few(*all_skipped, loading_.errors, "the evaluation data");
  return result;
}

std::optional<SampleRange> Evaluator::bad_batch(std::uint64_t mine) const {
  const double first = -over_ranks(-static_cast<double>(mine), comm::ReduceOp::kMax, communicator_);
  // Losses may be finite and their sum not.
  if (first >= static_cast<double>(loading_.steps)) return std::nullopt;
  const std::int64_t begin = static_cast<std::int64_t>(first) * loading_.global_batch;
  return SampleRange{begin, std::min(begin + loading_.global_batch, dataset_->size())};
}

}  // namespace lockstep::train
