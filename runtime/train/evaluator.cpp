// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/evaluator.h"

#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/data/eval_batches.h"
#include "runtime/kernels/backend.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace {

/// How many targets (on the CPU) have the highest logit. Ignored ones have none.
std::int64_t count_correct(const Tensor& device_logits, const Tensor& targets) {
  const Tensor logits = device_logits.to(kCpu);
  const Tensor values = Tensor::empty(logits.shape(), DType::kFloat32);
  kernels::backend(kCpu).cast(logits, values);
  const auto classes = static_cast<std::size_t>(logits.shape().back());
  const auto row = values.as<float>();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < targets.as<std::int64_t>().size(); ++i) {
    correct += class_of(row.subspan(i * classes, classes)) == targets.as<std::int64_t>()[i] ? 1 : 0;
  }
  return correct;
}

bool any_rank(bool mine, comm::Communicator& communicator) {
  const Tensor flag = Tensor::from<float>({mine ? 1.0f : 0.0f}, {1});
  communicator.all_reduce(flag, comm::ReduceOp::kMax, 1.0f, Stream::calling_thread());
  return flag.item() != 0.0;
}

}  // namespace

Evaluator::Evaluator(Network& network, data::DatasetPtr dataset, std::int64_t batch, comm::Communicator& communicator)
    : network_(network), dataset_(std::move(dataset)), batch_(batch), communicator_(communicator) {}

std::optional<EvalResult> Evaluator::run(const std::function<bool()>& stop) {
  const autograd::NoGrad no_grad;
  network_.model().train(false);
  const data::EvalBatches batches(dataset_, batch_, communicator_.rank(), communicator_.size());
  double loss_sum = 0;
  std::int64_t correct = 0, samples = 0;
  bool stopped = false;
  for (std::int64_t i = 0; i < batches.size() && !stopped; ++i) {
    // Also keeps the ranks together: one with fewer samples must not take the others for lost.
    stopped = any_rank(stop(), communicator_);
    const data::Batch share = batches[i];
    if (stopped || share.input.size(0) == 0) continue;
    const Tensor output = network_.forward(share.input.to(network_.device()));
    loss_sum += network_.task().loss(output, share.target.to(network_.device()), 1.0).item();
    if (network_.task().classifies()) correct += count_correct(output, share.target);
    samples += share.input.size(0);
  }
  network_.model().train(true);
  if (stopped) return std::nullopt;
  const Tensor sums = Tensor::from<double>({loss_sum, static_cast<double>(correct), static_cast<double>(samples)}, {3});
  communicator_.all_reduce(sums, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
  EvalResult result;
  result.samples = static_cast<std::int64_t>(sums.item(2));
  result.loss = sums.item(0) / sums.item(2);
  if (network_.task().classifies()) {
    result.accuracy = sums.item(1) / (sums.item(2) * static_cast<double>(network_.task().targets_per_sample()));
  }
  return result;
}

}  // namespace lockstep::train
