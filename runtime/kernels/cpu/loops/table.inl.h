// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/arena.inl.h"
#include "runtime/kernels/cpu/loops/attention.inl.h"
#include "runtime/kernels/cpu/loops/batch_norm.inl.h"
#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/broadcast.inl.h"
#include "runtime/kernels/cpu/loops/channels.inl.h"
#include "runtime/kernels/cpu/loops/copy.inl.h"
#include "runtime/kernels/cpu/loops/dim_reductions.inl.h"
#include "runtime/kernels/cpu/loops/elementwise.inl.h"
#include "runtime/kernels/cpu/loops/embedding.inl.h"
#include "runtime/kernels/cpu/loops/lanes.inl.h"
#include "runtime/kernels/cpu/loops/layers.inl.h"
#include "runtime/kernels/cpu/loops/normalization.inl.h"
#include "runtime/kernels/cpu/loops/pair_loss.inl.h"
#include "runtime/kernels/cpu/loops/random.inl.h"
#include "runtime/kernels/cpu/loops/rank_reduce.inl.h"
#include "runtime/kernels/cpu/loops/reductions.inl.h"
#include "runtime/kernels/cpu/loops/scans.inl.h"
#include "runtime/kernels/cpu/loops/softmax.inl.h"
#include "runtime/kernels/cpu/loops/transpose.inl.h"
#include "runtime/kernels/cpu/loops/unary.inl.h"
#include "runtime/kernels/cpu/loops/upsampling.inl.h"
#include "runtime/kernels/cpu/loops/weighted_cross_entropy.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const Loops kLoops{
    .convert = convert,
    .accumulate = accumulate,
    .binary = binary,
    .ternary = ternary,
    .expand = expand,
    .binary_with_number = binary_with_number,
    .binary_channels = binary_channels,
    .scale = scale,
    .unary = unary,
    .unary_backward = unary_backward,
    .dropout = dropout,
    .random = random,
    .sum_rows = sum_rows,
    .sum_of_squares = sum_of_squares,
    .all_finite = all_finite,
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
    .attention = attention,
    .attention_backward = attention_backward,
    .batch_norm_statistics = batch_norm_statistics,
    .batch_norm_apply = batch_norm_apply,
    .batch_norm_backward_reduce = batch_norm_backward_reduce,
    .batch_norm_backward_apply = batch_norm_backward_apply,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .group_norm_backward_apply = group_norm_backward_apply,
    .sum_picked = sum_picked,
    .weighted_sum = weighted_sum,
    .resample_pixels = resample_pixels,
    .rescale = rescale,
    .gradient_squares = gradient_squares,
    .largest_gradient = largest_gradient,
    .sgd_step = sgd_step,
    .adam_step = adam_step,
    .adagrad_step = adagrad_step,
    .lamb_moments = lamb_moments,
    .lamb_weights = lamb_weights,
    .novograd_step = novograd_step,
    .mean_step = mean_step,
    .rank_reduce = rank_reduce,
    .copy_lines = copy_lines,
    .pick_lines = pick_lines<std::int64_t>,
    .pick_pixels = pick_lines<std::int32_t>,
    .pick_elements = pick_elements,
    .transpose = transpose,
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
