// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/batch_norm.inl.h"
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/normalization.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const NormalizationLoops kNormalizationLoops{
    .batch_norm_statistics = batch_norm_statistics,
    .batch_norm_apply = batch_norm_apply,
    .batch_norm_backward_reduce = batch_norm_backward_reduce,
    .batch_norm_backward_apply = batch_norm_backward_apply,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .group_norm_backward_apply = group_norm_backward_apply,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
