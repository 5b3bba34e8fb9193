// SPDX-License-Identifier: Apache-2.0
#include "launcher/options.h"

#include "runtime/tensor/gpu.h"

namespace lockstep::launcher {

const CLI::Validator& not_empty() {
  static const CLI::Validator kNotEmpty(
      [](const std::string& value) { return value.empty() ? std::string("has an empty value") : std::string(); }, "");
  return kNotEmpty;
}

void add_checkpoint(CLI::App& command, std::string& checkpoint) {
  command
      .add_option("--checkpoint", checkpoint,
                  "a checkpoint, or a run directory for its newest one; default: runs/<the job's name>")
      ->type_name("PATH")
      ->check(not_empty());
}

void add_raw_weights(CLI::App& command, bool& raw_weights) {
  command.add_flag("--raw-weights", raw_weights,
                   "the weights of the last step, also where the checkpoint has a running mean of them (train.ema)");
}

void add_run_dir(CLI::App& command, std::string& run_dir) {
  command.add_option("--run-dir", run_dir, "where the run's files go; default: runs/<the job's name>")
      ->type_name("DIR")
      ->check(not_empty());
}

CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  // One value each time: a following JOB must not be taken for another assignment.
  return command.add_option("--set", overrides, "override a field of the job, for example train.steps=100")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

void JobOptions::add_to(CLI::App& command) {
  command.add_option("JOB", job, "the job, a *.pbtxt file")->required();
  add_overrides(command, overrides);
}

std::vector<std::string> JobOptions::arguments() const {
  std::vector<std::string> arguments{job};
  for (const std::string& assignment : overrides) arguments.insert(arguments.end(), {"--set", assignment});
  return arguments;
}

void LaunchOptions::add_to(CLI::App& command, bool restarts) {
  command.add_option("--nproc", nproc, "start this many ranks, here or on --hosts")->check(CLI::Range(1, 1 << 20));
  command.add_option("--hosts", hosts, "the hosts to start ranks on, each with a number of ranks")
      ->type_name("A:4,B:4")
      ->check(not_empty());
  command.add_option("--device", device, "what to compute on")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  if (!restarts) return;
  command.add_option("--max-restarts", max_restarts, "start again up to this often when a rank is lost")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

void LaunchOptions::require_device() const {
  if (device != "cuda" || gpu::device_count() > 0) return;
  throw EnvironmentError("--device cuda: " + gpu::why_none(), "Use --device cpu; lockstep doctor says more.");
}

Device LaunchOptions::device_of(int local_rank) const {
  const int devices = device == "cpu" ? 0 : gpu::device_count();
  return devices == 0 ? kCpu : Device{DeviceType::kCuda, local_rank % devices};
}

}  // namespace lockstep::launcher
