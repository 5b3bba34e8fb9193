// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// One contiguous range of the arena that shares hyperparameters; offsets in elements of the arena.
struct ArenaSegment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  float lr_scale = 1.0f;
  float weight_decay = 0.0f;
  std::int64_t parameter = 0;  ///< its number in StepScalars' lists
};

/// What every fused optimizer kernel reads and writes: slices of the arena with the same element count, 1-D.
struct ArenaSlice {
  Tensor master;          ///< float32; updated in place
  Tensor grad;            ///< float32, float16 or bfloat16; read only
  Tensor copy;            ///< the compute-dtype copy, written with the rounded master; undefined when there is none
  std::int64_t base = 0;  ///< the arena offset of the slice's first element, to which segments refer
  std::span<const ArenaSegment> segments;  ///< cover the part of the slice to update, ascending
  /// float16 or bfloat16 when there are no fp32 master weights (opt level O3): the master is rounded to it.
  DType master_precision = DType::kFloat32;
};

/// Scalars of a step that live on the device, so that no kernel waits for the host: every pointer is to device memory.
struct StepScalars {
  const float* inverse_scale = nullptr;  ///< 1 / loss scale
  const float* clip = nullptr;           ///< factor of clipping by global norm; null for none
  const float* found_inf = nullptr;      ///< agreed verdict: non-zero leaves everything unchanged
  const float* learning_rate = nullptr;
  /// By parameter, 0 where it has no gradient in this step: then nothing of it changes. Null: every one has.
  const float* has_gradient = nullptr;
  /// By parameter, how many steps were applied to it before this one: for Adam's bias correction, and for the first
  /// momentum. Plain SGD does not read it.
  const std::int64_t* steps = nullptr;
  float clip_value = 0.0f;  ///< clipping by value after unscaling; 0 for none
};

struct SgdOptions {
  float momentum = 0.0f;
  float dampening = 0.0f;
  bool nesterov = false;
};

/// In double, in which 1 - beta is computed: that of a float 0.999 is 5e-5 off.
struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool decoupled = false;  ///< AdamW: weight decay acts on the weight, not on the gradient
};

/// The fused passes over an arena of parameters.
struct ArenaSteps {
  /// For each segment s (arena offsets, relative to `base` in grad): flags[s] = 1 when it holds an inf or a NaN, else
  /// 0; sum_of_squares[s] = sum of grad^2 in float64 (0 when undefined on entry: pass an undefined tensor to skip it).
  /// flags: float32 [segments]; sum_of_squares: float64 [segments].
  void (*check_finite)(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments,
                       const Tensor& flags, const Tensor& sum_of_squares);
  /// out = clip(in * *factor) for the elements of the segments (arena offsets, relative to `base` in in and out),
  /// rounded once to out's dtype; what lies between segments stays. A null factor is 1; clip() limits to [-limit,
  /// limit], a limit of 0 to nothing. flags[s] = 1 where segment s of out then holds an inf or a NaN, else 0; flags
  /// (float32 [segments]) may be undefined. One pass. out may be in.
  void (*rescale)(const Tensor& in, const float* factor, float limit, std::int64_t base,
                  std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags);
  /// g = clip(grad * inverse_scale * clip) + weight_decay * master; PyTorch's SGD. momentum (float32, as long as
  /// master) is undefined when options.momentum is 0; on a parameter's first applied step it becomes g.
  void (*sgd_step)(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars,
                   const Tensor& momentum);
  /// PyTorch's Adam and AdamW; m and v are float32, as long as master.
  void (*adam_step)(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars, const Tensor& m,
                    const Tensor& v);
};

}  // namespace lockstep::kernels
