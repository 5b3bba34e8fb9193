// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/examined_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "comm/group/network_choice.h"
#include "launcher/hosts/host_list.h"
#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;
using Clock = Conversation::Clock;

namespace {

constexpr std::chrono::seconds kGreeting{8};
constexpr int kLongestConnecting = 5;
/// Longer than any answer takes: a name that no server knows may take the system half a minute.
constexpr std::chrono::seconds kAnswer{40};
constexpr std::chrono::seconds kLastWord{1};
constexpr int kClockQuestions = 7;
// As ssh and the shell there end.
constexpr int kNoConnection = 255;
constexpr int kNoProgram = 98;

std::vector<std::string> command_on(const std::string& host, const std::string& program, const std::string& folder) {
  if (is_this_host(host)) return {program, "doctor", "--answer", folder};
  std::string there = fmt::format("test -x {0} || exit {1}; exec {0} doctor --answer {2}", shell_word(program),
                                  kNoProgram, shell_word(folder));
  if (const char* const wanted = std::getenv(comm::kInterfaceVariable)) there += " --interface " + shell_word(wanted);
  return {"ssh", "-Txa",
          "-o",  "BatchMode=yes",
          "-o",  "ControlPath=none",
          "-o",  "LogLevel=ERROR",
          "-o",  fmt::format("ConnectTimeout={}", kLongestConnecting),
          "--",  host,
          there};
}

/// Whether an answer has all that answers.h names. Another build may give another one.
bool are_facts(const ExaminedHost::Json& words) {
  const auto has = [](const ExaminedHost::Json& object, const char* name, auto is) {
    return object.contains(name) && (object.at(name).*is)();
  };
  using Json = ExaminedHost::Json;
  const auto is_interface = [&](const Json& each) {
    return each.is_object() &&
           std::ranges::all_of(std::array{"name", "address", "network"},
                               [&](const char* name) { return has(each, name, &Json::is_string); }) &&
           std::ranges::all_of(std::array{"up", "loopback", "internal"},
                               [&](const char* name) { return has(each, name, &Json::is_boolean); });
  };
  return has(words, "lockstep", &Json::is_string) && has(words, "mpi", &Json::is_string) &&
         has(words, "mpi_daemon", &Json::is_boolean) && has(words, "folder", &Json::is_boolean) &&
         has(words, "port", &Json::is_number_unsigned) && has(words, "id", &Json::is_number_unsigned) &&
         has(words, "interfaces", &Json::is_array) && std::ranges::all_of(words.at("interfaces"), is_interface);
}

double milliseconds_of(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

double system_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void ExaminedHost::greet() {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  try {
    conversation_ = std::make_unique<Conversation>(command_on(name_, program, fs::current_path().string()));
  } catch (const Error& error) {
    return lose(error.what(), "Install ssh here (Debian: openssh-client).");
  }
  const auto end = Clock::now() + kGreeting;
  while (const auto words = conversation_->hear(end)) {
    if (!words->contains("lockstep")) continue;
    if (!are_facts(*words)) {
      return lose(fmt::format("the same lockstep on {}: it is version {}", name_, words->at("lockstep").dump()),
                  "Install the same build at the same path on every host.");
    }
    facts_ = *words;
    return;
  }
  explain(program);
}

void ExaminedHost::explain(const std::string& program) {
  const std::optional<int> code = conversation_->exit_code(Clock::now() + kLastWord);
  const std::string words = conversation_->complaint();
  if (!code) {
    return lose(fmt::format("an answer of {} within {} s", name_, kGreeting.count()),
                "See whether it runs, and what ssh does there at each login.");
  }
  if (code == kNoConnection) {
    return lose(
        fmt::format("ssh to {} without a password: {}", name_, words),
        fmt::format("See whether it runs and is called so, and let this user in with a key: ssh-copy-id {}.", name_));
  }
  if (code == kNoProgram) {
    return lose(fmt::format("{} on {}", program, name_), "Install the same build at the same path on every host.");
  }
  lose(fmt::format("the same lockstep on {}: it ended with exit code {}: {}", name_, *code, words),
       "Install the same build at the same path on every host, with the libraries that it needs.");
}

void ExaminedHost::lose(const std::string& missing, const std::string& advice) {
  facts_ = nullptr;
  failure_ = {{"missing", missing}, {"consequence", "no rank can be started on " + name_}, {"advice", advice}};
}

void ExaminedHost::compare_clocks() {
  double least = 0;
  for (int i = 0; i < kClockQuestions && answers(); ++i) {
    const Clock::time_point begin = Clock::now();
    const double before = system_ms();
    const Json words = ask({{"do", "clock"}});
    const double round_trip = milliseconds_of(Clock::now() - begin);
    if (!answers() || (i > 0 && round_trip >= least)) continue;
    least = round_trip;
    clock_ms_ = words.value("us", 0.0) / 1e3 - (before + round_trip / 2);
    clock_error_ms_ = round_trip / 2;
  }
}

void ExaminedHost::give_up(const std::string& why) {
  lose(fmt::format("an answer of {} that can be read: {}", name_, why),
       "Install the same build at the same path on every host.");
}

ExaminedHost::Json ExaminedHost::ask(const Json& words) {
  if (!answers()) return nullptr;
  if (const auto answer = conversation_->ask(words, Clock::now() + kAnswer)) return *answer;
  lose(fmt::format("{}, which stopped answering: {}", name_, conversation_->complaint()),
       "See whether it runs and ssh leads there.");
  return nullptr;
}

}  // namespace lockstep::launcher
