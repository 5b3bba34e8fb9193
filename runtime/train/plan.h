// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/description.h"
#include "runtime/job/diagnostic.h"
#include "runtime/job/job.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::train {

/// The ranks and devices that a job is to run on.
struct PlanOptions {
  int ranks = 1;
  int ranks_here = 1;             ///< of them on this machine; 0: not known
  int cores = 0;                  ///< of this machine; 0: not known
  std::filesystem::path run_dir;  ///< where checkpoints go
  Device device = kCpu;
  /// Whether to read the weights that init_from names and to fit them into the model, in as much memory as both take.
  /// Training reads them itself.
  bool reads_weights = false;
};

/// Bytes that the weights and what belongs to them take on each rank, the padding between parameters included: what the
/// allocator gives for each purpose (memory_use()), to the byte.
struct PlannedMemory {
  std::int64_t weights = 0;         ///< float32 masters
  std::int64_t compute_copies = 0;  ///< of the weights, in 16 bits
  std::int64_t gradients = 0;       ///< in the dtype of the wire
  std::int64_t gradient_sums = 0;   ///< float32: micro-batches add up in them where the wire has 16 bits
  std::int64_t optimizer_state = 0;

  std::int64_t sum() const { return weights + compute_copies + gradients + gradient_sums + optimizer_state; }
};

struct PlannedCheckpoints {
  std::int64_t count = 0;  ///< the one at the end included
  std::int64_t bytes = 0;  ///< of the tensors of one
  std::filesystem::path directory;
};

/// Something that is wrong with a job, or strange. An error ends a run with `code`.
struct Finding {
  job::Diagnostic at;
  ExitCode code = ExitCode::kUsage;
  std::string advice;
};

/// The facts about what a job will run. Where there are errors, those that they leave unknown are not filled in.
struct Plan {
  std::vector<Finding> errors;
  std::vector<Finding> warnings;

  data::Description train;
  std::optional<data::Description> eval;
  std::vector<std::string> metrics;  ///< of an evaluation: "eval.loss", "eval.accuracy"; none without evaluation data
  std::int64_t parameters = 0;
  PlannedMemory memory;
  std::int64_t steps_per_epoch = 0;
  PlannedCheckpoints checkpoints;
};

/// Looks at all that decides whether a sound job can train: headers and labels of its data, the shapes of its model,
/// parameter groups, faults. Costs milliseconds and no memory worth naming, but for `reads_weights`: no pixel is read,
/// no weight computed.
/// `locations` tells where the job gives its fields. Training makes the same plan first, so what passes here passes
/// there. Never throws for what the job says.
Plan plan(const job::Job& job, const PlanOptions& options, const job::Locations& locations = {});

/// Adds an error where the weights and what belongs to them take more than the `memory` that this machine has for the
/// `ranks` that compute on its CPU.
void require_memory(Plan& plan, const job::Job& job, const job::Locations& locations, std::optional<std::size_t> memory,
                    int ranks);

/// Throws FieldError, for the field of a job that asks for it, where a GPU does not compute in `dtype`.
void require_dtype(const std::string& field, DType dtype, Device device, const gpu::Description& gpu);

int cores_of_this_machine();

/// Throws one Error that lists all errors of the plan, one a line, with the exit code of the first.
void require_sound(const Plan& plan);

/// Logs the warnings, one a line.
void print_warnings(const Plan& plan);

}  // namespace lockstep::train
