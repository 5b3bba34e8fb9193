// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/step/step_inputs.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::step {

/// Makes a step a CUDA graph: captures it when its shapes and setting have come twice in a row, and launches that from
/// then on. Steps of other shapes in between, as at the end of an epoch, run as they are.
///
/// NCCL requires that either all ranks capture a collective or none, and that all launch the graph of that capture. So
/// ranks decide alike. Where batches are dealt (data::Batch) and come from a step::Uploader, what a rank compares
/// changes on all ranks at once. From the first other batch on, whose shapes may change on one rank alone, the ranks
/// agree before every step: a collective of the CPU. Whether a capture has worked they agree on in any case. A Setting
/// that changes on one rank alone is not noticed before the collectives' timeout.
class StepGraph {
 public:
  /// The settings that a step's work depends on beside its inputs, and that may change between steps. They are the same
  /// on all ranks.
  struct Setting {
    std::vector<Tensor> tensors;  ///< whose memory it uses
    std::vector<bool> choices;    ///< which way it goes
    bool operator==(const Setting& other) const;
  };

  /// `required`: a capture that fails is an error; else all steps from there on run as they are, and rank 0 logs why.
  StepGraph(Device device, comm::Communicator& communicator, bool required = false)
      : device_(device), communicator_(communicator), required_(required) {}

  /// Does the step's work, which is `compute`, in either way. It is called once to be captured and again, to run, where
  /// that fails on any rank. A collective. Throws what `compute` throws when it runs, PeerError while it is captured,
  /// and UsageError for a batch that is dealt but is not this rank's share.
  void run(const StepInputs& inputs, Setting setting, const std::function<void()>& compute);
  /// Steps that were launched as a graph so far.
  std::uint64_t launches() const { return launches_; }
  /// Kernels, copies and fills of the graph; 0 where none is captured.
  std::size_t nodes() const { return graph_ ? graph_->nodes() : 0; }

 private:
  /// The key of a captured step: all that its work depends on.
  struct Key {
    Setting setting;  ///< with the inputs' tensors; kept, so that nothing else comes to lie in their memory
    std::vector<std::int64_t> samples;
    bool operator==(const Key& other) const = default;
  };
  /// The keys that this step's key equals. The same on all ranks.
  struct Match {
    bool captured;  ///< that of the graph
    bool last;      ///< that of the step before
  };
  static Key key_of(const StepInputs& inputs, Setting setting);

  bool alone() const { return communicator_.size() == 1; }
  Match match(const Key& key, const StepInputs& inputs);
  void require_share(const data::Batch& batch) const;
  void capture(const Key& key, const std::function<void()>& compute);
  /// Goes on without graphs where the capture has failed on any rank; `failure` is this rank's.
  void agree_on_capture(const std::exception_ptr& failure);

  Device device_;
  comm::Communicator& communicator_;
  bool required_;
  bool given_up_ = false;  ///< a capture has failed
  bool agrees_ = false;    ///< before every step
  Key last_;               ///< of the step before
  Key captured_;           ///< of graph_, where there is one
  std::unique_ptr<gpu::Graph> graph_;
  std::uint64_t launches_ = 0;
};

}  // namespace lockstep::step
