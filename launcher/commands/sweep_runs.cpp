// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/sweep_runs.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <optional>
#include <system_error>

#include "runtime/base/descriptor.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/process.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/history/run_record.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

/// The cores and the GPU of one run at a time.
struct Slot {
  cpu_set_t cores{};
  int count = 0;
  std::string gpu;  ///< for CUDA_VISIBLE_DEVICES; empty: as it is
  pid_t pid = 0;    ///< 0: free
  const Trial* trial = nullptr;
};

std::vector<int> cores_of_this_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

/// Devices as CUDA_VISIBLE_DEVICES names them.
std::vector<std::string> gpus_of_this_process(const std::string& device) {
  std::vector<std::string> gpus;
  if (device == "cpu") return gpus;
  const char* given = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string list = given == nullptr ? "" : given;
  for (int i = 0; i < gpu::device_count(); ++i) {
    const std::size_t comma = list.find(',');
    gpus.push_back(given == nullptr ? std::to_string(i) : list.substr(0, comma));
    list.erase(0, comma == std::string::npos ? comma : comma + 1);
  }
  return gpus;
}

std::vector<Slot> slots_of(const SweepRuns& sweep) {
  std::vector<Slot> slots(static_cast<std::size_t>(sweep.jobs));
  const std::vector<int> cores = cores_of_this_process();
  const std::vector<std::string> gpus = gpus_of_this_process(sweep.device);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    CPU_ZERO(&slots[i].cores);
    if (!gpus.empty()) slots[i].gpu = gpus[i % gpus.size()];
    // More runs than cores share them in turn.
    const std::size_t share = std::max<std::size_t>(cores.size() / slots.size(), 1);
    for (std::size_t c = 0; c < share && !cores.empty(); ++c) {
      CPU_SET(cores[(i * share + c) % cores.size()], &slots[i].cores);
      ++slots[i].count;
    }
  }
  return slots;
}

std::vector<std::string> command_of(const SweepRuns& sweep, const Trial& trial, std::optional<std::uint64_t> until) {
  std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(), "train", sweep.job};
  for (const std::string& setting : sweep.overrides) command.insert(command.end(), {"--set", setting});
  for (const std::string& setting : trial.settings) command.insert(command.end(), {"--set", setting});
  command.insert(command.end(), {"--run-dir", directory_of(sweep, trial).string(), "--device", sweep.device});
  if (until) command.insert(command.end(), {"--until", std::to_string(*until)});
  return command;
}

/// In the child, between fork and exec: calls that are safe there alone.
[[noreturn]] void become(const Slot& slot, char* const* command, int log, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  // Ctrl-C is for the sweep, which hands it on once; and no run goes on without it.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(static_cast<int>(ExitCode::kPreempted));
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  // Out of the terminal's process group, reading from it would stop it.
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (slot.count > 0) sched_setaffinity(0, sizeof slot.cores, &slot.cores);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(command[0], command);
  _exit(127);
}

void start(const SweepRuns& sweep, Slot& slot, const Trial& trial, std::optional<std::uint64_t> until) {
  make_directories(sweep.folder.string());
  const std::string path = directory_of(sweep, trial).string() + ".log";
  const Descriptor log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) throw StorageError("cannot make " + path + ": " + std::generic_category().message(errno));
  std::vector<std::string> command = command_of(sweep, trial, until);
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  if (!slot.gpu.empty()) setenv("CUDA_VISIBLE_DEVICES", slot.gpu.c_str(), 1);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw EnvironmentError("cannot start a run: " + std::generic_category().message(errno));
  if (pid == 0) become(slot, pointers.data(), log.get(), parent);
  slot.pid = pid;
  slot.trial = &trial;
}

/// The exit code as a shell gives it; none while the run goes on.
std::optional<int> end_of(Slot& slot) {
  int status = 0;
  if (slot.pid == 0 || waitpid(slot.pid, &status, WNOHANG) != slot.pid) return std::nullopt;
  slot.pid = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

fs::path directory_of(const SweepRuns& sweep, const Trial& trial) { return sweep.folder / trial.name; }

bool went_wrong(const train::RunRecord& run) {
  return run.status == train::RunStatus::kFailed && run.exit_code == static_cast<int>(ExitCode::kNumerics);
}

bool has_ended(const fs::path& run) {
  std::error_code hidden;
  if (!fs::exists(run, hidden)) return false;
  const train::RunRecord record = train::read_run(run);
  return record.status == train::RunStatus::kDone || went_wrong(record);
}

ExitCode train_trials(const SweepRuns& sweep, const std::vector<Trial>& trials, std::optional<std::uint64_t> until,
                      const SignalInbox& inbox, const std::function<void(const Trial&, int)>& on_end) {
  std::vector<Slot> slots = slots_of(sweep);
  std::deque<const Trial*> waiting;
  for (const Trial& trial : trials) waiting.push_back(&trial);
  ExitCode code = ExitCode::kDone;
  bool stopping = false;
  for (;;) {
    for (Slot& slot : slots) {
      if (const std::optional<int> ended = end_of(slot)) {
        on_end(*slot.trial, *ended);
        const bool came_there = until && *ended == static_cast<int>(ExitCode::kPreempted);
        const bool counts = *ended != 0 && *ended != static_cast<int>(ExitCode::kNumerics) && !came_there;
        if (counts && code == ExitCode::kDone) code = static_cast<ExitCode>(*ended);
      }
      if (slot.pid != 0 || stopping || waiting.empty()) continue;
      start(sweep, slot, *waiting.front(), until);
      waiting.pop_front();
    }
    if (std::ranges::all_of(slots, [](const Slot& slot) { return slot.pid == 0; })) break;
    pollfd wake{.fd = inbox.descriptor(), .events = POLLIN, .revents = 0};
    poll(&wake, 1, -1);
    for (int number = inbox.take(); number != 0; number = inbox.take()) {
      if (number != SIGTERM && number != SIGINT && number != SIGHUP) continue;
      stopping = true;
      for (const Slot& slot : slots) {
        if (slot.pid != 0) signal_child(slot.pid, SIGTERM);
      }
    }
  }
  return stopping ? ExitCode::kPreempted : code;
}

}  // namespace lockstep::launcher
