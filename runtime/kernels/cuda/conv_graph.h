// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/conv_problem.h"

namespace lockstep::kernels::cuda {

/// A convolution as cuDNN's graph API runs it, with one of its engines. The only user of the frontend's header, which
/// takes longer to compile than the rest of this folder's host code.
class ConvGraph {
 public:
  /// The engines that compute this deterministically in float32 and can be built, in cuDNN's ranking, best one first,
  /// at most `most` of them.
  static std::vector<std::unique_ptr<ConvGraph>> ranked(cudnnHandle_t handle, const ConvProblem& problem,
                                                        std::size_t most);
  /// The engine of this name(). Null where it is none of those that ranked() may give.
  static std::unique_ptr<ConvGraph> named(cudnnHandle_t handle, const ConvProblem& problem, const std::string& name);
  ~ConvGraph();

  /// The engine and its knobs, EngineName: for the same problem, device and version of cuDNN named() gives the same
  /// again. Empty where it cannot be named.
  const std::string& name() const { return name_; }
  /// Appends the convolution to the handle's stream, which is the calling thread's current one of the device. Throws
  /// EnvironmentError.
  void run(cudnnHandle_t handle, const ConvData& data, Device device) const;

 private:
  struct Graph;
  ConvGraph(std::shared_ptr<Graph> graph, std::int64_t index, std::size_t workspace_bytes, std::string name);
  static std::unique_ptr<ConvGraph> built(std::shared_ptr<Graph> graph, std::int64_t index, std::string name);

  std::shared_ptr<Graph> graph_;
  std::int64_t index_;  ///< of the plan in the graph's list
  std::size_t workspace_bytes_;
  std::string name_;
};

}  // namespace lockstep::kernels::cuda
