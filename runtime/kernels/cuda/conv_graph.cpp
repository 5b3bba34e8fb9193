// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_graph.h"

#include <cudnn_frontend.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/cudnn_dtype.h"

namespace lockstep::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;
using Extents = std::vector<std::int64_t>;

enum ConvTensorId : std::int64_t { kFirst = 1, kSecond, kBias, kResult };

Extents spatial_part(const ConvProblem& problem, const std::array<std::int64_t, ConvProblem::kMaxSpatial>& all) {
  return {all.begin(), all.begin() + problem.spatial};
}

/// A dense tensor [outer, spatial..., inner], in cuDNN's order of naming: outer, inner, spatial.
struct TensorLayout {
  TensorLayout(std::int64_t outer, const Extents& spatial, std::int64_t inner) : extents{outer, inner} {
    extents.insert(extents.end(), spatial.begin(), spatial.end());
    strides.assign(extents.size(), 1);
    std::int64_t elements = inner;
    for (std::size_t d = extents.size() - 1; d >= 2; --d) {
      strides[d] = elements;
      elements *= extents[d];
    }
    strides[0] = elements;
  }

  Extents extents;
  Extents strides;
};

TensorLayout x_layout(const ConvProblem& p) { return {p.images, spatial_part(p, p.in), p.channels}; }
TensorLayout y_layout(const ConvProblem& p) { return {p.images, spatial_part(p, p.out), p.outputs}; }
TensorLayout weight_layout(const ConvProblem& p) {
  return {p.outputs, spatial_part(p, p.kernel), p.channels / p.groups};
}

Attributes operand(fe::graph::Graph& graph, ConvTensorId id, const TensorLayout& layout, DType dtype) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(id)
                          .set_name("operand" + std::to_string(id))
                          .set_dim(layout.extents)
                          .set_stride(layout.strides)
                          .set_data_type(data_type(dtype)));
}

void write_to(const Attributes& tensor, const TensorLayout& layout, DType dtype) {
  tensor->set_uid(kResult)
      .set_output(true)
      .set_dim(layout.extents)
      .set_stride(layout.strides)
      .set_data_type(data_type(dtype));
}

template <class Pass>
Pass convolution(const ConvProblem& problem) {
  return Pass()
      .set_padding(spatial_part(problem, problem.padding))
      .set_stride(spatial_part(problem, problem.stride))
      .set_dilation(spatial_part(problem, problem.dilation));
}

void describe(fe::graph::Graph& graph, const ConvProblem& p) {
  const TensorLayout x = x_layout(p);
  const TensorLayout y = y_layout(p);
  const TensorLayout weight = weight_layout(p);
  if (p.pass == ConvPass::kForward) {
    Attributes result = graph.conv_fprop(operand(graph, kFirst, x, p.dtype), operand(graph, kSecond, weight, p.dtype),
                                         convolution<fe::graph::Conv_fprop_attributes>(p));
    if (p.bias) {
      const Attributes shift =
          operand(graph, kBias, TensorLayout(1, Extents(y.extents.size() - 2, 1), p.outputs), p.dtype);
      // The sum is not stored before the bias is added, so it is rounded once.
      result->set_dim(y.extents).set_stride(y.strides).set_data_type(fe::DataType_t::FLOAT);
      result = graph.pointwise(result, shift, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    }
    write_to(result, y, p.result);
  } else if (p.pass == ConvPass::kData) {
    write_to(graph.conv_dgrad(operand(graph, kFirst, y, p.dtype), operand(graph, kSecond, weight, p.dtype),
                              convolution<fe::graph::Conv_dgrad_attributes>(p)),
             x, p.result);
  } else {
    const Attributes input = operand(graph, kFirst, x, p.dtype);
    write_to(
        graph.conv_wgrad(operand(graph, kSecond, y, p.dtype), input, convolution<fe::graph::Conv_wgrad_attributes>(p)),
        weight, p.result);
  }
}

}  // namespace

CudnnProblem graph_of(const ConvProblem& problem) {
  return {.key = key_of(problem),
          .dtype = problem.dtype,
          .tensor_cores = problem.dtype != DType::kFloat32 || problem.tf32,
          .describe = [problem](fe::graph::Graph& graph) { describe(graph, problem); }};
}

CudnnAddresses addresses_of(const ConvData& data) {
  CudnnAddresses addresses{
      {kFirst, const_cast<void*>(data.first)}, {kSecond, const_cast<void*>(data.second)}, {kResult, data.result}};
  if (data.bias != nullptr) addresses.emplace(kBias, const_cast<void*>(data.bias));
  return addresses;
}

}  // namespace lockstep::kernels::cuda
