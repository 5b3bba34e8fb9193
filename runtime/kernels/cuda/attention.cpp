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

/// A pass of attention that cuDNN may compute.
struct Asked {
  AttentionPass pass;
  const checks::AttentionExtents& extents;
  const AttentionScores& scores;

  std::vector<AttentionProblem> parts(const Heads& q, const Heads& k, const Heads& v, const Heads& out) const {
    const AttentionLibrary library{state_of(q.device()).cudnn.compute_capability(), cudnnGetVersion()};
    return cudnn_attention(pass, extents, {q.steps(), k.steps(), v.steps(), out.steps()}, q.dtype(), scores, library);
  }
};

bool are_aligned(const Heads& heads) { return reinterpret_cast<std::uintptr_t>(heads.data()) % kAlignment == 0; }

/// The heads, or a dense copy that engines can read in wide accesses.
Heads aligned_heads(const Heads& heads) {
  if (are_aligned(heads)) return heads;
  const Tensor copy = Tensor::empty(heads.shape(), heads.dtype(), heads.device());
  kMovement.copy_strided(heads.tensor(), heads.walk(), heads.shape(), copy, dense_walk(copy.shape()));
  return copy;
}

/// The heads themselves, or others that lie as `like`, which engines can write in wide accesses.
Heads target_for(const Heads& out, const Heads& like) {
  if (out.defined() && are_aligned(out) && out.steps() == like.steps()) return out;
  return like.of(Tensor::empty(like.tensor().shape(), like.dtype(), like.device()));
}

/// Copies heads, unless they are there already or nobody wants them.
void bring(const Heads& from, const Heads& to) {
  if (!to.defined() || from.data() == to.data()) return;
  kMovement.copy_strided(from.tensor(), from.walk(), from.shape(), to.tensor(), to.walk());
}

/// False where our own kernels are to compute it.
bool run_cudnn(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
               const AttentionScores& scores, const Heads& out, const Tensor& norms) {
  const Asked asked{AttentionPass::kForward, extents, scores};
  if (asked.parts(q, k, v, out).empty()) return false;
  const Heads queries = aligned_heads(q), keys = aligned_heads(k), values = aligned_heads(v),
              result = target_for(out, out);
  const Tensor stats = Tensor::empty({extents.batch, extents.heads, extents.queries}, DType::kFloat32, q.device());
  const AttentionData data{
      .q = queries.data(), .k = keys.data(), .v = values.data(), .out = result.data(), .stats = stats.data()};
  if (!state_of(q.device()).attentions.run(asked.parts(queries, keys, values, result).front(), data)) return false;
  norms_of_stats(stats, norms);
  bring(result, out);
  return true;
}

/// False where our own kernels are to compute it, all of it.
bool run_cudnn_backward(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                        const AttentionScores& scores, const Heads& out, const Tensor& norms, const Heads& dout,
                        const Heads& dq, const Heads& dk, const Heads& dv) {
  const Asked asked{AttentionPass::kBackward, extents, scores};
  if (asked.parts(q, k, v, out).empty()) return false;
  const Heads queries = aligned_heads(q), keys = aligned_heads(k), values = aligned_heads(v),
              result = aligned_heads(out);
  const Heads slopes = target_for(dout, result);
  bring(dout, slopes);
  // cuDNN writes all three, wanted or not.
  const Heads of_q = target_for(dq, queries), of_k = target_for(dk, keys), of_v = target_for(dv, values);
  std::int64_t head = 0, kv_head = 0;
  for (const AttentionProblem& part : asked.parts(queries, keys, values, result)) {
    const std::int64_t heads = part.batch * part.heads;
    const Tensor stats = Tensor::empty({heads, part.queries}, DType::kFloat32, q.device());
    stats_of_norms(norms, head * part.queries, stats);
    const AttentionData data{.q = queries.data(head),
                             .k = keys.data(kv_head),
                             .v = values.data(kv_head),
                             .out = result.data(head),
                             .stats = stats.data(),
                             .dout = slopes.data(head),
                             .dq = of_q.data(head),
                             .dk = of_k.data(kv_head),
                             .dv = of_v.data(kv_head)};
    if (!state_of(q.device()).attentions.run(part, data)) return false;
    head += heads;
    kv_head += part.batch * part.kv_heads;
  }
  bring(of_q, dq);
  bring(of_k, dk);
  bring(of_v, dv);
  return true;
}

void attention(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
               const Tensor& norms) {
  const checks::AttentionExtents extents = checks::attention(q, k, v, scores, out, norms);
  if (run_cudnn(extents, q, k, v, scores, out, norms)) return;
  if (attention_has_tiles(extents, q.dtype(), q.device())) {
    return attention_by_tiles(extents, q, k, v, scores, out, norms);
  }
  attention_direct(extents, q, k, v, scores, out, norms);
}

void attention_backward(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
                        const Tensor& norms, const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
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
