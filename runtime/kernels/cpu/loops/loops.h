// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <variant>

#include "runtime/kernels/arena.h"
#include "runtime/kernels/binary.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/loops/attention_head.h"
#include "runtime/kernels/cpu/loops/elements.h"
#include "runtime/kernels/distribution.h"
#include "runtime/kernels/functors/layer_optimizer.h"
#include "runtime/kernels/functors/running_mean.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/pair_loss.h"
#include "runtime/kernels/random_keys.h"
#include "runtime/kernels/rank_reduce.h"
#include "runtime/kernels/reduction_kinds.h"
#include "runtime/kernels/unary.h"

namespace lockstep::kernels::cpu {

/// An operand that may be broadcast.
struct Operand {
  Input in;  ///< from its first element on
  const BroadcastWalk* walk;
  int number;  ///< of the walk's operands
};

/// c [rows, kColumns] = a b, or c += a b, in float32: a's element (i, k) lies at a[i * a_row + k * a_column], b is
/// [terms, kColumns], c has lines of c_row.
struct ProductStrip {
  static constexpr std::int64_t kColumns = 16;

  bool add;
  std::int64_t rows;
  std::int64_t terms;
  const float* a;
  std::int64_t a_row;
  std::int64_t a_column;
  const float* b;
  float* c;
  std::int64_t c_row;
};

/// Targets of a cross entropy whose classes and rows have weights; a row of weight 0 counts for nothing.
struct WeightedTargets {
  const std::int64_t* classes;  ///< [rows]
  const float* row_weights;     ///< [rows]
  const float* class_weights;   ///< [channels]
  float sum_of_class_weights;
  float smoothing;

