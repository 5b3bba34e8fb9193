// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/kernels/cuda/plan_target.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/dtype.h"

namespace cudnn_frontend::graph {
class Graph;
}

namespace lockstep::kernels::cuda {

/// A computation that cuDNN is asked for.
struct CudnnProblem {
  std::string key;           ///< in one line: equal problems have equal keys, and no others
  DType dtype;               ///< of the graph's tensors that name none
  bool tensor_cores = true;  ///< may multiply on them
  /// In bytes. Does not depend on the free memory: every rank and every run must get the same engine.
  std::int64_t workspace_limit = std::int64_t{512} << 20;
  /// Adds tensors, each with a number of its own, and operations. Tensors between two operations are float32.
  std::function<void(cudnn_frontend::graph::Graph&)> describe;
};

/// Where the tensors of a graph lie, by their numbers; 16-byte aligned.
using CudnnAddresses = std::unordered_map<std::int64_t, void*>;

/// A problem as cuDNN's graph API solves it, with one of its engines. The frontend's header, which takes longer to
/// compile than the rest of this folder's host code, is included by what describes graphs and by this class alone.
class CudnnPlan {
 public:
  /// The names of engines that compute this deterministically in float32, in cuDNN's ranking, best one first. They need
  /// not all be fit to be built; an engine without a name is left out.
  static std::vector<std::string> candidates(const PlanTarget& target, const CudnnProblem& problem);
  /// At most `most` plans that can be built, in the same ranking; engines without a name are among them.
  static std::vector<std::unique_ptr<CudnnPlan>> ranked(const PlanTarget& target, const CudnnProblem& problem,
                                                        std::size_t most);
  /// The engine of this name(). Null where it is none of those that ranked() may give.
  static std::unique_ptr<CudnnPlan> named(const PlanTarget& target, const CudnnProblem& problem,
                                          const std::string& name);
  ~CudnnPlan();

  /// The engine and its knobs, EngineName: for the same problem, device and version of cuDNN named() gives the same
  /// again. Empty where it cannot be named.
  const std::string& name() const { return name_; }
  /// Appends the graph to the handle's stream, which is the calling thread's current one of the device. Throws
  /// EnvironmentError.
  void run(cudnnHandle_t handle, const CudnnAddresses& addresses, Device device) const;

 private:
  struct Graph;
  CudnnPlan(std::shared_ptr<Graph> graph, std::int64_t index, std::size_t workspace_bytes, std::string name,
            std::string key);
  static std::unique_ptr<CudnnPlan> built(std::shared_ptr<Graph> graph, std::int64_t index, std::string name,
                                          const CudnnProblem& problem);
  template <class F>
  static void with_lists(const PlanTarget& target, const CudnnProblem& problem, F&& f);

  std::shared_ptr<Graph> graph_;
  std::int64_t index_;  ///< of the plan in the graph's list
  std::size_t workspace_bytes_;
  std::string name_;
  std::string key_;  ///< of the problem, for messages
};

}  // namespace lockstep::kernels::cuda
