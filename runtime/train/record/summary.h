// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "runtime/tensor/device.h"
#include "runtime/train/record/eval_result.h"

namespace lockstep::train {

/// The use that a run made of a GPU, on rank 0.
struct GpuSummary {
  std::string name;
  double launch_us_p50 = 0.0;        ///< host time to hand the GPU a step
  std::uint64_t host_waits = 0;      ///< how often the host waited for the GPU while it handed out steps
  std::uint64_t graph_launches = 0;  ///< steps that ran as a captured graph
};

/// The most bytes that rank 0's tensors and workspaces took on the run's device at once.
struct MemoryPeaks {
  std::size_t all = 0;
  std::map<std::string, std::size_t> by_purpose;  ///< "master_weights"; what nothing was taken for is left out
};
MemoryPeaks memory_peaks(Device device);

/// {"samples", "loss", and the metrics by name}, and "weights": "mean" where it is of their mean
nlohmann::ordered_json to_json(const EvalResult& result);

/// The numbers of summary.json: what a run came to.
struct Summary {
  int world_size = 1;
  std::string transport;  ///< what joins the ranks; empty, null in the file, where there is one
  std::string device = "cpu";
  std::string precision;
  std::uint64_t steps = 0;
  std::uint64_t applied_steps = 0;
  std::uint64_t skipped_steps = 0;
  std::optional<std::uint64_t> skipped_samples = {};  ///< nothing where a sample that cannot be read ends the run
  double final_loss = 0.0;                            ///< NaN, null in the file, where there was no step
  std::optional<EvalResult> eval;
  double training_seconds = 0.0;  ///< of this process, without its first step; not in the file
  double samples_per_s = 0.0;
  double step_ms_p50 = 0.0;
  double wait_data_ms_p50 = 0.0;       ///< of that, waiting for data
  double queue_depth_p50 = 0.0;        ///< batches that were decoded when a step asked for its first
  double time_to_first_step_ms = 0.0;  ///< from the start of the process
  double mpi_init_ms = 0.0;            ///< of that, inside MPI_Init
  std::string weights_digest;          ///< empty, null in the file, where the run failed
  MemoryPeaks memory;
  std::map<std::string, std::uint64_t> lost_output;  ///< lines and records that are not written, by file
  std::string environment;  ///< as JSON: what the bits depend on beside the job; empty: not known
  std::optional<GpuSummary> gpu;
};

nlohmann::ordered_json to_json(const Summary& summary);

/// Whether the summary at `path` is that of a run that was done at this step with these weights.
bool describes(const std::filesystem::path& path, std::uint64_t steps, const std::string& weights_digest);

}  // namespace lockstep::train
