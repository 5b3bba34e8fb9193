// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/dim_extremes.inl.h"
#include "runtime/kernels/cpu/loops/dim_reductions.inl.h"
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/reductions.inl.h"
#include "runtime/kernels/cpu/loops/scans.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const ReductionLoops kReductionLoops{
    .sum_rows = sum_rows,
    .sum_of_squares = sum_of_squares,
    .all_finite = all_finite,
    .sum_columns = sum_columns,
    .sum_lines = sum_lines,
    .scale_sums = scale_sums,
    .deviation_columns = deviation_columns,
    .deviation_lines = deviation_lines,
    .extreme_columns = extreme_columns,
    .extreme_lines = extreme_lines,
    .scan_lines = scan_lines,
    .scan_columns = scan_columns,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