  WeightedTargets from(std::int64_t row) const {
    return {classes + row, row_weights + row, class_weights, sum_of_class_weights, smoothing};
  }
};

/// The most columns that a loop reduces at once: their sums stay in the cache.
inline constexpr std::int64_t kMostColumns = 2048;

/// Parameters of the batch normalisation's passes, float32 [channels] each.
struct BatchNormParameters {
  const float* mean;
  const float* scale;
  const float* shift;  ///< forward only
};

/// The inputs of batch normalisation's backward pass beside x; null data where one is left out.
struct BatchNormGradients {
  Input dy;
  Input addend = {};  ///< added to dy, and the sum rounded
  Input y = {};       ///< masks the sum
};

/// The backward pass subtracts mean_dy + (x - mean) slope from dy; float32 [channels] each.
struct BatchNormSlopes {
  const float* mean_dy;
  const float* slope;
};

/// Parameters of the layer normalisation, float32 [channels] each.
struct LayerNormParameters {
  const float* weight;
  const float* bias;  ///< forward only
};

/// dx = scale dy - ((x - mean) slope + offset), float32 [channels] each.
struct GroupNormSlopes {
  const float* mean;
  const float* scale;
  const float* slope;
  const float* offset;
};

/// The pixels of a source row, and their weights, that make each pixel of a resampled row. Entries
/// [begin[i], begin[i + 1]) of `pixel` and `weight` are those of pixel i.
struct PixelTaps {
  const std::int32_t* begin;
  const std::int32_t* pixel;
  const float* weight;
};

// The serial loops over contiguous elements, compiled for one instruction set. Threads and shapes are the callers'
// business. Data with channels is [rows, channels]; an Input or Output with null data is left out. A family is a source
// file of this folder.

/// Elementwise over n elements.
struct ElementwiseLoops {
  void (*convert)(Input in, Output out, std::int64_t n);
  void (*accumulate)(Input in, Output out, std::int64_t n);
  void (*scale)(Input in, float factor, Output out, std::int64_t n);
  void (*unary)(const UnaryFunction& function, Input x, Output y, std::int64_t n);
  void (*unary_backward)(const UnaryFunction& function, Input at, Input dy, Output dx, std::int64_t n);
  /// Element i is number first + i of the global tensor.
  void (*dropout)(Input x, double p, const DropoutKey& key, std::int64_t first, Output y, std::int64_t n);
  /// Element i is number first + i of the key's stream.
  void (*random)(Distribution distribution, double first_parameter, double second_parameter, const RandomKey& key,
                 std::int64_t first, Output out, std::int64_t n);
};

/// Functions of several operands, which may be broadcast.
struct BroadcastLoops {
  // Elements [begin, begin + n) of the walk's output; `out` is where the first of them goes.
  void (*binary)(Binary function, const Operand& a, const Operand& b, Output out, std::int64_t begin, std::int64_t n);
  void (*ternary)(const TernaryFunction& function, const Operand& a, const Operand& b, const Operand& c, Output out,
                  std::int64_t begin, std::int64_t n);
  void (*expand)(const Operand& in, Output out, std::int64_t begin, std::int64_t n);
  void (*binary_with_number)(Binary function, Input x, float number, bool number_first, Output out, std::int64_t n);
  void (*binary_channels)(Binary function, Input a, const float* b, Output out, std::int64_t rows,
                          std::int64_t channels);
};

/// Sums and extremes, of one chunk small enough for float32 sums or in float64, and scans.
struct ReductionLoops {
  /// sums [channels] = sums over the rows.
  void (*sum_rows)(Input x, std::int64_t rows, std::int64_t channels, float* sums);
  double (*sum_of_squares)(Input x, std::int64_t n);
  bool (*all_finite)(Input x, std::int64_t n);
  // Reductions of `width` <= kMostColumns columns over rows that lie `stride` apart, and of lines of n neighbours.
  void (*sum_columns)(Input x, Term term, std::int64_t rows, std::int64_t stride, std::int64_t width, double* sums);
  void (*sum_lines)(Input x, Term term, std::int64_t lines, std::int64_t n, double* sums);
  /// out = factor * sums
  void (*scale_sums)(const double* sums, double factor, Output out, std::int64_t n);
  /// Sums of x - centre and of its squares.
  void (*deviation_columns)(Input x, const float* centre, std::int64_t rows, std::int64_t stride, std::int64_t width,
                            double* sums, double* squares);
  void (*deviation_lines)(Input x, const float* centre, std::int64_t lines, std::int64_t n, double* sums,
                          double* squares);
  /// At least one row, or one element a line, and fewer than 2^31 rows. indices may be null.
  void (*extreme_columns)(Input x, Extreme which, std::int64_t rows, std::int64_t stride, std::int64_t width,
                          float* values, std::int64_t* indices);
  void (*extreme_lines)(Input x, Extreme which, std::int64_t lines, std::int64_t n, float* values,
                        std::int64_t* indices);
  /// Scans::scan of lines of n neighbours, and of up to 512 columns.
  void (*scan_lines)(Input a, Input b, bool reverse, Output y, std::int64_t lines, std::int64_t n);
  void (*scan_columns)(Input a, Input b, bool reverse, Output y, std::int64_t rows, std::int64_t stride,
                       std::int64_t width);
};

/// Softmax, and the losses.
struct SoftmaxLoops {
  void (*softmax)(Input x, bool log, Output y, std::int64_t rows, std::int64_t channels);
  void (*softmax_backward)(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t channels);
  /// Softmax over the rows of up to 512 columns; rows lie `stride` elements apart.
  void (*softmax_columns)(Input x, bool log, Output y, std::int64_t rows, std::int64_t stride, std::int64_t width);
  void (*softmax_backward_columns)(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t stride,
                                   std::int64_t width);
  /// Returns the sum of the rows' losses.
  double (*cross_entropy)(Input logits, const std::int64_t* targets, float smoothing, float* log_sum_exp,
                          std::int64_t rows, std::int64_t channels);
  /// dlogits = factor * (softmax - smoothed target)
  void (*cross_entropy_backward)(Input logits, const std::int64_t* targets, float smoothing, const float* log_sum_exp,
                                 float factor, Output dlogits, std::int64_t rows, std::int64_t channels);
  double (*weighted_cross_entropy)(Input logits, const WeightedTargets& targets, float* log_sum_exp, std::int64_t rows,
                                   std::int64_t channels);
  void (*weighted_cross_entropy_backward)(Input logits, const WeightedTargets& targets, const float* log_sum_exp,
                                          float factor, Output dlogits, std::int64_t rows, std::int64_t channels);
  /// Returns the sum of one chunk.
  double (*pair_loss)(const PairLossFunction& function, Input x, Input target, std::int64_t n);
  /// gradient = factor * the derivative by the side
  void (*pair_loss_backward)(const PairLossFunction& function, Input x, Input target, PairSide side, float factor,
                             Output gradient, std::int64_t n);
};

struct ProductLoops {
  void (*multiply_strip)(const ProductStrip& strip);
};

/// One head. `scratch` holds AttentionHead::scratch() floats, aligned to a cache line.
struct AttentionLoops {
  /// Queries [first, first + n) of a head, n <= kQueries: their rows of `out`, and of norms.
  void (*attention)(const AttentionHead& head, std::int64_t first, std::int64_t n, OutputRows out, float* norms,
                    float* scratch);
  void (*attention_backward)(const AttentionHead& head, const AttentionGradients& gradients, float* scratch);
  // The same between products that others compute. `products`, q . k, are overwritten; room: AttentionRows::room().
  /// The probabilities after dropout, and the queries' rows of norms.
  void (*attention_rows)(const AttentionHead& head, const AttentionRows& rows, float* products, Output probabilities,
                         float* norms, float* room);
  /// The probabilities after dropout, and the slopes of the products.
  void (*attention_rows_backward)(const AttentionHead& head, const AttentionRows& rows, const AttentionRowSlopes& of,
                                  float* products, Output probabilities, Output slopes, float* room);
};

/// Batch, layer and group normalisation.
struct NormalizationLoops {
  // Batch normalisation.
  /// Over one chunk: pivot [channels] = a value near its mean, sum and sum_of_squares [channels] those of x - pivot.
  void (*batch_norm_statistics)(Input x, std::int64_t rows, std::int64_t channels, float* pivot, float* sum,
                                float* sum_of_squares);
  void (*batch_norm_apply)(Input x, const BatchNormParameters& parameters, Input residual, bool relu, Output y,
                           std::int64_t rows, std::int64_t channels);
  /// Over one chunk. masked: where the gradient goes behind sum and mask, as it is summed; none where its data is null.
  void (*batch_norm_backward_reduce)(Input x, const float* mean, const BatchNormGradients& gradients, Output masked,
                                     std::int64_t rows, std::int64_t channels, float* sum_dy, float* sum_dy_xmu);
  /// y masks dy where given.
  void (*batch_norm_backward_apply)(Input x, const BatchNormParameters& parameters, const BatchNormSlopes& slopes,
                                    Input dy, Input y, Output dx, std::int64_t rows, std::int64_t channels);
  // Normalisation within a sample. y and dy have x's dtype or are float32.
  /// mean null: without mean.
  void (*layer_norm)(Input x, const LayerNormParameters& parameters, double epsilon, Output y, float* mean,
                     float* inv_std, std::int64_t rows, std::int64_t channels);
  /// dweight and dbias [channels] of these rows.
  void (*layer_norm_backward)(Input x, const LayerNormParameters& parameters, const float* mean, const float* inv_std,
                              Input dy, Output dx, float* dweight, float* dbias, std::int64_t rows,
                              std::int64_t channels);
  void (*group_norm_backward_apply)(Input x, const GroupNormSlopes& slopes, Input dy, Output dx, std::int64_t rows,
                                    std::int64_t channels);
};

/// A rule that looks at each element alone. `states`: those of the whole slice, as many as the rule has.
template <class Rule>
using ElementLoop = void (*)(const ArenaSlice& slice, const Rule& rule, const StepScalars& scalars,
                             const ArenaSegment& segment, float* const* states, std::int64_t begin, std::int64_t n);
template <class Rules>
struct LoopOfEach;
template <class... Rules>
struct LoopOfEach<std::variant<Rules...>> {
  using Type = std::tuple<ElementLoop<Rules>...>;
};

/// Gradients and optimizers, and the sum over ranks.
struct ArenaLoops {
  /// out = in * *scalars.inverse_scale, clipped by scalars.clip_value; returns whether every element of out is finite.
  bool (*rescale)(Input in, const StepScalars& scalars, Output out, std::int64_t n);
  // A gradient, unscaled and clipped: its sum of squares, its largest magnitude.
  double (*gradient_squares)(Input grad, const StepScalars& scalars, std::int64_t n);
  float (*largest_gradient)(Input grad, const StepScalars& scalars, std::int64_t n);
  // One segment, whose part starts at element `begin` of the slice.
  /// A loop a rule.
  LoopOfEach<ElementRule>::Type element_steps;
  /// The new moments of one chunk; returns the sums of squares of its weights and updates.
  LayerSquares (*lamb_moments)(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars,
                               const ArenaSegment& segment, float* m, float* v, std::int64_t begin, std::int64_t n);
  void (*lamb_weights)(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars,
                       const ArenaSegment& segment, double trust_ratio, const float* m, const float* v,
                       std::int64_t begin, std::int64_t n);
  void (*novograd_step)(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars,
                        const ArenaSegment& segment, float norm, float* m, std::int64_t begin, std::int64_t n);
  void (*mean_step)(const float* weights, const RunningMean& running, float* mean, std::int64_t n);
  decltype(&kernels::rank_reduce) rank_reduce;
};

/// Copies, transposes, and lines that are picked or resampled.
struct StructureLoops {
  /// sums [n] = the lines of x [.., n] at the first `count` >= 1 of `all` places, added up in their order. The others
  /// are those that are read next.
  void (*sum_picked)(Input x, const std::int64_t* places, std::int64_t count, std::int64_t all, std::int64_t n,
                     float* sums);
  /// sum [n] = the sum of `count` rows times their weights.
  void (*weighted_sum)(const Input* rows, const float* weights, std::int64_t count, float* sum, std::int64_t n);
  /// out [pixels, channels]
  void (*resample_pixels)(const float* row, const PixelTaps& taps, std::int64_t pixels, std::int64_t channels,
                          float* out);
  /// For each channel the largest of `count` pixels of x [.., channels], of which there is one at least, and which of
  /// them it is, the first of equals. A NaN is larger than all.
  void (*largest_pixels)(const float* x, const std::int32_t* pixels, std::int64_t count, std::int64_t channels,
                         float* maxima, std::int32_t* winners);
  /// Lines of so many bytes, which lie strides of so many bytes apart.
  void (*copy_lines)(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride, std::int64_t bytes,
                     std::int64_t lines);
  /// out [lines, bytes]: those of `in` [.., bytes] at the indices.
  void (*pick_lines)(const void* in, const std::int64_t* indices, std::int64_t bytes, std::int64_t lines, void* out);
  void (*pick_pixels)(const void* in, const std::int32_t* indices, std::int64_t bytes, std::int64_t lines, void* out);
  /// out [lines, n]: elements of `in` [lines, extent] at indices [lines, n], which name places in their own line. Of so
  /// many bytes. Returns whether all indices are in [0, extent); reads nothing at another one.
  bool (*pick_elements)(const void* in, std::int64_t extent, const std::int64_t* indices, std::int64_t n,
                        std::int64_t lines, void* out, std::size_t bytes);
  /// out [columns, rows] = in [rows, columns] transposed, of elements of so many bytes. Strides in elements, from row
  /// to row.
  void (*transpose)(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride, std::int64_t rows,
                    std::int64_t columns, std::size_t bytes);
};

/// The loops of all families.
struct Loops : ElementwiseLoops,
               BroadcastLoops,
               ReductionLoops,
               SoftmaxLoops,
               ProductLoops,
               AttentionLoops,
               NormalizationLoops,
               ArenaLoops,
               StructureLoops {};

namespace baseline {
const Loops& all_loops();
}
namespace avx2 {
const Loops& all_loops();
}
namespace avx512 {
const Loops& all_loops();
}
namespace neon {
const Loops& all_loops();
}
namespace neon_bf16 {
const Loops& all_loops();
}

/// The loops for isa().
const Loops& loops();

}  // namespace lockstep::kernels::cpu
