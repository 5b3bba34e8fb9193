// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/losses.h"

namespace lockstep::kernels::reference {

// Losses::ctc and ctc_backward
void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha);
void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs);

}  // namespace lockstep::kernels::reference
