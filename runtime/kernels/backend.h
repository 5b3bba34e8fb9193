// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

enum class Activation : std::uint8_t { kNone, kRelu, kGelu, kGeluTanh };

/// Whether the activation's derivative can be told from its output as well as from its input, so that a backward pass
/// need not keep the input.
constexpr bool derivative_follows_from_output(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu;
}

enum class PoolKind : std::uint8_t { kMax, kAverage };

/// Convolution over 1 to 3 spatial dimensions. Only the first spatial_rank entries of each array count.
struct ConvGeometry {
  int spatial_rank = 2;
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> padding{0, 0, 0};  ///< on both sides
  std::array<std::int64_t, 3> dilation{1, 1, 1};
  std::int64_t groups = 1;

  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;
};

/// Pooling over 1 to 3 spatial dimensions.
struct PoolGeometry {
  PoolKind kind = PoolKind::kMax;
  int spatial_rank = 2;
  std::array<std::int64_t, 3> window{1, 1, 1};
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> padding{0, 0, 0};
  bool count_include_pad = true;  ///< average only: padding counts in the divisor, as in PyTorch

  friend bool operator==(const PoolGeometry&, const PoolGeometry&) = default;
};

/// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1; throws ShapeError when that is not positive.
std::int64_t output_extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation);
/// [N, spatial..., C] convolved with [O, kernel..., C / groups] gives [N, spatial'..., O]. Throws ShapeError.
Shape conv_output_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry);
/// The x of the convolution whose y has the shape of this x [N, spatial..., C]: with weight [C, kernel..., O / groups]
/// it is [N, spatial'..., O], where spatial' = (spatial - 1) stride - 2 padding + dilation (kernel - 1) + 1 +
/// output_padding. A convolution with stride s maps s extents to one: output_padding, in [0, s), picks one of them.
/// Throws ShapeError.
Shape conv_transpose_output_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry,
                                  const std::array<std::int64_t, 3>& output_padding);
Shape pool_output_shape(const Shape& x, const PoolGeometry& geometry);

/// What becomes of a matrix product [m, n] on its way out, without another pass over it: forward the bias and the
/// activation of a linear layer, backward the derivative of the layer before and the gradient of the bias.
struct Epilogue {
  Epilogue() = default;
  /// Most products have a bias at most, so a tensor will do; an undefined one is none.
  Epilogue(const Tensor& each_row) : bias(each_row) {}  // NOLINT(google-explicit-constructor)

  Tensor bias;  ///< [n], the operands' dtype; added to every row; may be undefined
  /// out = activation(z) with z = product + bias.
  Activation activation = Activation::kNone;
  /// out's shape and dtype: receives z, for the derivative of an activation that does not follow from its output. May
  /// be undefined; only beside an activation.
  Tensor preactivation;

  /// out = product * derivative'(derivative_at): what reaches the layer before, times its activation's derivative.
  Activation derivative = Activation::kNone;
  /// out's shape and dtype: that layer's z, or its output where the derivative follows from that.
  Tensor derivative_at;

  /// [m], of any floating dtype: receives the sums of op(a)'s rows. With dy transposed as a, where the product is the
  /// gradient of a weight, that is the gradient of the bias. May be undefined; only for a transposed a of rank 2.
  Tensor bias_gradient;
  bool accumulate_bias_gradient = false;  ///< add to it instead of overwriting it
};

/// Where a step stands in the run.
struct StepPosition {
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  ///< of this rank's share in the step's global batch
};

/// A key of the counter-based generator: the same key and element index give the same mask on every rank and device.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t call = 0;  ///< of the layer within the step, from 0 to 2^24 - 1
  /// Device memory, read when the kernel runs and added to `step` and, in elements, to the first element: what differs
  /// from one replay of a captured step to the next. Null: nothing is added.
  const StepPosition* position = nullptr;
};

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

/// How the loss scale moves; PyTorch's GradScaler with a floor and a ceiling.
struct LossScaleOptions {
  bool dynamic = true;  ///< false: the scale stays
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int32_t growth_interval = 2000;
  double min = 0.0;
  double max = 0.0;
};

