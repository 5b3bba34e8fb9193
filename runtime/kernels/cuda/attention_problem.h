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

/// One pass of attention without mask and dropout, as a value: what plans are found by. q is [batch, heads, queries,
/// channels], k and v are [batch, kv_heads, keys, channels], all dense.
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
  void* out = nullptr;    ///< which the backward pass reads
  void* stats = nullptr;  ///< the same; log sum_j e^(s_j) of a query's scores s, float32 [batch, heads, queries]
  const void* dout = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
};

/// What else decides whether cuDNN computes attention.
struct AttentionLibrary {
  int compute_capability;     ///< 90 is 9.0
  std::size_t cudnn_version;  ///< 91900 is 9.19.0
};

/// What cuDNN is given, part for part; nothing where our own kernels compute the pass. Shapes, dtype, options and
/// library alone decide, so it is the same in every rank and every run. cuDNN gets what its fused engines compute as
/// kernels::Attention says:
///
/// - float16 and bfloat16, from compute capability 8.0 on.
/// - No mask, of which only the device knows whether it leaves a query without a key, and no dropout, whose numbers are
///   our own. With `causal` as many queries as keys.
/// - As many channels in v as in k, a multiple of 8, at most 128.
/// - From 64 queries and keys on: a tile of its engines. Less is one or two blocks a head of ours.
///
/// The forward pass is one part. The deterministic backward pass stores the gradients of the scores, so it comes in
/// parts of so many samples, or heads of k of one sample, as need 256 MiB for them; where one head of k needs more than
/// 1 GiB it is ours. Parts follow one another in memory: the tensors' heads, counted over all samples, in order.
std::vector<AttentionProblem> cudnn_attention(AttentionPass pass, const checks::AttentionExtents& extents, DType dtype,
                                              const AttentionScores& scores, const AttentionLibrary& library);

}  // namespace lockstep::kernels::cuda
