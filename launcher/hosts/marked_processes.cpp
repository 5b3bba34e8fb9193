// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/marked_processes.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "launcher/hosts/examined_host.h"
#include "runtime/base/error.h"
#include "runtime/base/process.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

/// "lockstep-HOST-PID-TIME", the time in nanoseconds since 1970.
constexpr std::size_t kShortestMark = 24;

void kill_marked(const std::string& mark) {
  // An empty one would be in every command line.
  if (mark.size() < kShortestMark) throw UsageError("the mark of processes to kill, \"" + mark + "\", is too short");
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    pid_t pid = 0;
    std::from_chars(number.data(), number.data() + number.size(), pid);
    if (pid <= 1 || pid == getpid()) continue;
    // First: a process that has its number later is not meant.
    const ProcessWatch process(pid);
    std::ostringstream command;
    command << std::ifstream(entry.path() / "cmdline").rdbuf();
    if (command.str().find(mark) != std::string::npos) process.signal(SIGKILL);
  }
}

void kill_marked_on(const std::vector<std::string>& hosts, const std::string& mark) {
  std::vector<std::jthread> threads;
  for (const std::string& name : hosts) {
    threads.emplace_back([name, &mark] {
      ExaminedHost host(name);
      try {
        host.greet();
        host.ask({{"do", "kill"}, {"mark", mark}});
      } catch (const std::exception& error) {
        spdlog::warn("what is left on host {} could not be ended: {}", name, error.what());
      }
    });
  }
}

}  // namespace lockstep::launcher
