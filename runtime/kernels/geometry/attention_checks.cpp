// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::checks {

namespace {

void shape(const Check& check, const char* name, const Heads& heads, const Shape& expected) {
  if (heads.is_dense()) {
    check.shape(name, heads.tensor(), expected);
    return;
  }
  check.defined(name, heads.tensor()).that(heads.shape() == expected, [&] {
    return std::string(name) + " must be " + expected.str() + ", found heads " + heads.shape().str();
  });
}

/// Requires the dtype and the shape of `model`. The two may lie in different ways.
void like(const Check& check, const char* name, const Heads& heads, const Heads& model) {
  check.dtype(name, heads.tensor(), model.dtype());
  shape(check, name, heads, model.shape());
}

AttentionExtents extents_of(const Check& check, const Heads& q, const Heads& k, const Heads& v,
                            const AttentionScores& scores) {
  check.floating("q", q.tensor()).dtype("k", k.tensor(), q.dtype()).dtype("v", v.tensor(), q.dtype());
  check.that(q.shape().rank() == 4 && k.shape().rank() == 4 && v.shape().rank() == 4, [&] {
    return "q " + q.shape().str() + ", k " + k.shape().str() + " and v " + v.shape().str() +
           " must be [batch, heads, T, channels]";
  });
  const AttentionExtents extents{.batch = q.size(0),
                                 .heads = q.size(1),
                                 .kv_heads = k.size(1),
                                 .queries = q.size(2),
                                 .keys = k.size(2),
                                 .channels = q.size(3),
                                 .value_channels = v.size(3)};
  check.that(extents.kv_heads == extents.heads || (extents.kv_heads > 0 && extents.heads % extents.kv_heads == 0),
             [&] { return "the heads of k " + k.shape().str() + " must divide those of q " + q.shape().str(); });
  shape(check, "k", k, {extents.batch, extents.kv_heads, extents.keys, extents.channels});
  shape(check, "v", v, {extents.batch, extents.kv_heads, extents.keys, extents.value_channels});
  if (!(scores.dropout.p >= 0 && scores.dropout.p <= 1)) {
    throw UsageError("attention: dropout's p must be in [0, 1], found " + std::to_string(scores.dropout.p));
  }
  const Tensor& mask = scores.mask;
  if (!mask.defined()) return extents;
  const Shape whole{extents.batch, extents.heads, extents.queries, extents.keys};
  bool broadcasts = mask.shape().rank() == 4 && mask.size(3) == extents.keys;
  for (int d = 0; broadcasts && d < 3; ++d) broadcasts = mask.size(d) == 1 || mask.size(d) == whole[d];
  check.defined("mask", mask);
  check.that(broadcasts, [&] {
    return "a mask " + mask.shape().str() + " does not broadcast to " + whole.str() +
           "; its last extent must be the number of keys";
  });
  if (mask.dtype() != DType::kBool) check.dtype("mask, unless it is bool,", mask, q.dtype());
  return extents;
}

void results(const Check& check, const AttentionExtents& extents, const Heads& q, const Heads& out,
             const Tensor& norms) {
  check.dtype("out", out.tensor(), q.dtype());
  shape(check, "out", out, {extents.batch, extents.heads, extents.queries, extents.value_channels});
  check.dtype("norms", norms, accumulation_dtype(q.dtype()))
      .shape("norms", norms, {extents.batch, extents.heads, extents.queries, 2});
}

}  // namespace

AttentionExtents attention(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores,
                           const Heads& out, const Tensor& norms) {
  const Check check("attention");
  const AttentionExtents extents = extents_of(check, q, k, v, scores);
  results(check, extents, q, out, norms);
  return extents;
}

AttentionExtents attention_backward(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores,
                                    const Heads& out, const Tensor& norms, const Heads& dout, const Heads& dq,
                                    const Heads& dk, const Heads& dv) {
  const Check check("attention_backward");
  const AttentionExtents extents = extents_of(check, q, k, v, scores);
  results(check, extents, q, out, norms);
  like(check, "dout", dout, out);
  if (dq.defined()) like(check, "dq", dq, q);
  if (dk.defined()) like(check, "dk", dk, k);
  if (dv.defined()) like(check, "dv", dv, v);
  return extents;
}

}  // namespace lockstep::kernels::checks
