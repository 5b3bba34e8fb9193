// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/nn/module.h"

namespace lockstep::nn {

struct ArenaOptions {
  /// Dtype of the compute copies; float32: there are none.
  DType compute_dtype = DType::kFloat32;
  /// The model's parameters are the compute copies (O2, O3) instead of the float32 masters (O0, O1).
  bool reduced_parameters = false;
  /// With reduced_parameters: parameters of normalisations stay float32.
  bool keep_norm_float32 = true;
  /// False: the masters hold only what the compute dtype can represent, as if there were none (O3).
  bool master_weights = true;
  /// Where the model trains; its parameters and running statistics move there.
  Device device = kCpu;
};

/// All parameters of a model in flat allocations: float32 masters, compute-dtype copies and gradients, all with the
/// same offsets, in the reverse order of registration, which is about the order in which backward finishes them.
/// Parameters become views of it, so a gradient bucket is a slice and nothing is ever copied into or out of one.
class Arena {
 public:
  /// A parameter's place: elements [begin, end). Starts are 64-byte aligned in every dtype; the padding stays zero.
  struct Slot {
    Parameter parameter;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  /// Moves the model's parameters in; their values are kept. Gradients start in float32, in private memory.
  Arena(Module& root, const ArenaOptions& options);

  const ArenaOptions& options() const { return options_; }
  const std::vector<Slot>& slots() const { return slots_; }
  /// Elements, padding included.
  std::int64_t size() const { return size_; }
  const Tensor& masters() const { return masters_; }
  /// Undefined where compute_dtype is float32.
  const Tensor& copies() const { return copies_; }
  const Tensor& grads() const { return grads_; }
  /// The master weights of one slot, in the parameter's shape.
  Tensor master(const Slot& slot) const;

  /// Puts the gradients into `storage` (zeroed, at least size() elements), in the dtype of the wire.
  void place_gradients(Storage storage, DType dtype);
  /// Forgets the gradients; the next backward pass overwrites them.
  void zero_grad() const;
  /// Whether the slot's compute copy is all there is of it: its master holds only what the compute dtype can represent.
  bool is_rounded(const Slot& slot) const;
  /// Writes zeros into the gradients that no backward pass wrote.
  void zero_missing_grads() const;
  /// Rounds the masters into the copies; after loading or broadcasting masters.
  void refresh_copies() const;

  /// Accepts or forgets the pending batch-norm statistics of the whole model.
  void commit_statistics(const float* found_inf);
  const std::vector<std::pair<std::string, RunningStatistics*>>& statistics() const { return statistics_; }

 private:
  /// Whether the model sees the compute copy instead of the master.
  bool is_reduced(const Parameter& parameter) const;

  ArenaOptions options_;
  std::vector<Slot> slots_;
  std::int64_t size_ = 0;
  Tensor masters_;
  Tensor copies_;
  Tensor grads_;
  std::vector<std::pair<std::string, RunningStatistics*>> statistics_;
};

}  // namespace lockstep::nn
