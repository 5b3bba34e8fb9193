// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/attention.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

enum class AttentionPass : std::uint8_t { kForward, kBackward };

/// Where the tensors of an attention lie. Gradients lie as what they are gradients of.
struct AttentionSteps {
  HeadSteps q, k, v, out;

  /// The steps of dense tensors with these extents.
  static AttentionSteps dense(const checks::AttentionExtents& extents);
  friend auto operator<=>(const AttentionSteps&, const AttentionSteps&) = default;
};

/// One pass of attention without mask and dropout, as a value: what plans are found by. q is [batch, heads, queries,
/// channels], k and v are [batch, kv_heads, keys, channels].
struct AttentionProblem {
  AttentionPass pass;
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t channels;
  DType dtype;
  bool causal;
  float scale;
  AttentionSteps steps;  ///< where there is one sample, `sample` is `head` times the number of heads

  std::int64_t sharing() const { return heads / kv_heads; }  ///< heads of q that read one of k

  friend auto operator<=>(const AttentionProblem&, const AttentionProblem&) = default;
};

/// The problem in one line: equal problems have equal keys, and no others.
std::string key_of(const AttentionProblem& problem);

/// Addresses, 16-byte aligned; those of the gradients are for the backward pass alone.
struct AttentionData {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;    ///< read by the backward pass
  void* stats = nullptr;  ///< log sum_j e^(s_j) of a query's scores s, float32 [batch, heads, queries]; read likewise
  const void* dout = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
};

/// The GPU and the library, which decide with the problem whether cuDNN computes attention.
struct AttentionLibrary {
  int compute_capability;     ///< 90 is 9.0
  std::size_t cudnn_version;  ///< 91900 is 9.19.0
};

/// The parts of the pass that cuDNN computes, in order; none where our own kernels compute the pass. Shapes, dtype,
/// options and library alone decide, so it is the same in every rank and every run. cuDNN gets the problems that its
/// fused engines compute as kernels::Attention says:
///
/// - float16 and bfloat16, from compute capability 8.0 on.
/// - No mask, since only the device knows whether one leaves a query without a key. No dropout, whose numbers are our
///   own. With `causal` as many queries as keys.
/// - As many channels in v as in k, a multiple of 8, at most 128.
/// - Rows and heads that begin at a multiple of 16 bytes, in fewer elements of memory than 2^31.
/// - At least 64 queries and 64 keys, a tile of its engines. For fewer our kernels need one or two blocks a head.
///
/// The forward pass is one part. The deterministic backward pass stores the gradients of the scores, so it comes in
/// parts of so many samples, or heads of k of one sample, as need 256 MiB for them. Where one head of k needs more than
/// 1 GiB our kernels compute it. Parts follow one another: the tensors' heads, counted over all samples.
std::vector<AttentionProblem> cudnn_attention(AttentionPass pass, const checks::AttentionExtents& extents,
                                              const AttentionSteps& steps, DType dtype, const AttentionScores& scores,
                                              const AttentionLibrary& library);

}  // namespace lockstep::kernels::cuda
