// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/cudnn_plan.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/cudnn_dtype.h"
#include "runtime/kernels/plan_cache/engine_name.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/storage.h"

namespace lockstep::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;

/// The properties of engines that are refused: to add in an order that changes from run to run, to round inputs or
/// intermediate results, and, where the problem says so, to multiply on tensor cores.
std::vector<fe::NumericalNote_t> refused(const CudnnProblem& problem) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes{
      Note::NONDETERMINISTIC, Note::DOWN_CONVERT_INPUTS, Note::REDUCED_PRECISION_REDUCTION, Note::FFT,
      Note::WINOGRAD,         Note::WINOGRAD_TILE_4x4,   Note::WINOGRAD_TILE_6x6,           Note::WINOGRAD_TILE_13x13};
  if (!problem.tensor_cores) notes.push_back(Note::TENSOR_CORE);
  return notes;
}

void set(const fe::detail::backend_descriptor& descriptor, cudnnBackendAttributeName_t attribute,
         cudnnBackendAttributeType_t type, const void* value) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(descriptor.get_ptr(), attribute, type, 1, value);
  if (status != CUDNN_STATUS_SUCCESS) throw fe::cudnnException("cudnnBackendSetAttribute", status);
}

}  // namespace

struct CudnnPlan::Graph : fe::graph::Graph {
  /// Null where cuDNN cannot express the problem.
  static std::shared_ptr<Graph> describing(const CudnnProblem& problem, const PlanTarget& target) {
    auto graph = std::make_shared<Graph>();
    if (target.handle == nullptr) {
      auto properties = std::make_shared<fe::DeviceProperties>();
      if (properties->deserialize({target.properties.begin(), target.properties.end()}).is_bad()) return nullptr;
      graph->set_device_properties(std::move(properties));
    }
    graph->set_io_data_type(data_type(problem.dtype))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    problem.describe(*graph);
    if (graph->validate().is_bad() || graph->build_operation_graph(target.handle).is_bad()) return nullptr;
    return graph;
  }

  /// Lists the one plan of this name. create_execution_plan() does the same, but not for engines with knobs that cuDNN
  /// calls deprecated, which its ranking holds all the same.
  bool list(const EngineName& name) {
    if (name.knobs.size() > CUDNN_KNOB_TYPE_COUNTS) return false;
    fe::detail::backend_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (fe::detail::create_engine(engine, name.engine, operation_graph->get_raw_desc(), device_properties).is_bad())
      return false;
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

  /// Whether the plan of this number in the list may run.
  bool allows(const CudnnProblem& problem, std::int64_t index) const {
    const std::vector<fe::NumericalNote_t>& notes = plans.numeric_notes[static_cast<std::size_t>(index)];
    return std::ranges::none_of(
        refused(problem), [&](fe::NumericalNote_t note) { return std::ranges::find(notes, note) != notes.end(); });
  }

  /// Deselects the listed plans that may not run, so that they are not built.
  void restrict_to(const CudnnProblem& problem) {
    deselect_numeric_notes(refused(problem));
    deselect_workspace_greater_than(problem.workspace_limit);
  }
};

CudnnPlan::CudnnPlan(std::shared_ptr<Graph> graph, std::int64_t index, std::size_t workspace_bytes, std::string name,
                     std::string key)
    : graph_(std::move(graph)),
      index_(index),
      workspace_bytes_(workspace_bytes),
      name_(std::move(name)),
      key_(std::move(key)) {}

CudnnPlan::~CudnnPlan() = default;

std::unique_ptr<CudnnPlan> CudnnPlan::built(std::shared_ptr<Graph> graph, std::int64_t index, std::string name,
                                            const CudnnProblem& problem) {
  std::int64_t workspace = 0;
  if (graph->build_plan_at_index(index).is_bad()) return nullptr;
  if (graph->get_workspace_size_plan_at_index(index, workspace).is_bad()) return nullptr;
  return std::unique_ptr<CudnnPlan>(
      new CudnnPlan(std::move(graph), index, static_cast<std::size_t>(workspace), std::move(name), problem.key));
}

std::unique_ptr<CudnnPlan> CudnnPlan::named(const PlanTarget& target, const CudnnProblem& problem,
                                            const std::string& name) {
  const std::optional<EngineName> engine = EngineName::parse(name);
  if (!engine) return nullptr;
  try {
    std::shared_ptr<Graph> graph = Graph::describing(problem, target);
    if (!graph || !graph->list(*engine)) return nullptr;
    graph->restrict_to(problem);
    return built(std::move(graph), 0, name, problem);
  } catch (const fe::cudnnException&) {  // some of the frontend's older classes throw
    return nullptr;
  }
}

/// Calls f(graph) with a graph that lists the engines of cuDNN's ranking, and with a longer list where that returns
/// false. To ask for a list takes milliseconds, the second one twice those of the first, which nearly always suffices.
template <class F>
void CudnnPlan::with_lists(const PlanTarget& target, const CudnnProblem& problem, F&& f) {
  for (const fe::HeurMode_t list : {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}) {
    try {
      const std::shared_ptr<Graph> graph = Graph::describing(problem, target);
      if (!graph || graph->create_execution_plans({list}).is_bad()) continue;
      graph->restrict_to(problem);
      if (f(graph)) return;
    } catch (const fe::cudnnException&) {
      continue;
    }
  }
}

std::vector<std::string> CudnnPlan::candidates(const PlanTarget& target, const CudnnProblem& problem) {
  std::vector<std::string> names;
  with_lists(target, problem, [&](const std::shared_ptr<Graph>& graph) {
    for (std::int64_t i = 0; i < graph->get_execution_plan_count(); ++i) {
      std::string name;
      if (graph->allows(problem, i) && graph->get_plan_name_at_index(i, name).is_good()) names.push_back(name);
    }
    return !names.empty();
  });
  return names;
}

std::vector<std::unique_ptr<CudnnPlan>> CudnnPlan::ranked(const PlanTarget& target, const CudnnProblem& problem,
                                                          std::size_t most) {
  std::vector<std::unique_ptr<CudnnPlan>> plans;
  with_lists(target, problem, [&](const std::shared_ptr<Graph>& graph) {
    const std::int64_t count = graph->get_execution_plan_count();
    for (std::int64_t i = 0; i < count && plans.size() < most; ++i) {
      std::string name;
      if (graph->get_plan_name_at_index(i, name).is_bad()) name.clear();
      // By its name where it has one, so that a run that finds the name in the cache gets this very plan.
      std::unique_ptr<CudnnPlan> plan = named(target, problem, name);
      if (!plan) plan = built(graph, i, "", problem);
      if (plan) plans.push_back(std::move(plan));
    }
    return !plans.empty();
  });
  return plans;
}

void CudnnPlan::run(cudnnHandle_t handle, const CudnnAddresses& addresses, Device device) const {
  CudnnAddresses all = addresses;  // to which the frontend adds its own
  const MemoryScope scope(MemoryPurpose::kWorkspaces);
  const Storage workspace = workspace_bytes_ > 0 ? Storage::allocate(workspace_bytes_, device) : Storage();
  fe::error_t status = graph_->execute_plan_at_index(handle, all, workspace.data(), index_);
  if (status.is_good()) return;
  throw EnvironmentError("cuDNN cannot run " + key_ + ": " + status.get_message(),
                         "CUDNN_LOGLEVEL_DBG=2 makes cuDNN say more.");
}

}  // namespace lockstep::kernels::cuda
