// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/kernels/binary.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

class Heads;
enum class PairSide : std::uint8_t;
struct ArenaSegment;
struct ArenaSlice;
struct AttentionScores;
struct BatchNormGradient;
struct BatchNormMask;
struct BatchNormParameterGradients;
struct ConvGeometry;
struct CrossEntropyTargets;
struct CtcTargets;
struct Epilogue;
struct PoolGeometry;
struct UpsampleGeometry;

}  // namespace lockstep::kernels

/// Checks of the operands that Backend refuses: one function for each operation whose tensors must fit together, called
/// by every backend before it computes. All throw ShapeError.
namespace lockstep::kernels::checks {

/// Requires equal shapes; the dtypes may be any.
void cast(const Tensor& in, const Tensor& out);
void same_shape_floating(std::string_view operation, const Tensor& in, const Tensor& out);
void same(std::string_view operation, const Tensor& in, const Tensor& out);
/// Whether b is the 16-bit addend that Elementwise::binary reads as it lies.
bool is_narrow_addend(Binary function, const Tensor& a, const Tensor& b);
/// Operands that broadcast to the shape of out, and dtypes as Elementwise says.
void binary(Binary function, const Tensor& a, const Tensor& b, const Tensor& out);
void binary_with_number(Binary function, const Tensor& x, const Tensor& out);
void ternary(const TernaryFunction& function, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out);
void expand(const Tensor& in, const Tensor& out);
void unary_backward(const Tensor& at, const Tensor& dy, const Tensor& dx);
/// Also throws UsageError unless 0 <= p <= 1.
void dropout(const Tensor& x, double p, const Tensor& y);
/// Also throws UsageError for a negative first_element.
void random(std::int64_t first_element, const Tensor& out);

void sum(const Tensor& x, const Tensor& out);
void sum_rows(const Tensor& x, const Tensor& out);

/// out[batch, m, n] = op(a)[batch, m, k] op(b)[batch, k, n]
struct MatmulExtents {
  std::int64_t batch, m, n, k;
};
MatmulExtents matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
                     bool accumulate, const Tensor& out);

void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& y);
void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                   const Tensor& dx, const Tensor& dweight, const Tensor& dbias);

void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices);
void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx);
/// x [N, spatial..., C] and its mean over the spatial dimensions [N, C].
void global_average_pool(const Tensor& x, const Tensor& y);

/// kernels::Attention's shapes.
struct AttentionExtents {
  std::int64_t batch, heads, kv_heads, queries, keys, channels, value_channels;
};
AttentionExtents attention(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores,
                           const Heads& out, const Tensor& norms);
/// Undefined gradients are not looked at.
AttentionExtents attention_backward(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores,
                                    const Heads& out, const Tensor& norms, const Heads& dout, const Heads& dq,
                                    const Heads& dk, const Heads& dv);

void softmax(const Tensor& x, const Tensor& y);
void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx);
void cross_entropy(const Tensor& logits, const CrossEntropyTargets& targets, const Tensor& loss,
                   const Tensor& log_sum_exp);
/// The error for targets[row] = value outside [0, classes).
[[noreturn]] void target_out_of_range(std::int64_t row, std::int64_t value, std::int64_t classes);
void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha);
void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs);
/// Throws UsageError, which names the sample, for a length, a label or a blank that does not fit. All lie on the CPU.
void ctc_in_range(const Tensor& log_probs, const CtcTargets& targets);
void pair_loss(const Tensor& x, const Tensor& target, const Tensor& loss);
void pair_loss_backward(const Tensor& x, const Tensor& target, PairSide side, const Tensor& dloss,
                        const Tensor& gradient);

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2);
void batch_norm_finalize(const Tensor& packed, const Tensor& running, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& count, const Tensor& next_running);
void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                      const Tensor& beta, const Tensor& residual, const Tensor& y);
void batch_norm_measure(const Tensor& x, const Tensor& running, const Tensor& mean, const Tensor& inv_std,
                        const Tensor& count, const Tensor& next_running);
void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const BatchNormGradient& gradient,
                                const BatchNormMask& mask, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                const BatchNormParameterGradients& gradients);
void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const BatchNormMask& mask, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx);

// Normalization, Embedding, Upsampling.
void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Tensor& mean,
                const Tensor& inv_std);
void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias);
void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Tensor& mean,
                const Tensor& inv_std);
void group_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias);
void embedding(const Tensor& weight, const Tensor& indices, const Tensor& y);
void embedding_backward(const Tensor& dy, const Tensor& indices, const Tensor& dweight);
/// The error for indices[place] = value outside [0, rows).
[[noreturn]] void index_out_of_range(std::int64_t place, std::int64_t value, std::int64_t rows);
/// y, or dy, and x, or dx.
void upsample(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y);

/// Segments must be ascending and lie in [base, base + numel).
void segments(std::string_view operation, std::int64_t base, std::int64_t numel,
              std::span<const ArenaSegment> segments);
void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                  const Tensor& sum_of_squares);
void rescale(const Tensor& in, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& out,
             const Tensor& flags);
/// The tensors and segments of an optimizer's step.
void arena_slice(std::string_view operation, const ArenaSlice& slice);
void mean_step(const Tensor& weights, const Tensor& mean);
/// A state tensor of an optimizer: float32, as long as the master weights.
void optimizer_state(std::string_view operation, std::string_view name, const ArenaSlice& slice, const Tensor& state);
/// The steps whose state is not the same in every case: rates is [parameters, 2], states are `count`,
/// norms is [parameters].
void layer_rates(const ArenaSlice& slice, const Tensor& rates);
void element_step(const ArenaSlice& slice, int count, const std::vector<Tensor>& states);
void novograd_step(const ArenaSlice& slice, const Tensor& m, const Tensor& norms);
/// float32 [P], [P] where defined, and [2 P].
void cast_ballot(const Tensor& reduced, const Tensor& local, const Tensor& ballot);
void count_ballot(const Tensor& ballot);
void judge_alone(const Tensor& reduced, const Tensor& local);
void clip_factor(const Tensor& squares);
/// float32, at least one; float32 [P]; int64 [P].
void advance_schedule(const Tensor& rates, const Tensor& has_gradient, const Tensor& steps);

}  // namespace lockstep::kernels::checks
