// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_graph.h"

#include <cudnn_frontend.h>

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

enum TensorId : std::int64_t { kQ = 1, kK, kV, kOut, kStats, kDout, kDq, kDk, kDv };

/// Describes a tensor to cuDNN: its number, its name, its shape and where it lies.
fe::graph::Tensor_attributes& tell(fe::graph::Tensor_attributes& tensor, TensorId id,
                                   const std::vector<std::int64_t>& shape, const HeadSteps& steps) {
  return tensor.set_uid(id)
      .set_name("tensor" + std::to_string(id))
      .set_dim(shape)
      .set_stride({steps.sample, steps.head, steps.row, 1});
}

class Description {
 public:
  Description(fe::graph::Graph& graph, const AttentionProblem& problem) : graph_(graph), p_(problem) {}

  void forward() {
    auto [out, stats] =
        graph_.sdpa(input(kQ, queries(), p_.steps.q), input(kK, keys(), p_.steps.k), input(kV, keys(), p_.steps.v),
                    attributes<fe::graph::SDPA_attributes>().set_generate_stats(true));
    tell(out->set_output(true), kOut, queries(), p_.steps.out);
    tell_stats(stats->set_output(true));
  }

  void backward() {
    fe::graph::Tensor_attributes stats;
    tell_stats(stats);
    auto [dq, dk, dv] = graph_.sdpa_backward(
        input(kQ, queries(), p_.steps.q), input(kK, keys(), p_.steps.k), input(kV, keys(), p_.steps.v),
        input(kOut, queries(), p_.steps.out), input(kDout, queries(), p_.steps.out), graph_.tensor(stats),
        attributes<fe::graph::SDPA_backward_attributes>().set_deterministic_algorithm(true));
    tell(dq->set_output(true), kDq, queries(), p_.steps.q);
    tell(dk->set_output(true), kDk, keys(), p_.steps.k);
    tell(dv->set_output(true), kDv, keys(), p_.steps.v);
  }

 private:
  std::vector<std::int64_t> queries() const { return {p_.batch, p_.heads, p_.queries, p_.channels}; }
  std::vector<std::int64_t> keys() const { return {p_.batch, p_.kv_heads, p_.keys, p_.channels}; }

  Attributes input(TensorId id, const std::vector<std::int64_t>& shape, const HeadSteps& steps) {
    fe::graph::Tensor_attributes tensor;
    return graph_.tensor(tell(tensor, id, shape, steps));
  }
  void tell_stats(fe::graph::Tensor_attributes& stats) const {
    tell(stats, kStats, {p_.batch, p_.heads, p_.queries, 1}, {p_.heads * p_.queries, p_.queries, 1})
        .set_data_type(fe::DataType_t::FLOAT);
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
