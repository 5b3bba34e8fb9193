// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/mpirun.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "launcher/supervisor/openmp_settings.h"
#include "runtime/base/cores.h"
#include "runtime/base/error.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

constexpr const char* kInstall =
    "Install it (Debian: apt-get install openmpi-bin), start the ranks with torchrun --nproc-per-node, or train with "
    "one rank.";

/// The ranks that the fullest host gets.
int ranks_a_host(int ranks, const std::string& hosts) {
  if (hosts.empty()) return ranks;
  std::istringstream list(hosts);
  int most = 1;
  for (std::string host; std::getline(list, host, ',');) most = std::max(most, ranks_on(host));
  return most;
}

/// Half of the time that Open MPI takes to start goes into loading what one machine has no use for: network transports,
/// other launchers, and hwloc's plug-ins for displays and PCI devices. Nor must a batch system's allocation spread
/// ranks over other machines. From version 5 on, mpirun's own variables begin with PRTE_MCA_; it takes those of version
/// 4 for the ranks' and ignores them.
const std::map<std::string, std::string> kOneMachine{
    {"OMPI_MCA_ras", "^slurm,gridengine,tm,lsf"},
    {"OMPI_MCA_plm", "isolated"},
    {"PRTE_MCA_ras", "^slurm,gridengine,pbs,lsf"},
    {"PRTE_MCA_plm", "^slurm,pals,lsf"},
    {"OMPI_MCA_pml", "ob1"},
    {"OMPI_MCA_btl", "self,vader"},
    {"OMPI_MCA_osc", "sm"},
    // The others are tried out with files of /dev/shm, which outlive a rank that is killed meanwhile.
    {"OMPI_MCA_shmem", "mmap"},
    {"HWLOC_PLUGINS_BLACKLIST", "hwloc_gl.so,hwloc_opencl.so,hwloc_pci.so,hwloc_xml_libxml.so"},
};

/// In the child: becomes mpirun, or says through `failure` why not.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int messages, int failure,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  // Out of the terminal's process group, reading from it would stop mpirun.
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof error);
  _exit(1);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  return result;
}

/// Those of this program and of NCCL, which mpirun does not hand on to other machines by itself.
std::map<std::string, std::string> settings_of_the_user() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("LOCKSTEP_") && !text.starts_with("NCCL_")) continue;
    const std::size_t end = text.find('=');
    result.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return result;
}

/// The two ends of a pipe, which close when another program starts.
struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw EnvironmentError("cannot make a pipe: " + std::generic_category().message(errno));
    }
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }

  Descriptor reading;
  Descriptor writing;
};

Descriptor without_blocking(Descriptor end) {
  fcntl(end.get(), F_SETFL, O_NONBLOCK);
  return end;
}

}  // namespace

std::optional<fs::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

fs::path find_mpirun() {
  if (const auto found = find_program("mpirun")) return *found;
  throw EnvironmentError("there is no mpirun in PATH, which starts the ranks", kInstall);
}

int ranks_on(const std::string& hosts) {
  const auto refuse = [&](const std::string& host, const char* why = "is not a host with a number of ranks") {
    return UsageError("--hosts " + hosts + ": \"" + host + "\" " + why, "Write hosts as in --hosts a:4,b:4.");
  };
  std::istringstream list(hosts + ",");
  int ranks = 0;
  for (std::string host; std::getline(list, host, ',');) {
    const std::size_t colon = host.find(':');
    int number = 1;
    if (colon != std::string::npos) {
      const char* end = host.data() + host.size();
      const auto [stop, error] = std::from_chars(host.data() + colon + 1, end, number);
      if (error != std::errc() || stop != end || number < 1) throw refuse(host);
    }
    if (host.empty() || colon == 0) throw refuse(host);
    if (number > std::numeric_limits<int>::max() - ranks) throw refuse(host, "makes more ranks than can be counted");
    ranks += number;
  }
  return ranks;
}

MpirunCommand mpirun_command(int ranks, const std::string& hosts, const std::vector<std::string>& rank_arguments,
                             std::map<std::string, std::string> variables) {
  MpirunCommand command;
  command.arguments = {find_mpirun().string(), "-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) command.arguments.push_back("--allow-run-as-root");
  if (hosts.empty()) {
    for (const auto& [name, value] : kOneMachine) {
      if (std::getenv(name.c_str()) == nullptr) command.environment[name] = value;
    }
  } else {
    command.arguments.insert(command.arguments.end(), {"--host", hosts});
    variables.merge(settings_of_the_user());
  }
  // A rank that is to end is not asked first: what it had to save is saved by then. Open MPI 5 asks in any case.
  variables.emplace("OMPI_MCA_odls_base_sigkill_timeout", "0");
  variables.merge(openmp_settings(usable_cores() / ranks_a_host(ranks, hosts)));
  for (const auto& [name, value] : variables) {
    command.arguments.insert(command.arguments.end(), {"-x", name});
    command.environment[name] = value;
  }
  command.arguments.push_back(fs::read_symlink("/proc/self/exe").string());
  command.arguments.insert(command.arguments.end(), rank_arguments.begin(), rank_arguments.end());
  return command;
}

MpirunProcess::MpirunProcess(const MpirunCommand& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.environment);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  Pipe output, messages, failure;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    become(argument_pointers.data(), environment_pointers.data(), output.writing.get(), messages.writing.get(),
           failure.writing.get(), parent);
  }
  int error = pid_ < 0 ? errno : 0;
  failure.writing.reset();
  // Nothing comes where mpirun has started: its end of the pipe is closed by then.
  [[maybe_unused]] const ssize_t bytes = read(failure.reading.get(), &error, sizeof error);
  if (error != 0) {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    throw EnvironmentError("cannot start " + arguments[0] + ": " + std::generic_category().message(error), kInstall);
  }
  output_ = without_blocking(std::move(output.reading));
  messages_ = without_blocking(std::move(messages.reading));
}

MpirunProcess::~MpirunProcess() {
  if (!ended()) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void MpirunProcess::signal(int number) const {
  if (!status_) signal_child(pid_, number);
}

void MpirunProcess::watch_children() {
  if (status_) return;
  // The system may not tell: there are none then.
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", pid_));
  for (pid_t child = 0; list >> child;) {
    const auto is_known = [child](const ProcessWatch& known) { return known.pid() == child && !known.gone(); };
    if (std::ranges::none_of(children_, is_known)) children_.emplace_back(child);
  }
}

void MpirunProcess::kill_with_children() {
  watch_children();
  signal(SIGKILL);
  for (const ProcessWatch& child : children_) child.signal(SIGKILL);
}

bool MpirunProcess::stopped() const {
  const std::optional<ProcessFacts> facts = status_ ? std::nullopt : process_facts(pid_);
  return facts && (facts->state == 'T' || facts->state == 't');
}

bool MpirunProcess::ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

int MpirunProcess::exit_code() const {
  const int status = status_.value();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool MpirunProcess::was_killed() const { return WIFSIGNALED(status_.value()); }

}  // namespace lockstep::launcher
