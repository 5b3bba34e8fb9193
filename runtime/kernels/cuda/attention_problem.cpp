// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace lockstep::kernels::cuda {

namespace {

/// Rows and columns of scores that an engine's block takes.
constexpr std::int64_t kTile = 64;
/// The most bytes of scores' gradients that a call of the backward pass stores, unless one head of k and all heads of q
/// that read it need more.
constexpr std::int64_t kScoresAtOnce = std::int64_t{256} << 20;
/// The most bytes that a call may store for one head of k.
constexpr std::int64_t kMostStored = std::int64_t{1} << 30;
/// The last version of cuDNN with which the frontend copies from the host where keys do not fill tiles of 128. A CUDA
/// graph would repeat that copy from memory that is gone.
constexpr std::size_t kLastVersionThatCopies = 91500;

HeadSteps dense_steps(std::int64_t heads, std::int64_t rows, std::int64_t channels) {
  return {heads * rows * channels, rows * channels, channels};
}

/// Whether engines can read and write rows in wide accesses, and count their elements.
bool is_reached(const HeadSteps& steps, std::int64_t batch) {
  constexpr std::int64_t kElements = std::numeric_limits<std::int32_t>::max();
  return steps.sample % 8 == 0 && steps.head % 8 == 0 && steps.row % 8 == 0 &&
         (steps.sample == 0 || batch <= kElements / steps.sample);
}

bool is_computed(AttentionPass pass, const checks::AttentionExtents& e, const AttentionSteps& steps, DType dtype,
                 const AttentionScores& scores, const AttentionLibrary& library) {
  const float scale = static_cast<float>(scores.scale);
  if (!is_reduced(dtype) || library.compute_capability < 80) return false;
  if (scores.mask.defined() || scores.dropout.p > 0) return false;
  // An engine may look for a row's largest product before it scales it.
  if (!std::isfinite(scale) || scale <= 0) return false;
  if (scores.causal && e.queries != e.keys) return false;
  if (e.value_channels != e.channels || e.channels % 8 != 0 || e.channels > 128 || e.channels == 0) return false;
  if (e.queries < kTile || e.keys < kTile) return false;
  // Engines may put heads into a grid's second extent.
  constexpr std::int64_t kHeads = 65535;
  const std::int64_t heads = e.batch * e.heads;
  if (heads == 0 || heads > kHeads) return false;
  for (const HeadSteps& of : {steps.q, steps.k, steps.v, steps.out}) {
    if (!is_reached(of, e.batch)) return false;
  }
  return pass == AttentionPass::kForward || e.keys % 128 == 0 || library.cudnn_version > kLastVersionThatCopies;
}

std::int64_t in_tiles(std::int64_t extent) { return (extent + 127) / 128 * 128; }

/// The bytes of 16-bit scores, in whole tiles, for the heads of q that read one head of k.
std::int64_t scores_bytes(const AttentionProblem& p) {
  return 2 * p.sharing() * in_tiles(p.keys) * in_tiles(p.queries);
}

/// The bytes of the gradients by k and v where several heads of q read one head of k, so that each has its own.
std::int64_t shared_gradient_bytes(const AttentionProblem& p) {
  return p.sharing() > 1 ? 2 * p.sharing() * in_tiles(p.keys) * 2 * p.channels : 0;
}

/// With the steps that AttentionProblem has of one sample, so that equal computations are equal problems.
AttentionProblem canonical(AttentionProblem p) {
  if (p.batch != 1) return p;
  for (HeadSteps* const of_heads : {&p.steps.q, &p.steps.out}) of_heads->sample = p.heads * of_heads->head;
  for (HeadSteps* const of_keys : {&p.steps.k, &p.steps.v}) of_keys->sample = p.kv_heads * of_keys->head;
  return p;
}

std::string text_of(const HeadSteps& steps) {
  return std::to_string(steps.sample) + "/" + std::to_string(steps.head) + "/" + std::to_string(steps.row);
}

/// Where the tensors lie; nothing of dense ones.
std::string text_of(const AttentionProblem& p) {
  const AttentionSteps dense = AttentionSteps::dense({.batch = p.batch,
                                                      .heads = p.heads,
                                                      .kv_heads = p.kv_heads,
                                                      .queries = p.queries,
                                                      .keys = p.keys,
                                                      .channels = p.channels,
                                                      .value_channels = p.channels});
  if (p.steps == dense) return "";
  return " steps " + text_of(p.steps.q) + " " + text_of(p.steps.k) + " " + text_of(p.steps.v) + " " +
         text_of(p.steps.out);
}

/// `total` in as few shares as `most` allows, which are as equal as can be: each size needs a plan of its own.
struct Shares {
  Shares(std::int64_t all, std::int64_t most) : total(all), count((all + most - 1) / most) {}
  std::int64_t operator[](std::int64_t i) const { return total / count + (i < total % count ? 1 : 0); }

