// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/copy.inl.h"
#include "runtime/kernels/cpu/loops/embedding.inl.h"
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/transpose.inl.h"
#include "runtime/kernels/cpu/loops/upsampling.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const StructureLoops kStructureLoops{
    .sum_picked = sum_picked,
    .weighted_sum = weighted_sum,
    .resample_pixels = resample_pixels,
    .copy_lines = copy_lines,
    .pick_lines = pick_lines<std::int64_t>,
    .pick_pixels = pick_lines<std::int32_t>,
    .pick_elements = pick_elements,
    .transpose = transpose,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