/// The loss scale and what moves it. Lies on the device.
struct LossScaleState {
  float scale = 1.0f;
  float inverse = 1.0f;  ///< 1 / scale, computed in double
  float used = 0.0f;     ///< the scale of the step last counted
  std::int32_t growth_tracker = 0;
  std::int32_t consecutive_skips = 0;
  std::int64_t skipped_steps = 0;
};

/// What the ranks have agreed on for one step. Lies on the device.
struct StepVerdict {
  float found_inf = 0.0f;     ///< 1: the step is skipped
  std::int32_t slot = -1;     ///< the first bad parameter in the arena's order; -1: none
  std::int32_t rank = kNone;  ///< the lowest rank whose own gradient of it was bad, or one of these:

  static constexpr std::int32_t kNone = -1;     ///< every rank's own was finite, but the sum over ranks was not
  static constexpr std::int32_t kUnknown = -2;  ///< nobody looked at them before they were reduced
};

/// Which optimizer step comes next. Lies on the device.
struct ScheduleState {
  std::int64_t applied_steps = 0;
  float learning_rate = 0.0f;
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

/// What a device computes. All tensors lie on the backend's device; outputs are allocated by the caller, do not alias
/// inputs unless a function says that they may, and are overwritten entirely. Floating dtypes are float32, float16,
/// bfloat16 (and float64 where the reference runs); 16-bit types are read exactly, accumulated in float32 and rounded
/// once when they are stored. Extents may be 0 everywhere. Wrong shapes and dtypes throw ShapeError.
///
/// "Channels" are the last dimension, "rows" the product of the others.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Elementwise --------------------------------------------------------------------------------------------------

