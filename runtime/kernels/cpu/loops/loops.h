// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/kernels/backend.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/functors/layer_optimizer.h"
#include "runtime/kernels/rank_reduce.h"

namespace lockstep::kernels::cpu {

/// Elements of float32, float16 or bfloat16 that a loop reads.
struct Input {
  const void* data;
  DType dtype;

  Input from(std::int64_t element) const {
    return {static_cast<const std::byte*>(data) + static_cast<std::size_t>(element) * size_of(dtype), dtype};
  }
};

/// Elements that a loop writes. They may be those of an input, element for element.
struct Output {
  void* data;
  DType dtype;

  Output from(std::int64_t element) const {
    return {static_cast<std::byte*>(data) + static_cast<std::size_t>(element) * size_of(dtype), dtype};
  }
};

/// An undefined tensor gives null data.
inline Input input(const Tensor& tensor) {
  return tensor.defined() ? Input{tensor.data(), tensor.dtype()} : Input{nullptr, DType::kFloat32};
}
inline Output output(const Tensor& tensor) {
  return tensor.defined() ? Output{tensor.data(), tensor.dtype()} : Output{nullptr, DType::kFloat32};
}

/// Parameters of the batch normalisation's passes, float32 [channels] each.
struct BatchNormParameters {
  const float* mean;
  const float* scale;
  const float* shift;  ///< forward only
};

/// What the backward pass subtracts, float32 [channels] each.
struct BatchNormSlopes {
  const float* mean_dy;
  const float* slope;
};

/// The serial loops over contiguous elements, compiled for one instruction set. Threads and shapes are the callers'
/// business. Data with channels is [rows, channels]; an Input or Output with null data is left out.
struct Loops {
  // Elementwise over n elements.
  void (*convert)(Input in, Output out, std::int64_t n);
  void (*accumulate)(Input in, Output out, std::int64_t n);
  void (*add)(Input a, Input b, Output out, std::int64_t n);
  void (*multiply)(Input a, Input b, Output out, std::int64_t n);
  void (*add_channels)(Input a, const float* b, Output out, std::int64_t rows, std::int64_t channels);
  void (*multiply_channels)(Input a, const float* b, Output out, std::int64_t rows, std::int64_t channels);
  void (*scale)(Input in, float factor, Output out, std::int64_t n);
  void (*activate)(Activation activation, Input x, Output y, std::int64_t n);
  void (*activate_backward)(Activation activation, Input at, Input dy, Output dx, std::int64_t n);
  /// Element i is number first + i of the global tensor.
  void (*dropout)(Input x, double p, const DropoutKey& key, std::int64_t first, Output y, std::int64_t n);

  // Reductions of one chunk, small enough for float32 sums.
  /// sums [channels] = sums over the rows.
  void (*sum_rows)(Input x, std::int64_t rows, std::int64_t channels, float* sums);
  double (*sum_of_squares)(Input x, std::int64_t n);
  bool (*all_finite)(Input x, std::int64_t n);
  double (*squared_distance)(Input x, Input target, std::int64_t n);

  // Softmax and cross-entropy.
  void (*softmax)(Input x, bool log, Output y, std::int64_t rows, std::int64_t channels);
  void (*softmax_backward)(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t channels);
  /// Returns the sum of the rows' losses.
  double (*cross_entropy)(Input logits, const std::int64_t* targets, float smoothing, float* log_sum_exp,
                          std::int64_t rows, std::int64_t channels);
  /// dlogits = factor * (softmax - smoothed target)
  void (*cross_entropy_backward)(Input logits, const std::int64_t* targets, float smoothing, const float* log_sum_exp,
                                 float factor, Output dlogits, std::int64_t rows, std::int64_t channels);
  /// dx = factor * (x - target)
  void (*mse_backward)(Input x, Input target, float factor, Output dx, std::int64_t n);

  // Batch normalisation.
  /// Over one chunk: pivot [channels] = a value near its mean, sum and sum_of_squares [channels] those of x - pivot.
  void (*batch_norm_statistics)(Input x, std::int64_t rows, std::int64_t channels, float* pivot, float* sum,
                                float* sum_of_squares);
  void (*batch_norm_apply)(Input x, const BatchNormParameters& parameters, Input residual, bool relu, Output y,
                           std::int64_t rows, std::int64_t channels);
  /// Over one chunk. y masks dy where given.
  void (*batch_norm_backward_reduce)(Input x, const float* mean, Input dy, Input y, std::int64_t rows,
                                     std::int64_t channels, float* sum_dy, float* sum_dy_xmu);
  void (*batch_norm_backward_apply)(Input x, const BatchNormParameters& parameters, const BatchNormSlopes& slopes,
                                    Input dy, Input y, Output dx, Output dresidual, std::int64_t rows,
                                    std::int64_t channels);

  // The arena.
  /// out = in * *scalars.inverse_scale, clipped by scalars.clip_value; returns whether every element of out is finite.
  bool (*rescale)(Input in, const StepScalars& scalars, Output out, std::int64_t n);
  // A gradient, unscaled and clipped: its sum of squares, its largest magnitude.
  double (*gradient_squares)(Input grad, const StepScalars& scalars, std::int64_t n);
  float (*largest_gradient)(Input grad, const StepScalars& scalars, std::int64_t n);
  // One segment, whose part starts at element `begin` of the slice.
  void (*sgd_step)(const ArenaSlice& slice, const SgdRule& rule, const StepScalars& scalars,
                   const ArenaSegment& segment, float* momentum, std::int64_t begin, std::int64_t n);
  /// max_v: null without amsgrad.
  void (*adam_step)(const ArenaSlice& slice, const AdamRule& rule, const StepScalars& scalars,
                    const ArenaSegment& segment, float* m, float* v, float* max_v, std::int64_t begin, std::int64_t n);
  void (*adagrad_step)(const ArenaSlice& slice, const AdagradRule& rule, const StepScalars& scalars,
                       const ArenaSegment& segment, float* sum, std::int64_t begin, std::int64_t n);
  /// The new moments of one chunk; returns the sums of squares of its weights and updates.
  LayerSquares (*lamb_moments)(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars,
                               const ArenaSegment& segment, float* m, float* v, std::int64_t begin, std::int64_t n);
  void (*lamb_weights)(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars,
                       const ArenaSegment& segment, double trust_ratio, const float* m, const float* v,
                       std::int64_t begin, std::int64_t n);
  void (*novograd_step)(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars,
                        const ArenaSegment& segment, float norm, float* m, std::int64_t begin, std::int64_t n);

  decltype(&kernels::rank_reduce) rank_reduce;
};

namespace baseline {
extern const Loops kLoops;
}
namespace avx2 {
extern const Loops kLoops;
}
namespace avx512 {
extern const Loops kLoops;
}

/// The loops for isa().
const Loops& loops();

}  // namespace lockstep::kernels::cpu
