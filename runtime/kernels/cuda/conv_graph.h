// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <memory>

#include "runtime/kernels/cuda/conv_problem.h"

namespace lockstep::kernels::cuda {

/// A convolution as cuDNN's graph API runs it, with the engine that it chose. The only user of the frontend's header,
/// which takes longer to compile than the rest of this folder's host code.
class ConvGraph {
 public:
  /// Null where no engine computes this deterministically in float32.
  static std::unique_ptr<ConvGraph> build(cudnnHandle_t handle, const ConvProblem& problem);
  ~ConvGraph();

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Appends the convolution to the handle's stream. Throws EnvironmentError.
  void run(cudnnHandle_t handle, const ConvData& data, void* workspace) const;

 private:
  struct Graph;
  explicit ConvGraph(std::unique_ptr<Graph> graph, std::size_t workspace_bytes);

  std::unique_ptr<Graph> graph_;
  std::size_t workspace_bytes_;
};

}  // namespace lockstep::kernels::cuda
