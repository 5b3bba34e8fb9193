// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/train.h"

namespace lockstep::train {

/// What a run asked of a GPU, on rank 0.
struct GpuSummary {
  std::string name;
  std::size_t peak_memory = 0;       ///< bytes, of tensors and workspaces
  double launch_us_p50 = 0.0;        ///< host time to hand the GPU a step
  std::uint64_t host_waits = 0;      ///< how often the host waited for the GPU while it handed out steps
  std::uint64_t graph_launches = 0;  ///< steps that ran as a captured graph
};

/// summary.json: what a finished run came to.
struct Summary {
  int world_size = 1;
  std::string device = "cpu";
  std::string precision;
  std::uint64_t steps = 0;
  std::uint64_t applied_steps = 0;
  std::uint64_t skipped_steps = 0;
  double final_loss = 0.0;  ///< NaN, null in the file, where resuming found every step done
  std::optional<EvalResult> eval;
  double samples_per_s = 0.0;
  double step_ms_p50 = 0.0;
  double time_to_first_step_ms = 0.0;  ///< from the start of the process
  double mpi_init_ms = 0.0;            ///< of that, inside MPI_Init
  std::string weights_digest;
  std::optional<GpuSummary> gpu;
};

std::string to_json(const Summary& summary);
/// 0 without values.
double median(std::vector<float> values);

/// Writes a small file whole or not at all; makes its directory. Throws StorageError.
void write_text(const std::filesystem::path& path, const std::string& text);
/// Moves an earlier run's files into a folder `earlier-<n>` of `run_dir`, so that a new run starts there and nothing is
/// lost.
void set_aside_earlier_run(const std::filesystem::path& run_dir);
/// The same for the checkpoints of steps behind `step` alone, from which a run goes on: they belong to another
/// continuation, and neither may they be resumed from nor stand where this one is about to save.
void set_aside_later_checkpoints(const std::filesystem::path& run_dir, std::uint64_t step);

/// Whether the summary at `path` is that of a run that ended at this step with these weights.
bool describes(const std::filesystem::path& path, std::uint64_t steps, const std::string& weights_digest);

}  // namespace lockstep::train
