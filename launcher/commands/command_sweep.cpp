// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/halving.h"
#include "launcher/commands/runs_listing.h"
#include "launcher/commands/sweep_runs.h"
#include "launcher/commands/sweep_stages.h"
#include "launcher/commands/sweep_trials.h"
#include "launcher/commands/write_out.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/base/program_name.h"
#include "runtime/base/shell_word.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/train/history/run_record.h"

namespace lockstep::launcher {

namespace {

struct SweepCommand {
  JobOptions job;
  SweepSpace space;
  Halving halving;
  SweepRuns runs;
  std::string folder;
};

/// The jobs of the trials. Wrong settings are an error before anything is trained.
std::vector<job::Job> checked_jobs(const SweepCommand& command, const std::vector<Trial>& trials) {
  std::vector<job::Job> jobs;
  for (const Trial& trial : trials) {
    std::vector<std::string> overrides = command.job.overrides;
    overrides.insert(overrides.end(), trial.settings.begin(), trial.settings.end());
    jobs.push_back(job::load_checked(command.job.job, overrides).job);
  }
  return jobs;
}

/// Throws UsageError where the folder holds the trial's run of another job: its result is not this sweep's.
void require_same_job(const std::filesystem::path& run, job::Job job) {
  const train::RunRecord record = train::read_run(run);
  if (!record.job) return;
  // A run saves the steps that its epochs were.
  if (job.train().length_case() == job::Train::kEpochs) job.mutable_train()->set_steps(record.job->train().steps());
  const std::vector<job::Difference> found = job::differences(*record.job, job);
  if (found.empty()) return;
  throw UsageError(fmt::format("{} was trained by another job: {} is {} there, and {} here", run.string(),
                               found.front().path, found.front().before, found.front().after),
                   "Choose another --folder, or remove that run.");
}

ExitCode run(const SweepCommand& command) {
  const std::vector<Trial> trials = trials_of(command.space);
  SweepRuns runs = command.runs;
  runs.job = command.job.job;
  runs.overrides = command.job.overrides;
  const std::vector<job::Job> jobs = checked_jobs(command, trials);
  const std::vector<std::uint64_t> rungs = require_rungs(command.halving, jobs);
  runs.folder = command.folder.empty() ? "runs/" + jobs.front().name() + "-sweep" : command.folder;
  for (std::size_t i = 0; i < trials.size(); ++i) require_same_job(directory_of(runs, trials[i]), jobs[i]);
  std::size_t ended = 0;
  for (const Trial& trial : trials) ended += has_ended(directory_of(runs, trial)) ? 1 : 0;
  write_out(fmt::format("{} runs in {}, {} of them ended before, {} at a time\n", trials.size(), runs.folder.string(),
                        ended, runs.jobs));
  if (!rungs.empty()) {
    write_out(fmt::format("one of {} goes on by {} at step{} {}\n", command.halving.factor, command.halving.metric,
                          rungs.size() == 1 ? "" : "s", fmt::join(rungs, ", ")));
  }
  const ExitCode code = train_all(runs, command.halving, rungs, trials);
  RunsListing listing = list_runs(runs.folder);
  if (!command.halving.metric.empty()) compare_by(listing, command.halving.metric);
  sort_runs(listing, "best");
  const std::string folder = shell_word(runs.folder.string());
  write_out("\n" + listing_text(listing, width_of_stdout()) + "\nnext       " +
            (code == ExitCode::kPreempted ? "run the same command to resume" : program_name() + " report " + folder) +
            "\n");
  return code;
}

}  // namespace

void add_sweep(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<SweepCommand>();
  CLI::App& sweep = *app.add_subcommand("sweep", "train a job with many settings, several runs at a time");
  command->job.add_to(sweep);
  sweep.add_option("--grid", command->space.grid, "values of a setting, of which every combination is trained")
      ->type_name("PATH=A,B")
      ->allow_extra_args(false);
  CLI::Option* const random =
      sweep
          .add_option("--random", command->space.random,
                      "a setting that is drawn: log:LOW:HIGH, uniform:LOW:HIGH, int:LOW:HIGH or choice:A,B")
          ->type_name("PATH=KIND:RANGE")
          ->allow_extra_args(false);
  sweep.add_option("--draws", command->space.draws, "how often it is drawn, for each point of the grid")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}))
      ->capture_default_str()
      ->needs(random);
  sweep.add_option("--seed", command->space.seed, "of the draws")->capture_default_str()->needs(random);
  CLI::Option* const halving = sweep
                                   .add_option("--halving", command->halving.metric,
                                               "successive halving: at rungs of steps the best runs go on by a metric "
                                               "of the evaluation, for example eval.accuracy; the others stop")
                                   ->type_name("METRIC")
                                   ->check(not_empty());
  CLI::Option* const first = sweep.add_option("--first-steps", command->halving.first_steps, "steps of the first rung")
                                 ->type_name("N")
                                 ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0xffffffff}))
                                 ->needs(halving);
  halving->needs(first);
  sweep
      .add_option("--factor", command->halving.factor,
                  "each rung has so many times the steps of the one before, and one of so many runs goes on")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{2}, std::uint64_t{1000}))
      ->capture_default_str()
      ->needs(halving);
  sweep.add_option("--jobs", command->runs.jobs, "how many runs train at a time, each on cores or a GPU of its own")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sweep.add_option("--folder", command->folder, "where the runs go; default: runs/<the job's name>-sweep")
      ->type_name("FOLDER");
  sweep.add_option("--device", command->runs.device, "what each run trains on")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  sweep.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