  virtual void fill(const Tensor& out, double value) = 0;
  /// out = in, converted to out's dtype (any pair of dtypes).
  virtual void cast(const Tensor& in, const Tensor& out) = 0;
  /// out = in unless *rejected, a float on the device, is non-zero. Same shape and dtype.
  virtual void copy_unless(const float* rejected, const Tensor& in, const Tensor& out) = 0;
  /// out += in; dtypes may differ; computed in the wider one, rounded to out's.
  virtual void accumulate(const Tensor& in, const Tensor& out) = 0;
  /// out = a + b. Same dtype. b has a's shape, or is [channels] and broadcast over rows. out may alias a.
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& out) = 0;
  /// out = a * b; shapes as in add.
  virtual void multiply(const Tensor& a, const Tensor& b, const Tensor& out) = 0;
  /// out = in * factor * (*device_factor where given). out may alias in.
  virtual void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) = 0;
  /// y = activation(x). gelu is the exact one: x * (1 + erf(x / sqrt 2)) / 2; gelu_tanh its approximation
  /// x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. y may alias x.
  virtual void activate(Activation activation, const Tensor& x, const Tensor& y) = 0;
  /// dx = dy * activation'(x). For relu x may be the output instead of the input. dx may alias dy.
  virtual void activate_backward(Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx) = 0;
  /// y = x * mask / (1 - p), where element i of x is number first_element + i of the global tensor and its mask is
  /// uniform(key, number) >= p, functors/philox.h. The backward pass is the same call on dy. y may alias x.
  virtual void dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element,
                       const Tensor& y) = 0;

  // Reductions ---------------------------------------------------------------------------------------------------

  /// out (scalar, rank 0) = sum of x * factor. Deterministic order.
  virtual void sum(const Tensor& x, double factor, const Tensor& out) = 0;
  /// out [channels] = sum of x over its rows; when `accumulate`, added to out.
  virtual void sum_rows(const Tensor& x, bool accumulate, const Tensor& out) = 0;

  // Matrix products ----------------------------------------------------------------------------------------------

  /// out = op(a) op(b), through `epilogue` (+ out when `accumulate`, which goes with neither an activation nor a
  /// derivative), op transposing the last two dimensions where asked for. Rank 2, or rank 3 with equal batch extents. a
  /// and b share a dtype; out may have another one: float32 or the same.
  ///
  /// Where a device has no fused kernel for an activation or a derivative, what it applies to may be rounded to out's
  /// dtype before: 16-bit results are then rounded twice, as those of separate operations are.
  virtual void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
                      bool accumulate, const Tensor& out) = 0;

  // Convolution: x [N, spatial..., C], weight [O, kernel..., C / groups], y [N, spatial'..., O] --------------------

  /// bias [O] may be undefined. x, weight, bias and y share a dtype.
  virtual void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& y) = 0;
  /// Writes those of dx, dweight, dbias that are defined. dx has x's dtype; dweight and dbias may be of any floating
  /// dtype (they may be slices of the gradient arena) and are added to when `accumulate`. x is read for dweight and
  /// weight for dx; without dweight dx may be x, which then gives the shape alone.
  virtual void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                             const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate) = 0;

  // Pooling: x [N, spatial..., C] --------------------------------------------------------------------------------

  /// `indices` (int32, y's shape) receives for max pooling each maximum's offset in its image's spatial extents (the
  /// first one on ties; NaN wins); undefined for average pooling.
  virtual void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) = 0;
  virtual void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices,
                             const Tensor& dx) = 0;
  /// y [N, C] = mean of x over its spatial dimensions.
  virtual void global_average_pool(const Tensor& x, const Tensor& y) = 0;
  virtual void global_average_pool_backward(const Tensor& dy, const Tensor& dx) = 0;

  // Softmax and losses over the last dimension -------------------------------------------------------------------

  virtual void softmax(const Tensor& x, bool log, const Tensor& y) = 0;
  /// dx from the output y of softmax (or of log_softmax where `log`).
  virtual void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) = 0;
  /// Class indices targets [rows] int64. loss (scalar float32, or float64 for float64 logits) = weight * sum over rows
  /// of -(1 - s) log p[target] - s / C sum_c log p[c], s = label_smoothing. log_sum_exp [rows] of loss's dtype is kept
  /// for the backward pass. A target outside [0, C) throws UsageError naming row and value.
  virtual void cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                             const Tensor& loss, const Tensor& log_sum_exp) = 0;
  /// dlogits (logits' dtype) = *dloss * weight * (softmax - smoothed target); dloss is a scalar of loss's dtype.
  virtual void cross_entropy_backward(const Tensor& logits, const Tensor& targets, double label_smoothing,
                                      double weight, const Tensor& log_sum_exp, const Tensor& dloss,
                                      const Tensor& dlogits) = 0;
  /// loss (scalar float32, or float64) = weight * sum of (x - target)^2; target has x's shape and dtype.
  virtual void mse(const Tensor& x, const Tensor& target, double weight, const Tensor& loss) = 0;
  virtual void mse_backward(const Tensor& x, const Tensor& target, double weight, const Tensor& dloss,
                            const Tensor& dx) = 0;

  // Batch normalisation over channels. Statistics and parameters are float32 [C] (float64 for float64 x) -----------

  /// mean [C] and m2 [C] = sum of (x - mean)^2 over this tensor's rows (0 and 0 without rows).
  virtual void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) = 0;
  /// Combines the statistics of P shares in their order. packed [P, 2 C + 1] holds for each share mean [C], m2 [C] and
  /// its number of rows. Writes mean [C], inv_std [C] = 1 / sqrt(m2 / count + epsilon), count (scalar: all rows), and
  /// where `running` is defined next_running [2, C] = (1 - momentum) running + momentum (mean; m2 / (count - 1)), which
  /// must not alias running. Without any row the running statistics stay.
  virtual void batch_norm_finalize(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                                   const Tensor& mean, const Tensor& inv_std, const Tensor& count,
                                   const Tensor& next_running) = 0;
  /// y = act((x - mean) * inv_std * gamma + beta + residual), act being relu or the identity. residual [x's shape] may
  /// be undefined. y may alias residual.
  virtual void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y) = 0;
  /// sum_dy [C] = sum of dy', sum_dy_xmu [C] = sum of dy' (x - mean), where dy' is dy masked by y > 0 when `relu` (y is
  /// the output of apply; undefined otherwise).
  virtual void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& y,
                                          bool relu, const Tensor& sum_dy, const Tensor& sum_dy_xmu) = 0;
  /// dx = gamma inv_std (dy' - sum_dy / count - (x - mean) inv_std^2 sum_dy_xmu / count), with the sums and the count
  /// (scalar) of all ranks. dresidual = dy' where defined; it may alias dy. With count undefined the statistics are
  /// constants (evaluation): dx = gamma inv_std dy'.
  virtual void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std,
                                         const Tensor& gamma, const Tensor& dy, const Tensor& y, bool relu,
                                         const Tensor& sum_dy, const Tensor& sum_dy_xmu, const Tensor& count,
                                         const Tensor& dx, const Tensor& dresidual) = 0;

  // The arena ----------------------------------------------------------------------------------------------------

  /// For each segment s (arena offsets, relative to `base` in grad): flags[s] = 1 when it holds an inf or a NaN, else
  /// 0; sum_of_squares[s] = sum of grad^2 in float64 (0 when undefined on entry: pass an undefined tensor to skip it).
  /// flags: float32 [segments]; sum_of_squares: float64 [segments].
  virtual void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments,
                            const Tensor& flags, const Tensor& sum_of_squares) = 0;
  /// out = clip(in * *factor) for the elements of the segments (arena offsets, relative to `base` in in and out),
  /// rounded once to out's dtype; what lies between segments stays. A null factor is 1; clip() limits to [-limit,
  /// limit], a limit of 0 to nothing. flags[s] = 1 where segment s of out then holds an inf or a NaN, else 0; flags
  /// (float32 [segments]) may be undefined. One pass. out may be in.
  virtual void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
                       std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) = 0;
  /// g = clip(grad * inverse_scale * clip) + weight_decay * master; PyTorch's SGD. momentum (float32, as long as
  /// master) is undefined when options.momentum is 0; on a parameter's first applied step it becomes g.
  virtual void sgd_step(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars,
                        const Tensor& momentum) = 0;
  /// PyTorch's Adam and AdamW; m and v are float32, as long as master.
  virtual void adam_step(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars,
                         const Tensor& m, const Tensor& v) = 0;

  // A step's decisions, taken on the device: every pointer is to device memory -------------------------------------

  /// The ballot of this rank: ballot [2 P] float32 = for each of P parameters whether reduced or local (float32 [P],
  /// above 0 is bad; local may be undefined) is bad, then world_size - rank where local is, 0 where it is not, and 0.5
  /// where that is not known. Its maximum over ranks names for each parameter the lowest rank.
  virtual void cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size,
                           const Tensor& ballot) = 0;
  /// The verdict of the ballot's maximum over ranks.
  virtual void count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) = 0;
  /// *norm = sqrt(sum of squares) * *inverse_scale (1 where null); *factor = min(1, clip_norm / (*norm + 1e-6)),
  /// PyTorch's clip_grad_norm_. squares: float64 [segments].
  virtual void clip_factor(const Tensor& squares, const float* inverse_scale, double clip_norm, float* norm,
                           float* factor) = 0;
  /// Moves the scale after a step: on *found_inf != 0 backs off, else counts and grows at the interval where the
  /// product is finite; counts skips.
  virtual void update_loss_scale(const LossScaleOptions& options, const float* found_inf, LossScaleState* state) = 0;
  /// Counts the step as applied unless *found_inf != 0, and takes the next rate from rates [n] float32, which names one
  /// for each number of applied steps; the last one holds from there on. And counts it in steps [P] int64 for those of
  /// P parameters whose has_gradient [P] float32 is not 0.
  virtual void advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient,
                                const Tensor& steps, ScheduleState* state) = 0;
};

/// The backend for tensors on `device`: the fastest one, or the one that a ScopedBackend on this thread put in place.
Backend& backend(Device device);
/// Plain loops, every dtype, float64 included: the oracle of the tests, and what float64 tensors run on.
Backend& reference_backend();

/// While it lives, this thread's CPU tensors run on the given backend. For tests.
class ScopedBackend {
 public:
  explicit ScopedBackend(Backend& backend);
  ~ScopedBackend();
  ScopedBackend(const ScopedBackend&) = delete;
  ScopedBackend& operator=(const ScopedBackend&) = delete;

 private:
  Backend* previous_;
};

}  // namespace lockstep::kernels
