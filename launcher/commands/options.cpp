// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/options.h"

#include "launcher/supervisor/launch_options.h"

namespace lockstep::launcher {

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

}  // namespace lockstep::launcher
