// SPDX-License-Identifier: Apache-2.0
// The compiler reads the headers longer than it works on a small family: those stand here, beside the table of all.
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/arena.inl.h"
#include "runtime/kernels/cpu/loops/attention.inl.h"
#include "runtime/kernels/cpu/loops/attention_rows.inl.h"
#include "runtime/kernels/cpu/loops/copy.inl.h"
#include "runtime/kernels/cpu/loops/embedding.inl.h"
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/layers.inl.h"
#include "runtime/kernels/cpu/loops/pooling.inl.h"
#include "runtime/kernels/cpu/loops/products.inl.h"
#include "runtime/kernels/cpu/loops/rank_reduce.inl.h"
#include "runtime/kernels/cpu/loops/transpose.inl.h"
#include "runtime/kernels/cpu/loops/upsampling.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const ProductLoops kProductLoops{
    .multiply_strip = multiply_strip,
};

const AttentionLoops kAttentionLoops{
    .attention = attention,
    .attention_backward = attention_backward,
    .attention_rows = attention_rows,
    .attention_rows_backward = attention_rows_backward,
};

const ArenaLoops kArenaLoops{
    .rescale = rescale,
    .gradient_squares = gradient_squares,
    .largest_gradient = largest_gradient,
    .element_steps = element_loops(std::type_identity<ElementRule>()),
    .lamb_moments = lamb_moments,
    .lamb_weights = lamb_weights,
    .novograd_step = novograd_step,
    .mean_step = mean_step,
    .rank_reduce = rank_reduce,
};

const StructureLoops kStructureLoops{
    .sum_picked = sum_picked,
    .weighted_sum = weighted_sum,
    .resample_pixels = resample_pixels,
    .largest_pixels = largest_pixels,
    .copy_lines = copy_lines,
    .pick_lines = pick_lines<std::int64_t>,
    .pick_pixels = pick_lines<std::int32_t>,
    .pick_elements = pick_elements,
    .transpose = transpose,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const Loops& all_loops() {
  static const Loops loops{kElementwiseLoops, kBroadcastLoops,     kReductionLoops, kSoftmaxLoops,  kProductLoops,
                           kAttentionLoops,   kNormalizationLoops, kArenaLoops,     kStructureLoops};
  return loops;
}

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
