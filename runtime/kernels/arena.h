// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/optimizer_rules.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// One contiguous range of the arena that shares hyperparameters, a parameter; offsets in elements of the arena.
struct ArenaSegment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  float lr_scale = 1.0f;
  float weight_decay = 0.0f;
  std::int32_t parameter = 0;  ///< its number in StepScalars' lists
  std::int32_t adapts = 1;     ///< 0: its norms do not change its rate: LAMB, LARC, LARS
};

/// The tensors that every fused optimizer kernel reads and writes: 1-D slices of the arena, of one element count.
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
  /// By parameter, how many steps were applied to it before this one: for bias corrections, for Adagrad's lr_decay, and
  /// for what begins with the first one. Read by SGD with momentum, Adam, Adagrad, LAMB and NovoGrad.
  const std::int64_t* steps = nullptr;
  /// By parameter, of those that adapt: takes the place of weight decay, coupled or not. Null: no LARC and no LARS.
  /// element_step reads it.
  const LayerRate* layer_rates = nullptr;
  float clip_value = 0.0f;  ///< clipping by value after unscaling; 0 for none
};

/// The fused passes over an arena of parameters.
struct ArenaSteps {
  /// This family's functions of the backend for tensors on `device`.
  static const ArenaSteps& on(Device device);

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
  // The optimizers' steps. Norms are those of a segment, so that a segment has to be a whole parameter; they are summed
  // in float64, in an order that the segment alone decides.

  /// rates (float32 [parameters, 2], LayerRate) = those of the segments that adapt and have a gradient; the others
  /// stay.
  void (*layer_rates)(const ArenaSlice& slice, const LayerRateRule& rule, const StepScalars& scalars,
                      const Tensor& rates);
  /// A rule that looks at each element alone, with g = clip(grad * inverse_scale * clip) + weight_decay * master where
  /// the decay is coupled. states: as many as the rule has states(), in its order; float32, as long as master.
  void (*element_step)(const ArenaSlice& slice, const ElementRule& rule, const StepScalars& scalars,
                       const std::vector<Tensor>& states);
  /// Apex's LAMB; m and v are float32, as long as master. Two passes: the moments with the norms of weight and update,
  /// then the weights.
  void (*lamb_step)(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars, const Tensor& m,
                    const Tensor& v);
  /// Apex's NovoGrad; m is float32, as long as master; norms float32 [parameters]: the second moment's root, or where
  /// the rule has max_norm, its mean. On a parameter's first applied step it begins with the gradient, or at 0. Two
  /// passes: the norms of the gradients, then moment and weights.
  void (*novograd_step)(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars, const Tensor& m,
                        const Tensor& norms);
  /// mean += (1 - d) (weights - mean) with the rule's d, unless *found_inf != 0; *applied_steps counts this step too.
  /// Both pointers are to device memory. mean and weights: float32, of one size.
  void (*mean_step)(const Tensor& weights, const MeanRule& rule, const std::int64_t* applied_steps,
                    const float* found_inf, const Tensor& mean);
};

}  // namespace lockstep::kernels
