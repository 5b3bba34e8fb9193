// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/trained_options.h"

#include <fmt/format.h>

#include <filesystem>

#include "launcher/commands/run_directory.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/base/error.h"
#include "runtime/job/data_options.h"
#include "runtime/train/infer/trained_run.h"

namespace lockstep::launcher {

void TrainedOptions::add_to(CLI::App& command) {
  command
      .add_option("RUN", job.job,
                  "a run directory, a checkpoint or a bundle, FILE.lockstep; or the job, a *.pbtxt file")
      ->required();
  add_overrides(command, job.overrides);
  CLI::Option* const chosen =
      command
          .add_option("--checkpoint", checkpoint,
                      "with a job: a checkpoint, or a run directory for its newest one; default: runs/<the job's name>")
          ->type_name("PATH")
          ->check(not_empty());
  command.add_flag("--latest", latest, "the run's newest weights, also where it keeps its best ones (checkpoint.best)")
      ->excludes(chosen);
  command.add_flag("--raw-weights", raw_weights,
                   "the weights of the last step, also where the checkpoint has a running mean of them (train.ema)");
}

void require_data(const Trained& trained, data::Split split) {
  // Checking a job has found its data.
  if (!trained.saved.preparation) return;
  const data::DataOptions options = job::data_options(trained.checked.job.data());
  const bool own = split == data::Split::kEval && options.eval;
  const data::DatasetOptions& chosen = own ? *options.eval : options.train;
  for (const data::NamedFile& file : data::files_of(chosen)) {
    if (std::filesystem::exists(file.path)) continue;
    throw StorageError("the run's data are not where they were: there is no " + file.path,
                       fmt::format("Evaluate others with --set data.eval.{}.{}=PATH, or predict files without targets: "
                                   "lockstep infer RUN --input PATH.",
                                   data::kind_of(chosen), file.field));
  }
}

const Trained& TrainedOptions::open() {
  if (!opened_) opened_ = opened();
  return *opened_;
}

Trained TrainedOptions::opened() const {
  if (!std::filesystem::exists(job.job)) {
    throw StorageError("there is no run, bundle or job at " + job.job,
                       "Name a run's directory, a checkpoint, a bundle, FILE.lockstep, or a job, FILE.pbtxt.");
  }
  if (!train::is_run(job.job)) {
    if (latest) throw UsageError("--latest is for a run; " + job.job + " is a job", "Name the run's directory.");
    Trained trained{.checked = job::load_checked(job.job, job.overrides), .saved = {}};
    trained.saved = {.checkpoint = found_run_directory(checkpoint, trained.checked.job, job.job),
                     .raw_weights = raw_weights};
    return trained;
  }
  if (!checkpoint.empty()) {
    throw UsageError("--checkpoint is for a job; " + job.job + " is a run", "Name the checkpoint in the run's place.");
  }
  train::TrainedRun run = train::open_run(job.job, latest, job.overrides);
  run.saved.raw_weights = raw_weights;
  Trained trained{.checked = std::move(run.checked), .saved = std::move(run.saved)};
  if (run.best) trained.note = ", the best by " + trained.checked.job.checkpoint().best() + " (--latest: the newest)";
  return trained;
}

std::vector<std::string> TrainedOptions::arguments() const {
  std::vector<std::string> arguments = job.arguments();
  if (!checkpoint.empty()) arguments.insert(arguments.end(), {"--checkpoint", checkpoint});
  if (latest) arguments.push_back("--latest");
  if (raw_weights) arguments.push_back("--raw-weights");
  return arguments;
}

}  // namespace lockstep::launcher
