// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/pair_loss.inl.h"
#include "runtime/kernels/cpu/loops/softmax.inl.h"
#include "runtime/kernels/cpu/loops/weighted_cross_entropy.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const SoftmaxLoops kSoftmaxLoops{
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .softmax_columns = softmax_columns,
    .softmax_backward_columns = softmax_backward_columns,
    .cross_entropy = cross_entropy,
    .cross_entropy_backward = cross_entropy_backward,
    .weighted_cross_entropy = weighted_cross_entropy,
    .weighted_cross_entropy_backward = weighted_cross_entropy_backward,
    .pair_loss = pair_loss,
    .pair_loss_backward = pair_loss_backward,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
