// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "launcher/commands/commands.h"
#include "launcher/commands/job_plan.h"
#include "launcher/commands/new_file.h"
#include "launcher/commands/run_directory.h"
#include "launcher/commands/write_out.h"
#include "launcher/deploy/deployment.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/base/error.h"
#include "runtime/base/program_name.h"
#include "runtime/base/shell_word.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/train/plan.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

struct LaunchCommand {
  std::string target;
  JobOptions job;
  std::string run_dir, out, name, interface;
  int nodes = 0, ranks = 0, gpus = 0, cpus = 0;  ///< 0: not given
  double hours = 0;
  bool plain = false;
  std::string image, claim, folder;

  bool uses_containers() const { return target != "slurm"; }
};

/// Throws UsageError for an option that the target has no use for, or lacks.
void require_fitting(const LaunchCommand& command) {
  struct Rule {
    const char* option;
    bool given;
    std::string_view targets;
  };
  for (const Rule& rule :
       std::initializer_list<Rule>{{"--nodes", command.nodes > 0, "slurm and kubernetes"},
                                   {"--hours", command.hours > 0, "slurm and kubernetes"},
                                   {"--plain", command.plain, "slurm and kubernetes"},
                                   {"--interface", !command.interface.empty(), "slurm and kubernetes"},
                                   {"--image", !command.image.empty(), "kubernetes and compose"},
                                   {"--folder", !command.folder.empty(), "kubernetes and compose"},
                                   {"--claim", !command.claim.empty(), "kubernetes"}}) {
    if (!rule.given || rule.targets.find(command.target) != std::string_view::npos) continue;
    throw UsageError(fmt::format("{} is for {}, and not for {}", rule.option, rule.targets, command.target),
                     "Leave it away.");
  }
  if (command.uses_containers() && command.image.empty()) {
    throw UsageError(command.target + " needs --image",
                     "Name the image with the command: docs/packages.md says how to build one.");
  }
  if (command.target == "kubernetes" && command.claim.empty()) {
    throw UsageError("kubernetes needs --claim",
                     "Name the PersistentVolumeClaim that holds job and data, and takes the run.");
  }
  if (!command.name.empty() && !is_label(command.name)) {
    throw UsageError("--name " + command.name + " is no name that Kubernetes takes",
                     "Write at most 40 lower-case letters, digits and -, a letter first and no - last.");
  }
}

std::string absolute_path(const fs::path& path) { return fs::absolute(path).lexically_normal().string(); }

/// Throws UsageError where the job reads files, or the run writes them, outside of the folder that containers see.
void require_inside(const std::string& folder, const std::string& file, const fs::path& run, const job::Job& job) {
  job::Job inside;
  inside.set_name(folder.ends_with('/') ? folder : folder + "/");
  // As values are written, between quotes.
  std::string prefix = job::values_of(inside).at("name");
  prefix.pop_back();
  std::map<std::string, std::string> paths = job::values_of(job);
  for (const auto& [what, path] : {std::pair{"the job", file}, std::pair{"--run-dir", absolute_path(run)}}) {
    inside.set_name(path);
    paths[what] = job::values_of(inside).at("name");
  }
  for (const auto& [what, path] : paths) {
    // Paths of a job are absolute by now. What is as short is a separator.
    if (!path.starts_with("\"/") || path.size() <= 3 || path.starts_with(prefix)) continue;
    throw UsageError(
        fmt::format("{}: {} lies outside of the folder {}, which is all that containers see", what, path, folder),
        "Choose a --folder that holds job, data and run.");
  }
}

/// The job as `lockstep validate` checks it, on the ranks that it will have.
job::Job sound_job(const LaunchCommand& command, int nodes, int ranks) {
  const job::Checked checked = job::load_checked(command.job.job, command.job.overrides);
  LaunchOptions launch;
  launch.nproc = ranks * nodes;
  // Of the memory of other machines nothing is known here.
  if (command.target != "compose") launch.hosts = fmt::format("nodes:{}", launch.nproc);
  const train::Plan plan = plan_of(checked, launch, run_directory(command.run_dir, checked.job), true);
  train::print_warnings(plan);
  train::require_sound(plan);
  return checked.job;
}

