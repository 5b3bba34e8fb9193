// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/step/step_inputs.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::step {

/// Makes a step a CUDA graph: captures it when its shapes and setting have come twice in a row, and launches that from
/// then on. Steps of other shapes in between, as at the end of an epoch, run as they are.
class StepGraph {
 public:
  /// What a step's work depends on beside its inputs, and what may change between steps. The same on all ranks.
  struct Setting {
    std::vector<Tensor> tensors;  ///< whose memory it uses
    std::vector<bool> choices;    ///< which way it goes
    bool operator==(const Setting& other) const;
  };

  StepGraph(Device device, comm::Communicator& communicator) : device_(device), communicator_(communicator) {}

  /// Does the step's work, which is `compute`, in either way. A collective.
  void run(const StepInputs& inputs, Setting setting, const std::function<void()>& compute);
  /// Steps that were launched as a graph so far.
  std::uint64_t launches() const { return launches_; }
  /// Kernels, copies and fills of the graph; 0 where none is captured.
  std::size_t nodes() const { return graph_ ? graph_->nodes() : 0; }

 private:
  /// What a captured step depends on.
  struct Key {
    Setting setting;  ///< with the inputs' tensors; kept, so that nothing else comes to lie in their memory
    std::vector<std::int64_t> samples;
    bool operator==(const Key& other) const = default;
  };
  static Key key_of(const StepInputs& inputs, Setting setting);

  void capture(const Key& key, const std::function<void()>& compute);

  Device device_;
  comm::Communicator& communicator_;
  Key last_;      ///< of the step before
  Key captured_;  ///< of graph_, where there is one
  std::unique_ptr<gpu::Graph> graph_;
  std::uint64_t launches_ = 0;
};

}  // namespace lockstep::step
