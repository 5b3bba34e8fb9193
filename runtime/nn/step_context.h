// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "runtime/ops/types.h"

namespace lockstep::nn {

/// The position of a forward pass in the run. It names dropout masks, so that they do not depend on the number of
/// ranks, and a resumed run draws those of one that was not interrupted. A layer that is called several times in one
/// context gets a mask of its own each time. Without a context, layers count their calls: see Dropout.
class [[nodiscard]] StepContext {
 public:
  /// `first_sample`: the place of the input's first row in the step's global batch. Masks are those of the model's
  /// seed: see nn::initialize().
  [[nodiscard]] StepContext(std::uint64_t step, std::int64_t first_sample);
  /// Takes another seed than the model's.
  [[nodiscard]] StepContext(std::uint64_t seed, std::uint64_t step, std::int64_t first_sample);
  /// Takes step and first sample from memory of the device on which the pass runs, where its kernels read them: a
  /// captured pass may find others there each time that it is launched.
  [[nodiscard]] explicit StepContext(const kernels::StepPosition* position);
  ~StepContext();
  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

  struct Values {
    bool named = false;                 ///< whether there is a context; without one, only first_sample has a meaning
    std::optional<std::uint64_t> seed;  ///< nothing: the model's
    std::uint64_t step = 0;
    std::int64_t first_sample = 0;
    const kernels::StepPosition* position = nullptr;  ///< null: nothing is added to the others
    /// Layers run a second time, for what their backward needs: they repeat their random numbers and change no state.
    bool again = false;
  };
  /// The values of this thread's innermost context.
  static Values current();
  /// The number of earlier calls of this function for `layer` within the innermost context.
  static std::uint32_t next_call(std::uint32_t layer);

  /// The position of a part of a forward pass.
  struct Place {
    Values values;
    std::map<std::uint32_t, std::uint32_t> calls;  ///< of each layer so far
  };
  static Place place();
  /// Enters the position of a part that runs again.
  [[nodiscard]] explicit StepContext(const Place& place);

 private:
  [[nodiscard]] explicit StepContext(const Values& values);

  Values previous_;
  StepContext* outer_;
  std::map<std::uint32_t, std::uint32_t> calls_;  ///< by layer
};

/// Says where the input of a forward pass lies in the global batch: its first row is sample `first_sample`.
/// DistributedDataParallel::forward sets it. For loops without a StepContext, or within one that reads no device
/// memory.
class [[nodiscard]] FirstSample {
 public:
  [[nodiscard]] explicit FirstSample(std::int64_t first_sample);
  ~FirstSample();
  FirstSample(const FirstSample&) = delete;
  FirstSample& operator=(const FirstSample&) = delete;

 private:
  std::int64_t previous_;
};

}  // namespace lockstep::nn