  std::int64_t total;
  std::int64_t count;
};

}  // namespace

AttentionSteps AttentionSteps::dense(const checks::AttentionExtents& e) {
  return {.q = dense_steps(e.heads, e.queries, e.channels),
          .k = dense_steps(e.kv_heads, e.keys, e.channels),
          .v = dense_steps(e.kv_heads, e.keys, e.value_channels),
          .out = dense_steps(e.heads, e.queries, e.value_channels)};
}

std::vector<AttentionProblem> cudnn_attention(AttentionPass pass, const checks::AttentionExtents& extents,
                                              const AttentionSteps& steps, DType dtype, const AttentionScores& scores,
                                              const AttentionLibrary& library) {
  if (!is_computed(pass, extents, steps, dtype, scores, library)) return {};
  const AttentionProblem whole{.pass = pass,
                               .batch = extents.batch,
                               .heads = extents.heads,
                               .kv_heads = extents.kv_heads,
                               .queries = extents.queries,
                               .keys = extents.keys,
                               .channels = extents.channels,
                               .dtype = dtype,
                               .causal = scores.causal,
                               .scale = static_cast<float>(scores.scale),
                               .steps = steps};
  if (pass == AttentionPass::kForward) return {canonical(whole)};

  const std::int64_t of_head = scores_bytes(whole);
  if (of_head + shared_gradient_bytes(whole) > kMostStored) return {};
  const std::int64_t heads_at_once = std::max<std::int64_t>(kScoresAtOnce / of_head, 1);
  std::vector<AttentionProblem> parts;
  AttentionProblem part = whole;
  if (heads_at_once >= whole.kv_heads) {
    const Shares samples(whole.batch, heads_at_once / whole.kv_heads);
    for (std::int64_t i = 0; i < samples.count; ++i) {
      part.batch = samples[i];
      parts.push_back(canonical(part));
    }
    return parts;
  }
  const Shares heads(whole.kv_heads, heads_at_once);
  part.batch = 1;
  for (std::int64_t i = 0; i < whole.batch * heads.count; ++i) {
    part.kv_heads = heads[i % heads.count];
    part.heads = part.kv_heads * whole.sharing();
    parts.push_back(canonical(part));
  }
  return parts;
}

std::string key_of(const AttentionProblem& p) {
  char scale[32];
  std::snprintf(scale, sizeof scale, "%a", static_cast<double>(p.scale));
  return std::string("attention ") + (p.pass == AttentionPass::kForward ? "forward" : "backward") + " n" +
         std::to_string(p.batch) + " heads " + std::to_string(p.heads) + " of " + std::to_string(p.kv_heads) + " t" +
         std::to_string(p.queries) + "x" + std::to_string(p.keys) + " c" + std::to_string(p.channels) + " " +
         std::string(name_of(p.dtype)) + (p.causal ? " causal" : "") + " scale " + scale + text_of(p);
}

}  // namespace lockstep::kernels::cuda
