// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "launcher/deploy/deployment.h"
#include "runtime/base/shell_word.h"

namespace lockstep::launcher {

namespace {

constexpr const char* kHead = R"(#!/usr/bin/env bash
# A training that Slurm may stop and start again. {0} is in PATH on every host; job, data and run lie at the same paths.
#   sbatch [OPTION...] FILE     an option there counts more than the same one here
#SBATCH --job-name={1}
#SBATCH --nodes={2}
#SBATCH --ntasks-per-node={3}
)";

constexpr const char* kBody = R"(#SBATCH --time={0}:{1:02}:00
# Slurm starts the job again where a host is lost, and lets this script ask for it.
#SBATCH --requeue
# To every rank, so many seconds before the time is over: they save and end with 75. A preempted one gets SIGTERM.
#SBATCH --signal=USR1@{2}
# Each start goes on in the same file.
#SBATCH --open-mode=append

# {3} The ranks end together by themselves, and say why first. srun takes no --cpus-per-task from sbatch.
srun --mpi={4} --kill-on-bad-exit=0 ${{SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}} \
  {5}
code=$?

case $code in
  75 | 138 | 143) again=1 ;;                              # saved on a signal, or had not begun when it came
  7 | 137) again=$((${{SLURM_RESTART_COUNT:-0}} < {6})) ;;   # a rank was lost: one that always is needs a look
  *) again=0 ;;
esac
[ $again -eq 0 ] || scontrol requeue "$SLURM_JOB_ID"
exit $code
)";

constexpr int kMinutesOfADay = 24 * 60;

/// The command as the shell reads it, an option a line.
std::string shell_command(const Deployment& deployment) {
  std::string command = shell_word(deployment.program);
  for (const std::string& word : deployment.train) {
    command += (word.starts_with("--") ? " \\\n  " : " ") + shell_word(word);
  }
  return command;
}

}  // namespace

std::string slurm_script(const Deployment& deployment) {
  std::string script = fmt::format(kHead, deployment.program, deployment.name, deployment.nodes, deployment.ranks);
  if (deployment.cpus > 0) script += fmt::format("#SBATCH --cpus-per-task={}\n", deployment.cpus);
  // Every rank sees all GPUs of its host and takes the one of its number there: GPUs reach each other directly.
  if (deployment.gpus > 0) script += fmt::format("#SBATCH --gpus-per-node={}\n", deployment.gpus);
  const int minutes = deployment.minutes > 0 ? deployment.minutes : kMinutesOfADay;
  return script + fmt::format(kBody, minutes / 60, minutes % 60, kSecondsToSave,
                              deployment.plain ? "Ranks join over TCP." : "Ranks are started with PMIx.",
                              deployment.plain ? "none" : "pmix", shell_command(deployment), kRestarts);
}

}  // namespace lockstep::launcher
