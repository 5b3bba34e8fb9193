// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/openmp_settings.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "runtime/kernels/cpu/threads.h"

namespace lockstep::launcher {

namespace {

constexpr const char* kThreads = "OMP_NUM_THREADS";
constexpr const char* kPolicy = "OMP_WAIT_POLICY";
constexpr const char* kSpins = "GOMP_SPINCOUNT";

/// How often a thread looks before it sleeps: for tens of microseconds, which bridges the gaps between operations. The
/// 300,000 of GCC's library last as long as a time slice, which on a busy machine the awaited thread would need.
constexpr const char* kFewSpins = "1000";

/// This process's command line.
std::vector<std::string> arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> result;
  for (std::string argument; std::getline(file, argument, '\0');) result.push_back(argument);
  return result;
}

/// Returns only where it fails.
void start_anew() {
  std::error_code failed;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::vector<std::string> texts = arguments();
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  spdlog::warn("cannot start {} anew ({}): {}=1 in the environment makes it as fast on a busy machine", program,
               std::strerror(errno), kThreads);
}

}  // namespace

std::map<std::string, std::string> openmp_settings_of_the_user() {
  std::map<std::string, std::string> settings;
  for (const char* name : {kThreads, kPolicy, kSpins}) {
    if (const char* value = std::getenv(name)) settings.emplace(name, value);
  }
  return settings;
}

std::map<std::string, std::string> openmp_settings(int cores) {
  std::map<std::string, std::string> settings = openmp_settings_of_the_user();
  settings.emplace(kThreads, std::to_string(std::max(1, cores)));
  if (!settings.contains(kPolicy)) settings.emplace(kSpins, kFewSpins);
  return settings;
}

void settle_openmp(int cores) {
  const std::map<std::string, std::string> settings = openmp_settings(cores);
  // One thread waits for nobody.
  if (settings.at(kThreads) == "1" && kernels::cpu::threads() == 1) return;
  bool complete = true;
  for (const auto& [name, value] : settings) {
    complete = complete && std::getenv(name.c_str()) != nullptr;
    setenv(name.c_str(), value.c_str(), 1);
  }
  if (!complete) start_anew();
}

}  // namespace lockstep::launcher
