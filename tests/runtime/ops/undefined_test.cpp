// SPDX-License-Identifier: Apache-2.0
// Every operation names itself, and the argument where it has several, when it is given an undefined tensor.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ops/ops.h"

namespace lockstep::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Call {
  std::string message;
  std::function<void()> run;
};

void expect_named(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    EXPECT_THAT(call.run, ThrowsMessage<UsageError>(AllOf(HasSubstr(call.message), HasSubstr("undefined tensor"))))
        << call.message;
  }
}

const Tensor none;
Tensor x() { return Tensor::zeros({2, 4}, DType::kFloat32); }
Tensor places() { return Tensor::zeros({2}, DType::kInt64); }

TEST(UndefinedArgument, OfOneTensorIsNamed) {
  expect_named({
      {"sum", [] { sum(none); }},
      {"sum", [] { sum(none, 0); }},
      {"mean", [] { mean(none); }},
      {"mean", [] { mean(none, 0); }},
      {"var", [] { var(none, 0); }},
      {"std", [] { std(none, 0); }},
      {"max", [] { max(none); }},
      {"min", [] { min(none, 0); }},
      {"amax", [] { amax(none, 0); }},
      {"argmax", [] { argmax(none); }},
      {"argmin", [] { argmin(none, 0); }},
      {"neg", [] { neg(none); }},
      {"exp", [] { exp(none); }},
      {"relu", [] { relu(none); }},
      {"gelu", [] { gelu(none); }},
      {"clamp", [] { clamp(none, 0, 1); }},
      {"scale", [] { scale(none, 2); }},
      {"add", [] { add(none, 2); }},
      {"sub", [] { sub(2, none); }},
      {"div", [] { div(none, 2); }},
      {"pow", [] { pow(none, 2); }},
      {"softmax", [] { softmax(none); }},
      {"softmax", [] { softmax(none, 0); }},
      {"log_softmax", [] { log_softmax(none); }},
      {"logsumexp", [] { logsumexp(none, 0); }},
      {"cumsum", [] { cumsum(none, 0); }},
      {"cumprod", [] { cumprod(none, 0); }},
      {"prod", [] { prod(none); }},
      {"prod", [] { prod(none, 0); }},
      {"vector_norm", [] { vector_norm(none); }},
      {"matrix_norm", [] { matrix_norm(none); }},
      {"reshape", [] { reshape(none, {1}); }},
      {"flatten", [] { flatten(none); }},
      {"unsqueeze", [] { unsqueeze(none, 0); }},
      {"squeeze", [] { squeeze(none); }},
      {"squeeze", [] { squeeze(none, 0); }},
      {"cast", [] { cast(none, DType::kFloat16); }},
      {"permute", [] { permute(none, {0}); }},
      {"transpose", [] { transpose(none, 0, 1); }},
      {"flip", [] { flip(none, 0); }},
      {"repeat", [] { repeat(none, {2}); }},
      {"slice", [] { slice(none, 0, 0, 1); }},
      {"select", [] { select(none, 0, 0); }},
      {"split", [] { split(none, 1); }},
      {"chunk", [] { chunk(none, 2); }},
      {"expand", [] { expand(none, {2}); }},
      {"dropout", [] { dropout(none, 0.5, {}, 0); }},
      {"max_pool", [] { pool(none, {.kind = kernels::PoolKind::kMax}); }},
      {"global_average_pool", [] { global_average_pool(none); }},
      {"upsample",
       [] {
         upsample(none, {2, 2});
       }},
      {"split_heads", [] { split_heads(none, {1}, 1); }},
      {"layer_norm", [] { layer_norm(none, {4}, {}, {}); }},
      {"rms_norm", [] { rms_norm(none, {4}, {}); }},
      {"group_norm", [] { group_norm(none, 2, {}, {}); }},
      {"instance_norm", [] { instance_norm(none, {}, {}); }},
      {"one_hot", [] { one_hot(none, 3); }},
      {"full_like", [] { ones_like(none); }},
      {"zeros_like", [] { zeros_like(none); }},
  });
}

