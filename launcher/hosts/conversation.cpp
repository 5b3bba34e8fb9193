// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/conversation.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <system_error>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/process.h"

namespace lockstep::launcher {

namespace {

using std::chrono::milliseconds;

/// More than this without the end of a line is no answer.
constexpr std::size_t kLongestAnswer = std::size_t{1} << 20;
constexpr std::size_t kMostComplaints = 1000;
constexpr milliseconds kBetweenWaits{5};

/// A pair of sockets: to write to one whose other end is closed raises no signal where that is asked for.
struct Ends {
  Ends() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw EnvironmentError("cannot talk to a process: " + std::generic_category().message(errno));
    }
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  Descriptor ours;
  Descriptor theirs;
};

/// The child takes all signals, whatever this thread holds back.
struct SpawnAttributes {
  SpawnAttributes() {
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  posix_spawnattr_t attributes{};
};

int milliseconds_until(Conversation::Clock::time_point end) {
  const auto left = std::chrono::ceil<milliseconds>(end - Conversation::Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

Conversation::Conversation(const std::vector<std::string>& command) {
  Ends input, output, errors;
  const SpawnAttributes spawning;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.theirs.get(), STDERR_FILENO);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&pid_, arguments[0], &actions, &spawning.attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw EnvironmentError("cannot start " + command[0] + ": " + std::generic_category().message(error));
  }
  to_ = std::move(input.ours);
  from_ = std::move(output.ours);
  errors_ = std::move(errors.ours);
  for (const Descriptor* end : {&to_, &from_, &errors_}) fcntl(end->get(), F_SETFL, O_NONBLOCK);
}

Conversation::~Conversation() {
  to_.reset();
  if (exit_code(Clock::now())) return;
  signal_child(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Conversation::say(const Json& words) {
  const std::string line = words.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // Questions are short beside the socket's buffer; to one that has ended, nothing can be said.
  [[maybe_unused]] const ssize_t written = send(to_.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

std::optional<Conversation::Json> Conversation::hear(Clock::time_point end) {
  do {
    for (std::size_t stop = 0; (stop = heard_.find('\n')) != std::string::npos;) {
      const std::string line = heard_.substr(0, stop);
      heard_.erase(0, stop + 1);
      Json words = Json::parse(line, nullptr, false);
      if (words.is_object()) return words;
    }
  } while (heard_.size() < kLongestAnswer && read_more(end));
  return std::nullopt;
}

std::optional<Conversation::Json> Conversation::ask(const Json& words, Clock::time_point end) {
  say(words);
  return hear(end);
}

bool Conversation::read_more(Clock::time_point end) {
  std::array<pollfd, 2> watched{{{from_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
  if (poll(watched.data(), watched.size(), milliseconds_until(end)) <= 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t complained = read(errors_.get(), buffer.data(), buffer.size());
  if (complained == 0) errors_.reset();
  if (complained > 0) complaints_.append(buffer.data(), static_cast<std::size_t>(complained));
  if (complaints_.size() > kMostComplaints) complaints_.erase(0, complaints_.size() - kMostComplaints);
  const ssize_t count = read(from_.get(), buffer.data(), buffer.size());
  if (count > 0) heard_.append(buffer.data(), static_cast<std::size_t>(count));
  return count != 0;
}

std::optional<int> Conversation::exit_code(Clock::time_point end) {
  while (!status_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (Clock::now() >= end) {
      break;
    } else {
      std::this_thread::sleep_for(kBetweenWaits);
    }
  }
  return status_;
}

std::string Conversation::complaint() {
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = read(errors_.get(), buffer.data(), buffer.size())) > 0;) {
    complaints_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  std::istringstream words(complaints_);
  std::string text;
  for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  return printable(text);
}

}  // namespace lockstep::launcher
