// SPDX-License-Identifier: Apache-2.0
// Linear layers, and what works on sequences.
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/onnx/emitter.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/unary.h"

namespace lockstep::onnx {

namespace {

constexpr std::int64_t kLastAxis = -1;

/// x, weight [out, in], bias
void linear(const Emitter& emitter) {
  std::string y;
  if (emitter.value(0).shape.rank() == 2) {
    std::vector<std::string> inputs{emitter.in(0), emitter.weight(1)};
    if (emitter.has(2)) inputs.push_back(emitter.weight(2));
    y = emitter.node("Gemm", inputs, {{"transB", std::int64_t{1}}});
  } else {
    y = emitter.node("MatMul", {emitter.in(0), emitter.weight(1, {1, 0})});
    if (emitter.has(2)) y = emitter.node("Add", {y, emitter.weight(2)});
  }
  const auto activation = emitter.options<ops::Activation>();
  if (activation != ops::Activation::kNone) y = activated(emitter, y, name_of(ops::op_of(activation)));
  emitter.out(y);
}

void matmul(const Emitter& emitter) {
  const auto& options = emitter.options<ops::MatmulOptions>();
  const auto operand = [&](int i, bool transposed) {
    std::string x = emitter.in(i);
    if (!transposed) return x;
    std::vector<std::int64_t> order{1, 0};
    if (emitter.value(i).shape.rank() == 3) order = {0, 2, 1};
    return emitter.node("Transpose", {x}, {{"perm", order}});
  };
  emitter.out(emitter.node("MatMul", {operand(0, options.transpose_a), operand(1, options.transpose_b)}));
}

void layer_norm(const Emitter& emitter) {
  const auto& options = emitter.options<ops::NormalizationOptions>();
  const Shape& shape = emitter.value(0).shape;
  std::vector<std::int64_t> own(shape.extents().end() - options.dims, shape.extents().end());
  const Shape normalized{std::span<const std::int64_t>(own)};
  std::vector<std::string> inputs{emitter.in(0)};
  inputs.push_back(
      emitter.has(1) ? emitter.weight(1)
                     : emitter.floats(std::vector<float>(static_cast<std::size_t>(normalized.numel()), 1), normalized));
  if (emitter.has(2)) inputs.push_back(emitter.weight(2));
  emitter.out(emitter.node("LayerNormalization", inputs,
                           {{"axis", std::int64_t{-options.dims}}, {"epsilon", static_cast<float>(options.epsilon)}}));
}

/// x / sqrt(mean(x^2) + epsilon) * weight
void rms_norm(const Emitter& emitter) {
  const auto& options = emitter.options<ops::NormalizationOptions>();
  std::vector<std::int64_t> axes;
  for (std::int64_t d = -options.dims; d < 0; ++d) axes.push_back(d);
  const std::string x = emitter.in(0);
  const std::string square = emitter.node("ReduceMean", {emitter.node("Mul", {x, x})}, {{"axes", axes}});
  const std::string root = emitter.node("Sqrt", {emitter.node("Add", {square, emitter.number(options.epsilon)})});
  std::string y = emitter.node("Div", {x, root});
  if (emitter.has(1)) y = emitter.node("Mul", {y, emitter.weight(1)});
  emitter.out(y);
}

/// x [N, T, C] -> [N, heads[i], T, channels] each
std::vector<std::string> heads_apart(const Emitter& emitter, const std::vector<std::int64_t>& heads,
                                     std::int64_t channels) {
  const std::int64_t all = std::accumulate(heads.begin(), heads.end(), std::int64_t{0});
  const std::string apart = emitter.reshaped(emitter.in(0), {0, 0, all, channels});
  const std::string y = emitter.node("Transpose", {apart}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  if (heads.size() == 1) return {y};
  return emitter.nodes("Split", {y, emitter.ints(heads)}, {{"axis", std::int64_t{1}}}, static_cast<int>(heads.size()));
}

/// [N, heads, T, channels] -> the result [N, T, heads * channels]
void heads_joined(const Emitter& emitter, const std::string& heads) {
  const std::string y = emitter.node("Transpose", {heads}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  emitter.out(emitter.reshaped(y, {0, 0, emitter.result().shape[2]}));
}

void split_heads(const Emitter& emitter) {
  std::vector<std::int64_t> heads;
  for (int i = 0; i < emitter.results(); ++i) heads.push_back(emitter.result(i).shape[1]);
  const std::vector<std::string> parts = heads_apart(emitter, heads, emitter.result().shape[3]);
  for (std::size_t i = 0; i < parts.size(); ++i) emitter.out(parts[i], Layout::kLast, static_cast<int>(i));
}

void join_heads(const Emitter& emitter) {
  std::vector<std::string> parts;
  for (int i = 0; i < emitter.inputs(); ++i) parts.push_back(emitter.in(i));
  heads_joined(emitter, parts.size() == 1 ? parts[0] : emitter.node("Concat", parts, {{"axis", std::int64_t{1}}}));
}

/// x, cos, sin
void rotary(const Emitter& emitter) {
  const std::int64_t half = emitter.value(0).shape.back() / 2;
  const std::string x = emitter.in(0);
  const auto halves = emitter.nodes("Split", {x, emitter.ints({half, half})}, {{"axis", kLastAxis}}, 2);
  const std::string exchanged = emitter.node("Concat", {halves[1], halves[0]}, {{"axis", kLastAxis}});
  emitter.options<ops::RotaryOptions>();
  emitter.out(emitter.node(
      "Add", {emitter.node("Mul", {x, emitter.weight(1)}), emitter.node("Mul", {exchanged, emitter.weight(2)})}));
}

/// bool [1, 1, Tq, Tk]
Tensor causal_mask(std::int64_t queries, std::int64_t keys) {
  const Tensor mask = Tensor::zeros({1, 1, queries, keys}, DType::kBool);
  auto* const seen = static_cast<std::uint8_t*>(mask.data());
  for (std::int64_t q = 0; q < queries; ++q) {
    for (std::int64_t k = 0; k <= q && k < keys; ++k) seen[q * keys + k] = 1;
  }
  return mask;
}

struct NamedHeads {
  std::string name;
  Shape shape;
};

/// q [N, heads, Tq, d], k and v [N, kv_heads, Tk, d], and the input number `mask_at`, a mask. Heads of q that share one
/// of k lie one behind the other, so that they are rows of one product.
std::string attention_of(const Emitter& emitter, const std::array<NamedHeads, 3>& heads, int mask_at) {
  const auto& options = emitter.options<ops::ScoreOptions>();
  const Shape &q = heads[0].shape, &k = heads[1].shape, &v = heads[2].shape;
  const bool shared = q[1] != k[1];
  std::string queries = emitter.node("Mul", {heads[0].name, emitter.number(options.scale)});
  if (shared) queries = emitter.reshaped(queries, {0, k[1], -1, q[3]});
  const std::string keys =
      emitter.node("Transpose", {heads[1].name}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}});
  std::string scores = emitter.node("MatMul", {queries, keys});
  if (shared) scores = emitter.reshaped(scores, {0, q[1], q[2], k[2]});
  // The least number in place of an infinite one: a query that sees no key gets no NaN.
  const auto only = [&](const std::string& seen) {
    return emitter.node("Where", {seen, scores, emitter.number(std::numeric_limits<float>::lowest())});
  };
  if (emitter.has(mask_at)) {
    const bool chooses = emitter.value(mask_at).dtype == DType::kBool;
    scores = chooses ? only(emitter.in(mask_at)) : emitter.node("Add", {scores, emitter.in(mask_at)});
  }
  if (options.causal) scores = only(emitter.shared(causal_mask(q[2], k[2]), "causal_mask"));
  std::string weights = emitter.node("Softmax", {scores}, {{"axis", kLastAxis}});
  if (shared) weights = emitter.reshaped(weights, {0, k[1], -1, k[2]});
  const std::string y = emitter.node("MatMul", {weights, heads[2].name});
  return shared ? emitter.reshaped(y, {0, q[1], q[2], v[3]}) : y;
}

void attention(const Emitter& emitter) {
  if (emitter.value(0).shape.rank() != 4) emitter.refuse("attention without [N, heads, T, d]");
  const auto heads = [&](int i) { return NamedHeads{emitter.in(i), emitter.value(i).shape}; };
  emitter.out(attention_of(emitter, {heads(0), heads(1), heads(2)}, 3));
}

/// x [N, T, (heads + 2 kv_heads) * channels], mask
void packed_attention(const Emitter& emitter) {
  const auto& options = emitter.options<ops::ScoreOptions>();
  const Shape& x = emitter.value(0).shape;
  const std::array<std::int64_t, 3> counts{options.heads, options.kv_heads, options.kv_heads};
  const std::int64_t channels = emitter.result().shape[2] / options.heads;
  const std::vector<std::string> names = heads_apart(emitter, {counts.begin(), counts.end()}, channels);
  std::array<NamedHeads, 3> heads;
  for (std::size_t i = 0; i < heads.size(); ++i) heads[i] = {names[i], Shape{x[0], counts[i], x[1], channels}};
  heads_joined(emitter, attention_of(emitter, heads, 1));
}

void softmax(const Emitter& emitter) {
  const std::int64_t axis = emitter.options<ops::SoftmaxOptions>().last ? kLastAxis : 1;
  emitter.out(emitter.node(emitter.name() == "softmax" ? "Softmax" : "LogSoftmax", {emitter.in(0)}, {{"axis", axis}}));
}

}  // namespace

bool emit_sequence(const Emitter& emitter) {
  const std::string& name = emitter.name();
  if (name == "linear") {
    linear(emitter);
  } else if (name == "matmul") {
    matmul(emitter);
  } else if (name == "layer_norm") {
    layer_norm(emitter);
  } else if (name == "rms_norm") {
    rms_norm(emitter);
  } else if (name == "embedding") {
    emitter.options<ops::EmbeddingOptions>();
    emitter.out(emitter.node("Gather", {emitter.weight(0), emitter.in(1)}, {{"axis", std::int64_t{0}}}));
  } else if (name == "split_heads") {
    split_heads(emitter);
  } else if (name == "join_heads") {
    join_heads(emitter);
  } else if (name == "rotary") {
    rotary(emitter);
  } else if (name == "scaled_dot_product_attention") {
    attention(emitter);
  } else if (name == "packed_attention") {
    packed_attention(emitter);
  } else if (name == "softmax" || name == "log_softmax") {
    softmax(emitter);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
