// SPDX-License-Identifier: Apache-2.0
#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "runtime/kernels/cuda/alignment.h"
#include "runtime/kernels/cuda/attention_direct.h"
#include "runtime/kernels/cuda/attention_graph.h"
#include "runtime/kernels/cuda/attention_norms.h"
#include "runtime/kernels/cuda/attention_tiles.h"
#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

namespace {

std::vector<AttentionProblem> cudnn_problems(AttentionPass pass, const checks::AttentionExtents& extents,
                                             const Tensor& q, const AttentionScores& scores) {
  const AttentionLibrary library{state_of(q.device()).cudnn.compute_capability(), cudnnGetVersion()};
  return cudnn_attention(pass, extents, q.dtype(), scores, library);
}

/// The tensor itself, or one like it that engines can write in wide accesses.
Tensor target_for(const Tensor& out, const Tensor& like) {
  if (out.defined() && is_aligned(out)) return out;
  return Tensor::empty(like.shape(), like.dtype(), like.device());
}

void store_attention(const Tensor& target, const Tensor& out) {
  if (out.defined() && !target.aliases(out)) out.copy_from(target);
}

/// False where our own kernels are to compute it.
bool run_cudnn(const checks::AttentionExtents& extents, const Tensor& q, const Tensor& k, const Tensor& v,
               const AttentionScores& scores, const Tensor& out, const Tensor& norms) {
  const std::vector<AttentionProblem> parts = cudnn_problems(AttentionPass::kForward, extents, q, scores);
  if (parts.empty()) return false;
  const Tensor queries = aligned(q), keys = aligned(k), values = aligned(v), result = target_for(out, out);
  const Tensor stats = Tensor::empty({extents.batch, extents.heads, extents.queries}, DType::kFloat32, q.device());
  const AttentionData data{
      .q = queries.data(), .k = keys.data(), .v = values.data(), .out = result.data(), .stats = stats.data()};
  if (!state_of(q.device()).attentions.run(parts.front(), data)) return false;
  norms_of_stats(stats, norms);
  store_attention(result, out);
  return true;
}

/// The address of head number `head` of a dense tensor; heads are counted over all samples.
std::byte* head_of(const Tensor& tensor, std::int64_t head) {
  const std::int64_t elements = tensor.size(2) * tensor.size(3);
  return static_cast<std::byte*>(tensor.data()) + head * elements * static_cast<std::int64_t>(size_of(tensor.dtype()));
}

/// False where our own kernels are to compute it, all of it.
bool run_cudnn_backward(const checks::AttentionExtents& extents, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionScores& scores, const Tensor& out, const Tensor& norms, const Tensor& dout,
                        const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  const std::vector<AttentionProblem> parts = cudnn_problems(AttentionPass::kBackward, extents, q, scores);
  if (parts.empty()) return false;
  const Tensor queries = aligned(q), keys = aligned(k), values = aligned(v), result = aligned(out),
               slopes = aligned(dout);
  // cuDNN writes all three, wanted or not.
  const Tensor of_q = target_for(dq, q), of_k = target_for(dk, k), of_v = target_for(dv, v);
  std::int64_t head = 0, kv_head = 0;
  for (const AttentionProblem& part : parts) {
    const std::int64_t heads = part.batch * part.heads;
    const Tensor stats = Tensor::empty({heads, part.queries}, DType::kFloat32, q.device());
    stats_of_norms(norms, head * part.queries, stats);
    const AttentionData data{.q = head_of(queries, head),
                             .k = head_of(keys, kv_head),
                             .v = head_of(values, kv_head),
                             .out = head_of(result, head),
                             .stats = stats.data(),
                             .dout = head_of(slopes, head),
                             .dq = head_of(of_q, head),
                             .dk = head_of(of_k, kv_head),
                             .dv = head_of(of_v, kv_head)};
    if (!state_of(q.device()).attentions.run(part, data)) return false;
    head += heads;
    kv_head += part.batch * part.kv_heads;
  }
  store_attention(of_q, dq);
  store_attention(of_k, dk);
  store_attention(of_v, dv);
  return true;
}

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores, const Tensor& out,
               const Tensor& norms) {
  const checks::AttentionExtents extents = checks::attention(q, k, v, scores, out, norms);
  if (run_cudnn(extents, q, k, v, scores, out, norms)) return;
  if (attention_has_tiles(extents, q.dtype(), q.device())) {
    return attention_by_tiles(extents, q, k, v, scores, out, norms);
  }
  attention_direct(extents, q, k, v, scores, out, norms);
}

void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                        const Tensor& out, const Tensor& norms, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                        const Tensor& dv) {
  const checks::AttentionExtents extents = checks::attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);
  if (run_cudnn_backward(extents, q, k, v, scores, out, norms, dout, dq, dk, dv)) return;
  if (attention_has_tiles(extents, q.dtype(), q.device())) {
    return attention_backward_by_tiles(extents, q, k, v, scores, out, norms, dout, dq, dk, dv);
  }
  attention_backward_direct(extents, q, k, v, scores, out, norms, dout, dq, dk, dv);
}

}  // namespace

const Attention kAttention{.attention = attention, .attention_backward = attention_backward};

}  // namespace lockstep::kernels::cuda
