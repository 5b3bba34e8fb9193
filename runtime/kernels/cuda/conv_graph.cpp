// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_graph.h"

#include <cudnn_frontend.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/kernels/plan_cache/engine_name.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/memory.h"

namespace lockstep::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;
using Extents = std::vector<std::int64_t>;

/// More than an engine worth running asks for. Not what happens to be free: every rank and every run must get the same
/// engine.
constexpr std::int64_t kWorkspaceLimit = 512 << 20;

enum Id : std::int64_t { kFirst = 1, kSecond, kBias, kResult };

fe::DataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return fe::DataType_t::HALF;
    case DType::kBFloat16:
      return fe::DataType_t::BFLOAT16;
    default:
      return fe::DataType_t::FLOAT;
  }
}

Extents spatial_part(const ConvProblem& problem, const std::array<std::int64_t, ConvProblem::kMaxSpatial>& all) {
  return {all.begin(), all.begin() + problem.spatial};
}

/// A dense tensor [outer, spatial..., inner], in cuDNN's order of naming: outer, inner, spatial.
struct Layout {
  Layout(std::int64_t outer, const Extents& spatial, std::int64_t inner) : extents{outer, inner} {
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

Layout x_layout(const ConvProblem& p) { return {p.images, spatial_part(p, p.in), p.channels}; }
Layout y_layout(const ConvProblem& p) { return {p.images, spatial_part(p, p.out), p.outputs}; }
Layout weight_layout(const ConvProblem& p) { return {p.outputs, spatial_part(p, p.kernel), p.channels / p.groups}; }

Attributes operand(fe::graph::Graph& graph, Id id, const Layout& layout, DType dtype) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(id)
                          .set_name("operand" + std::to_string(id))
                          .set_dim(layout.extents)
                          .set_stride(layout.strides)
                          .set_data_type(data_type(dtype)));
}

void write_to(const Attributes& tensor, const Layout& layout, DType dtype) {
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
  const Layout x = x_layout(p);
  const Layout y = y_layout(p);
  const Layout weight = weight_layout(p);
  if (p.pass == ConvPass::kForward) {
    Attributes result = graph.conv_fprop(operand(graph, kFirst, x, p.dtype), operand(graph, kSecond, weight, p.dtype),
                                         convolution<fe::graph::Conv_fprop_attributes>(p));
    if (p.bias) {
      const Attributes shift = operand(graph, kBias, Layout(1, Extents(y.extents.size() - 2, 1), p.outputs), p.dtype);
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

/// What engines may not do: add in an order that changes from run to run, round on the way in or in between, and, where
/// TF32 is not allowed, multiply float32 on tensor cores.
std::vector<fe::NumericalNote_t> refused(const ConvProblem& problem) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes{
      Note::NONDETERMINISTIC, Note::DOWN_CONVERT_INPUTS, Note::REDUCED_PRECISION_REDUCTION, Note::FFT,
      Note::WINOGRAD,         Note::WINOGRAD_TILE_4x4,   Note::WINOGRAD_TILE_6x6,           Note::WINOGRAD_TILE_13x13};
  if (problem.dtype == DType::kFloat32 && !problem.tf32) notes.push_back(Note::TENSOR_CORE);
  return notes;
}

void set(const fe::detail::backend_descriptor& descriptor, cudnnBackendAttributeName_t attribute,
         cudnnBackendAttributeType_t type, const void* value) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(descriptor.get_ptr(), attribute, type, 1, value);
  if (status != CUDNN_STATUS_SUCCESS) throw fe::cudnnException("cudnnBackendSetAttribute", status);
}

}  // namespace

struct ConvGraph::Graph : fe::graph::Graph {
  /// Null where cuDNN cannot express the problem.
  static std::shared_ptr<Graph> describing(const ConvProblem& problem, cudnnHandle_t handle) {
    auto graph = std::make_shared<Graph>();
    graph->set_io_data_type(data_type(problem.dtype))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    describe(*graph, problem);
    if (graph->validate().is_bad() || graph->build_operation_graph(handle).is_bad()) return nullptr;
    return graph;
  }

