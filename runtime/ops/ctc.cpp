// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/ctc.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/losses.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// The losses of the samples, [N].
Tensor losses_of(const Tensor& log_probs, const kernels::CtcTargets& targets) {
  const std::int64_t n = log_probs.size(0), states = 2 * targets.labels.size(1) + 1;
  const Tensor losses = Tensor::empty({n}, log_probs.dtype(), log_probs.device());
  const Tensor alpha = Tensor::empty({n, log_probs.size(1), states}, DType::kFloat64, log_probs.device());
  kernels::Losses::on(log_probs.device()).ctc(log_probs, targets, losses, alpha);
  autograd::record(
      losses, name_of(amp::Op::kCtc), {log_probs},
      {.fused = [x = SavedTensor(log_probs), alpha, labels = SavedTensor(targets.labels),
                 inputs = SavedTensor(targets.input_lengths), lengths = SavedTensor(targets.target_lengths),
                 blank = targets.blank](const Tensor& dlosses, const BackwardContext& context) {
        const Tensor& read = context.saved(x);
        const Tensor gradient = empty_like(read);
        kernels::Losses::on(dlosses.device())
            .ctc_backward(read, {context.saved(labels), context.saved(inputs), context.saved(lengths), blank}, alpha,
                          dlosses, gradient);
        return std::vector<Tensor>{gradient};
      }});
  return losses;
}

}  // namespace

Tensor ctc(const Tensor& input, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
           const CtcOptions& options) {
  const Tensor log_probs = widened(amp::autocast(amp::Op::kCtc, input, "log_probs"));
  for (const auto& [tensor, argument] : {std::pair{&targets, "targets"}, std::pair{&input_lengths, "input_lengths"},
                                         std::pair{&target_lengths, "target_lengths"}}) {
    require_defined(*tensor, "ctc", argument);
  }
  if (log_probs.shape().rank() != 3 || targets.shape().rank() != 2) {
    throw ShapeError("ctc of " + describe(log_probs) + " and targets " + describe(targets) +
                     ": expected [N, T, C] and [N, S]");
  }
  Tensor losses =
      losses_of(log_probs, {targets.detach(), input_lengths.detach(), target_lengths.detach(), options.blank});
  if (options.zero_infinity) losses = where(eq(losses, std::numeric_limits<double>::infinity()), 0.0, losses);
  if (options.reduction == Reduction::kNone) return losses;
  if (options.reduction == Reduction::kSum) return sum(losses);
  const Tensor labels = target_lengths.detach().to(losses.dtype());
  const double samples = static_cast<double>(std::max<std::int64_t>(log_probs.size(0), 1));
  return scale(sum(div(losses, where(lt(labels, 1), 1.0, labels))),
               1 / (options.divisor > 0 ? options.divisor : samples));
}

}  // namespace lockstep::ops
