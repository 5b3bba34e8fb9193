// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/ops/composed_losses.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

struct CtcOptions {
  Reduction reduction = Reduction::kMean;
  double divisor = 0;          ///< as LossReduction's
  std::int64_t blank = 0;      ///< the class that stands for no label
  bool zero_infinity = false;  ///< an input too short for its labels adds 0 to the loss, and has a gradient of 0
};

/// Connectionist temporal classification, PyTorch's ctc_loss: -log of the probability that the elements of a sequence
/// spell its labels, when repeated classes are one and blanks are left out. log_probs [N, T, C], as recurrent networks
/// and log_softmax give them (PyTorch's are [T, N, C]); targets int64 [N, S]; lengths int64 [N], of which the elements
/// and labels behind them count for nothing. The mean divides each loss by its number of labels, at least 1, and their
/// sum by the number of samples. In float32, or on the
/// CPU in float64 where log_probs are.
///
/// The gradient is that by the log-probabilities themselves. PyTorch's is that by what log_softmax takes; behind a
/// log_softmax both lead to one gradient. It is NaN where a loss is infinite, unless zero_infinity, and cannot be
/// differentiated again. An infinite loss makes NaN for its labels and the blank alone, PyTorch's for every class.
/// Throws ShapeError for shapes that do not fit and, on the CPU, UsageError for a length beyond T or S, for a label
/// outside [0, C) and for one that is the blank; on a GPU these make the loss NaN.
[[nodiscard]] Tensor ctc(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                         const Tensor& target_lengths, const CtcOptions& options = {});

}  // namespace lockstep::ops
