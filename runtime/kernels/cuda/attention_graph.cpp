// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_graph.h"

#include <cudnn_frontend.h>

#include <memory>
#include <utility>

namespace lockstep::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

enum TensorId : std::int64_t { kQ = 1, kK, kV, kOut, kStats, kDout, kDq, kDk, kDv };

/// Describes a tensor to cuDNN: its number, its name, and its shape [batch, heads, rows, columns], which is dense.
fe::graph::Tensor_attributes& tell(fe::graph::Tensor_attributes& tensor, TensorId id, std::int64_t batch,
                                   std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  return tensor.set_uid(id)
      .set_name("tensor" + std::to_string(id))
      .set_dim({batch, heads, rows, columns})
      .set_stride({heads * rows * columns, rows * columns, columns, 1});
}

class Description {
 public:
  Description(fe::graph::Graph& graph, const AttentionProblem& problem) : graph_(graph), p_(problem) {}

  void forward() {
    auto [out, stats] = graph_.sdpa(of_queries(kQ), of_keys(kK), of_keys(kV),
                                    attributes<fe::graph::SDPA_attributes>().set_generate_stats(true));
    tell(out->set_output(true), kOut, p_.batch, p_.heads, p_.queries, p_.channels);
    tell(stats->set_output(true), kStats, p_.batch, p_.heads, p_.queries, 1).set_data_type(fe::DataType_t::FLOAT);
  }

  void backward() {
    fe::graph::Tensor_attributes stats;
    tell(stats, kStats, p_.batch, p_.heads, p_.queries, 1).set_data_type(fe::DataType_t::FLOAT);
    auto [dq, dk, dv] = graph_.sdpa_backward(
        of_queries(kQ), of_keys(kK), of_keys(kV), of_queries(kOut), of_queries(kDout), graph_.tensor(stats),
        attributes<fe::graph::SDPA_backward_attributes>().set_deterministic_algorithm(true));
    tell(dq->set_output(true), kDq, p_.batch, p_.heads, p_.queries, p_.channels);
    tell(dk->set_output(true), kDk, p_.batch, p_.kv_heads, p_.keys, p_.channels);
    tell(dv->set_output(true), kDv, p_.batch, p_.kv_heads, p_.keys, p_.channels);
  }

 private:
  Attributes of_queries(TensorId id) {
    fe::graph::Tensor_attributes tensor;
    return graph_.tensor(tell(tensor, id, p_.batch, p_.heads, p_.queries, p_.channels));
  }
  Attributes of_keys(TensorId id) {
    fe::graph::Tensor_attributes tensor;
    return graph_.tensor(tell(tensor, id, p_.batch, p_.kv_heads, p_.keys, p_.channels));
  }

  template <class Pass>
  Pass attributes() const {
    Pass pass;
    pass.set_name("attention").set_attn_scale(p_.scale);
    if (p_.causal) pass.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    return pass;
  }

  fe::graph::Graph& graph_;
  const AttentionProblem& p_;
};

}  // namespace

CudnnProblem graph_of(const AttentionProblem& problem) {
  // cudnn_attention() sees to it that no part needs as much.
  constexpr std::int64_t kLimit = std::int64_t{2} << 30;
  return {.key = key_of(problem),
          .dtype = problem.dtype,
          .workspace_limit = kLimit,
          .describe = [problem](fe::graph::Graph& graph) {
            Description description(graph, problem);
            if (problem.pass == AttentionPass::kForward) return description.forward();
            description.backward();
          }};
}

CudnnAddresses addresses_of(const AttentionData& data) {
  CudnnAddresses addresses;
  const auto add = [&](TensorId id, const void* address) {
    if (address != nullptr) addresses.emplace(id, const_cast<void*>(address));
  };
  add(kQ, data.q);
  add(kK, data.k);
  add(kV, data.v);
  add(kOut, data.out);
  add(kStats, data.stats);
  add(kDout, data.dout);
  add(kDq, data.dq);
  add(kDk, data.dk);
  add(kDv, data.dv);
  return addresses;
}

}  // namespace lockstep::kernels::cuda
