// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/step/step_clock.h"
#include "runtime/train/step_memory.h"
#include "runtime/train/step_schedule.h"

namespace lockstep::train {

/// Milliseconds of several steps.
struct Spread {
  double mean = 0;
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
};
/// Of at least one value; the element at the rounded-down place of the sorted ones.
Spread spread_of(std::vector<double> values);

/// One pass of an operation: of all its calls, or of those in one layer.
struct ProfiledPass {
  std::string name;  ///< "linear", "linear backward", "linear again" of a checkpoint's second forward pass
  DType dtype = DType::kFloat32;
  bool is_operation = true;        ///< otherwise a range between operations, a collective or a wait
  double calls = 0;                ///< a step
  double ms = 0;                   ///< a step
  double gflops = 0;               ///< 10^9 multiplications and additions a second; 0 of what has no products
  double gb_per_s = 0;             ///< 10^9 bytes a second that it has to read and write
  std::optional<double> of_floor;  ///< the share of the machine's floor that it reaches, where it has one
  std::string implementation;      ///< oneDNN's name for its primitive; empty: loops of ours
};

struct ProfiledLayer {
  std::string path;  ///< empty: outside any, as the loss is
  double forward_ms = 0;
  double backward_ms = 0;  ///< with a checkpoint's second forward pass
};

/// What the machine can do with all of this rank's threads.
struct MachineFloors {
  double float32_gflops = 0;
  double bfloat16_gflops = 0;
  double float16_gflops = 0;
  double memory_gb_per_s = 0;  ///< bytes that a copy of 64 MiB reads and writes
  double cache_gb_per_s = 0;   ///< of 256 KiB

  double gflops(DType dtype) const;
  /// Of an operation that has so many bytes a call.
  double gb_per_s(double bytes) const;
};

/// An all-reduce takes alpha, and beta for each byte.
struct TransportFloor {
  std::string transport;  ///< Communicator::description()
  double alpha_us = 0;    ///< of one number
  double gb_per_s = 0;    ///< 1 / beta, in memory that the ranks share where they do
};

struct RankProfile {
  double step_ms = 0;               ///< mean
  std::optional<double> waited_ms;  ///< for other ranks; of step_ms. None on a GPU, which waits unseen
  double own_ms() const { return step_ms - waited_ms.value_or(0); }
};

/// Where the time of a job's training step goes, on rank 0 of `ranks`.
struct StepProfile {
  std::string device;
  std::int64_t samples = 0;  ///< a step, of all ranks
  int threads = 1;           ///< of a rank
  std::int64_t steps = 0;    ///< timed; as many without a clock are between them
  Spread step;               ///< of the timed ones, by another clock than the parts'
  Spread unclocked;          ///< of the others
  std::array<Spread, step::kStepParts> parts;
  std::vector<ProfiledPass> passes;   ///< the heaviest first
  std::vector<ProfiledLayer> layers;  ///< the heaviest first
  MachineFloors floors;
  std::optional<TransportFloor> transport;  ///< of several ranks
  std::vector<RankProfile> ranks;
  std::int64_t buckets = 0;
  DType wire_dtype = DType::kFloat32;
  DType compute_dtype = DType::kFloat32;
  StepSchedule schedule;  ///< of this rank, without what the clock costs
  StepMemory memory;      ///< of this rank
  struct SmallerPeak {
    std::string setting;  ///< "data.global_batch=32"
    std::size_t bytes = 0;
  };
  std::vector<SmallerPeak> smaller;  ///< peaks of this rank with another setting, as measured

  double part(step::StepPart part) const { return parts[static_cast<std::size_t>(part)].mean; }
  /// A part's share of the step.
  double share(step::StepPart part) const { return step.mean > 0 ? this->part(part) / step.mean : 0; }
  /// The rank whose own time is longest, where it is so by far: 1.3 times, and 1 ms more than, the others' median.
  std::optional<int> straggler() const;
};

/// Passes and layers of `operations`, which `steps` steps took. `layer_of` gives a module's path.
void fill_passes(StepProfile& profile, const std::deque<step::OperationTimes>& operations,
                 const std::function<std::string(const nn::Module*)>& layer_of);

}  // namespace lockstep::train