  /// Lists the one plan of this name. create_execution_plan() does the same, but not for engines with knobs that cuDNN
  /// calls deprecated, which its ranking holds all the same.
  bool list(const EngineName& name) {
    if (name.knobs.size() > CUDNN_KNOB_TYPE_COUNTS) return false;
    fe::detail::backend_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (fe::detail::create_engine(engine, name.engine, operation_graph->get_raw_desc()).is_bad()) return false;
    std::vector<fe::detail::backend_descriptor> choices;
    for (const auto& [knob, value] : name.knobs) {
      if (knob < 0 || knob >= CUDNN_KNOB_TYPE_COUNTS) return false;
      const auto type = static_cast<cudnnBackendKnobType_t>(knob);
      auto& choice = choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      set(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type);
      set(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value);
      if (choice.finalize().is_bad()) return false;
    }
    auto config = fe::make_shared_backend_pointer(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (fe::detail::create_engine_config(config, engine, choices).is_bad()) return false;
    plans.enqueue_engine_configs({config});
    return plans.query_properties().is_good();
  }

  /// Of the plans that it lists, keeps those that may not run from being built.
  void restrict_to(const ConvProblem& problem) {
    deselect_numeric_notes(refused(problem));
    deselect_workspace_greater_than(kWorkspaceLimit);
  }
};

ConvGraph::ConvGraph(std::shared_ptr<Graph> graph, std::int64_t index, std::size_t workspace_bytes, std::string name)
    : graph_(std::move(graph)), index_(index), workspace_bytes_(workspace_bytes), name_(std::move(name)) {}

ConvGraph::~ConvGraph() = default;

std::unique_ptr<ConvGraph> ConvGraph::built(std::shared_ptr<Graph> graph, std::int64_t index, std::string name) {
  std::int64_t workspace = 0;
  if (graph->build_plan_at_index(index).is_bad()) return nullptr;
  if (graph->get_workspace_size_plan_at_index(index, workspace).is_bad()) return nullptr;
  return std::unique_ptr<ConvGraph>(
      new ConvGraph(std::move(graph), index, static_cast<std::size_t>(workspace), std::move(name)));
}

std::unique_ptr<ConvGraph> ConvGraph::named(cudnnHandle_t handle, const ConvProblem& problem, const std::string& name) {
  const std::optional<EngineName> engine = EngineName::parse(name);
  if (!engine) return nullptr;
  try {
    std::shared_ptr<Graph> graph = Graph::describing(problem, handle);
    if (!graph || !graph->list(*engine)) return nullptr;
    graph->restrict_to(problem);
    return built(std::move(graph), 0, name);
  } catch (const fe::cudnnException&) {  // some of the frontend's older classes throw
    return nullptr;
  }
}

std::vector<std::unique_ptr<ConvGraph>> ConvGraph::ranked(cudnnHandle_t handle, const ConvProblem& problem,
                                                          std::size_t most) {
  std::vector<std::unique_ptr<ConvGraph>> plans;
  // To ask for a list takes milliseconds, the second one twice those of the first, which nearly always suffices.
  for (const fe::HeurMode_t list : {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}) {
    try {
      const std::shared_ptr<Graph> graph = Graph::describing(problem, handle);
      if (!graph || graph->create_execution_plans({list}).is_bad()) continue;
      graph->restrict_to(problem);
      const std::int64_t count = graph->get_execution_plan_count();
      for (std::int64_t i = 0; i < count && plans.size() < most; ++i) {
        std::string name;
        if (graph->get_plan_name_at_index(i, name).is_bad()) name.clear();
        // By its name where it has one, so that a run that finds the name in the cache gets this very plan.
        std::unique_ptr<ConvGraph> plan = named(handle, problem, name);
        if (!plan) plan = built(graph, i, "");
        if (plan) plans.push_back(std::move(plan));
      }
    } catch (const fe::cudnnException&) {
      continue;
    }
    if (!plans.empty()) break;
  }
  return plans;
}

void ConvGraph::run(cudnnHandle_t handle, const ConvData& data, Device device) const {
  std::unordered_map<std::int64_t, void*> addresses{
      {kFirst, const_cast<void*>(data.first)}, {kSecond, const_cast<void*>(data.second)}, {kResult, data.result}};
  if (data.bias != nullptr) addresses.emplace(kBias, const_cast<void*>(data.bias));
  const MemoryScope scope(MemoryPurpose::kWorkspaces);
  const Storage workspace = workspace_bytes_ > 0 ? Storage::allocate(workspace_bytes_, device) : Storage();
  fe::error_t status = graph_->execute_plan_at_index(handle, addresses, workspace.data(), index_);
  if (status.is_good()) return;
  throw EnvironmentError("cuDNN cannot run a convolution: " + status.get_message(),
                         "CUDNN_LOGLEVEL_DBG=2 makes cuDNN say more.");
}

}  // namespace lockstep::kernels::cuda