Deployment deployment_of(const LaunchCommand& command) {
  Deployment deployment;
  deployment.nodes = std::max(command.nodes, 1);
  deployment.gpus = command.gpus;
  deployment.ranks = std::max({command.ranks, command.gpus, 1});
  deployment.cpus = command.cpus;
  deployment.minutes = static_cast<int>(std::ceil(command.hours * 60));
  deployment.plain = command.plain;
  const job::Job job = sound_job(command, deployment.nodes, deployment.ranks);
  deployment.name = command.name.empty() ? label_of(job.name()) : command.name;
  deployment.program = program_name();
  const std::string file = absolute_path(command.job.job);
  const fs::path run = run_directory(command.run_dir, job);
  deployment.image = command.image;
  deployment.claim = command.claim;
  deployment.folder = absolute_path(command.folder.empty() ? fs::current_path() : fs::path(command.folder));
  if (command.uses_containers()) require_inside(deployment.folder, file, run, job);
  // The pod of an MPIJob that starts the ranks has no GPU.
  const bool is_mpi_job = command.target == "kubernetes" && !command.plain;
  const char* const device = deployment.gpus == 0 ? "cpu" : is_mpi_job ? "auto" : "cuda";
  deployment.train = {"train", file};
  for (const std::string& assignment : command.job.overrides) {
    deployment.train.insert(deployment.train.end(), {"--set", assignment});
  }
  deployment.train.insert(deployment.train.end(), {"--run-dir", absolute_path(run), "--device", device});
  if (!command.interface.empty()) {
    deployment.train.insert(deployment.train.end(), {"--interface", command.interface});
  }
  return deployment;
}

std::string text_of(const LaunchCommand& command) {
  const Deployment deployment = deployment_of(command);
  if (command.target == "slurm") return slurm_script(deployment);
  if (command.target == "compose") return compose_file(deployment);
  return command.plain ? kubernetes_indexed_job(deployment) : kubernetes_mpi_job(deployment);
}

/// The command that takes the file.
std::string next_command(const LaunchCommand& command) {
  const std::string file = shell_word(command.out);
  if (command.target == "slurm") return "sbatch " + file;
  if (command.target == "compose") return "docker compose -f " + file + " up";
  return "kubectl apply -f " + file;
}

ExitCode run(const LaunchCommand& command) {
  require_fitting(command);
  if (!command.out.empty()) require_new_file(command.out);
  const std::string text = text_of(command);
  if (command.out.empty()) {
    write_out(text);
    return ExitCode::kDone;
  }
  write_new_file(command.out, text);
  write_out("written   " + command.out + "\nnext      " + next_command(command) + "\n");
  return ExitCode::kDone;
}

void add_places(CLI::App& launch, LaunchCommand& command) {
  launch.add_option("--nodes", command.nodes, "on how many hosts; default: 1")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16));
  CLI::Option* const ranks = launch.add_option("--ranks-per-node", command.ranks, "ranks of a host; default: 1")
                                 ->type_name("N")
                                 ->check(CLI::Range(1, 1 << 10));
  launch.add_option("--gpus-per-node", command.gpus, "GPUs of a host, a rank on each; default: ranks use the CPU")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 10))
      ->excludes(ranks);
  launch.add_option("--cpus-per-rank", command.cpus, "cores of a rank; default: what the target gives it")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 10));
  launch.add_option("--hours", command.hours, "after which it is ended; default: 24 of slurm, else no limit")
      ->type_name("H")
      ->check(CLI::Range(0.1, 10'000.0));
}

void add_containers(CLI::App& launch, LaunchCommand& command) {
  launch.add_option("--image", command.image, "the image with the command")->type_name("NAME")->check(not_empty());
  launch
      .add_option("--folder", command.folder,
                  "what containers see, at the same path: job, data and run; default: the current folder")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  launch.add_option("--claim", command.claim, "the PersistentVolumeClaim that holds the folder's files")
      ->type_name("NAME")
      ->check(not_empty());
}

}  // namespace

void add_launch(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<LaunchCommand>();
  CLI::App& launch = *app.add_subcommand("launch", "write the file with which another system starts a job");
  launch.add_option("TARGET", command->target, "what starts it")
      ->required()
      ->check(CLI::IsMember({"slurm", "kubernetes", "compose"}));
  command->job.add_to(launch);
  add_run_dir(launch, command->run_dir);
  launch.add_option("--out", command->out, "the file, which must not exist yet; default: stdout")
      ->type_name("FILE")
      ->check(not_empty());
  launch.add_option("--name", command->name, "what it is called there; default: the job's name")
      ->type_name("NAME")
      ->check(not_empty());
  add_places(launch, *command);
  launch.add_flag("--plain", command->plain,
                  "ranks join over TCP, without MPI; on kubernetes without its MPI operator");
  launch
      .add_option("--interface", command->interface, "the network between ranks: an interface, as eth0, or 10.0.0.0/24")
      ->type_name("NAME|NET")
      ->check(not_empty());
  add_containers(launch, *command);
  launch.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
