// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/supervisor/launch_options.h"
#include "runtime/job/job.h"
#include "runtime/train/dry_run.h"
#include "runtime/train/plan.h"

namespace lockstep::launcher {

/// The plan of `lockstep train` with these options. `reads_weights`: as in PlanOptions.
train::Plan plan_of(const job::Checked& job, const LaunchOptions& launch, const std::filesystem::path& run_dir,
                    bool reads_weights = false);

/// A plan without errors as `lockstep validate --json` prints it: {"ranks", "model", "parameters", "opt_level",
/// "dtype", "train": {"samples", "sample_shape", "classes" or "target_shape", "more_inputs" where a sample has
/// several}, "eval" (null where there is none), "global_batch", "steps", "steps_per_epoch", "epochs", "eval_every",
/// "memory": bytes a rank by what takes them, "checkpoints": {"count", "bytes" of each, "every_steps", "keep",
/// "directory"}}.
nlohmann::ordered_json to_json(const train::Plan& plan, const job::Job& job, int ranks);

/// The plan as text for a person.
std::string plan_text(const nlohmann::ordered_json& plan);

/// {"peak", "activations", "gradients_of_activations": bytes, "step_ms"}
nlohmann::ordered_json to_json(const train::DryRun& measured);
std::string measured_text(const nlohmann::ordered_json& measured);

}  // namespace lockstep::launcher