TEST(UndefinedArgument, OfSeveralIsNamed) {
  const RotaryTable table = rotary_table(2, 4, 10000.0);
  expect_named({
      {"add: the first operand", [] { add(none, x()); }},
      {"add: the second operand", [] { add(x(), none); }},
      {"mul: the second operand", [] { mul(x(), none); }},
      {"maximum: the second operand", [] { maximum(x(), none); }},
      {"compare: the second operand", [] { eq(x(), none); }},
      {"where: the condition", [] { where(none, x(), x()); }},
      {"where: the first operand", [] { where(gt(x(), 0), none, x()); }},
      {"where: the other operand", [] { where(gt(x(), 0), none, 1.0); }},
      {"prelu: the second operand", [] { prelu(x(), none); }},
      {"lerp", [] { lerp(x(), x(), none); }},
      {"matmul: the first operand", [] { matmul(none, x()); }},
      {"matmul: the second operand", [] { matmul(x(), none); }},
      {"mm: the second operand", [] { mm(x(), none); }},
      {"einsum: the second operand", [] { einsum("ij,jk->ik", x(), none); }},
      {"addmm: the input", [] { addmm(none, x(), transpose(x(), 0, 1)); }},
      {"linear: the input", [] { linear(none, x(), {}); }},
      {"linear: the weight", [] { linear(x(), none, {}); }},
      {"conv: the input", [] { conv(none, x(), {}, {}); }},
      {"conv: the weight", [] { conv(x(), none, {}, {}); }},
      {"conv_transpose: the weight", [] { conv_transpose(x(), none, {}, {}); }},
      {"scaled_dot_product_attention: k", [] { scaled_dot_product_attention(x(), none, x()); }},
      {"packed_attention", [] { packed_attention(none, 1, 1); }},
      {"embedding: the weight", [] { embedding(none, places()); }},
      {"embedding: indices", [] { embedding(x(), none); }},
      {"gather: indices", [] { gather(x(), 0, none); }},
      {"gather: the input", [] { gather(none, 0, places()); }},
      {"index_select: indices", [] { index_select(x(), 0, none); }},
      {"scatter_add: indices", [] { scatter_add(x(), 0, none, 3); }},
      {"cat: tensor 1",
       [] {
         cat({x(), none});
       }},
      {"batch_norm: gamma", [] { batch_norm(x(), none, none, {}, {}, {}, {}); }},
      {"batch_norm_inference: running", [] { batch_norm_inference(x(), none, none, {}, none, {}); }},
      {"rotary: the input", [&] { rotary(none, table); }},
      {"rotary: the table's cos", [] { rotary(x(), {}); }},
      {"join_heads", [] { join_heads({none}); }},
      {"rnn_cell: the state", [] { rnn_cell(x(), none, {}); }},
      {"gru_cell: weight_ih", [] { gru_cell(x(), x(), {}); }},
      {"lstm_cell: the state c", [] { lstm_cell(x(), {}, {}); }},
  });
}

TEST(UndefinedArgument, OfALossIsNamed) {
  expect_named({
      {"cross_entropy: the input", [] { cross_entropy(none, places()); }},
      {"cross_entropy: the targets", [] { cross_entropy(x(), {}); }},
      {"nll: the targets", [] { nll(x(), none); }},
      {"multi_margin: the targets", [] { multi_margin(x(), none); }},
      {"mse: the target", [] { mse(x(), none); }},
      {"l1: the target", [] { l1(x(), none); }},
      {"l1: the target", [] { l1(x(), none, {.reduction = Reduction::kNone}); }},
      {"huber: the input", [] { huber(none, x()); }},
      {"kl_div: the target", [] { kl_div(x(), none); }},
      {"binary_cross_entropy_with_logits: the target", [] { binary_cross_entropy_with_logits(x(), none); }},
      {"hinge_embedding: the target", [] { hinge_embedding(x(), none); }},
      {"cosine_embedding: b", [] { cosine_embedding(x(), none, places()); }},
      {"triplet_margin: the negative", [] { triplet_margin(x(), x(), none); }},
      {"dice: the target", [] { dice(x(), none); }},
  });
}

TEST(UndefinedArgument, MayBeLeftOutWhereThatIsSaid) {
  EXPECT_EQ(linear(x(), x(), {}).shape(), Shape({2, 2}));
  EXPECT_EQ(layer_norm(x(), {4}, {}, {}).shape(), Shape({2, 4}));
  EXPECT_EQ(addmm({}, x(), transpose(x(), 0, 1), {.beta = 0}).shape(), Shape({2, 2}));
  EXPECT_EQ(clamp(x(), {}, {}).shape(), Shape({2, 4}));
}

}  // namespace
}  // namespace lockstep::ops
