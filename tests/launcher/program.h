// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/process.h"
#include "tests/support/folder.h"

namespace lockstep::launcher {

inline std::string read_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// What a program that has ended leaves.
struct Ended {
  int code = 0;  ///< as a shell gives it
  std::string out;
  std::string err;
};

/// A program that runs in a directory of its own.
class Program {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  Program(std::vector<std::string> arguments, const std::filesystem::path& folder, const Variables& variables = {})
      : out_(folder / "stdout"), err_(folder / "stderr") {
    pid_ = fork();
    if (pid_ != 0) return;
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    redirect(out_, STDOUT_FILENO);
    redirect(err_, STDERR_FILENO);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (chdir(folder.c_str()) == 0) execvp(pointers[0], pointers.data());
    _exit(127);
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { signal_child(pid_, number); }
  /// Whether it has asked for this signal, or holds it back until it is wanted.
  bool catches(int number) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    const auto has = [](unsigned long long mask, int signal) { return (mask >> (signal - 1) & 1) != 0; };
    bool found = false;
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigCgt:") && !line.starts_with("SigBlk:")) continue;
      const unsigned long long mask = std::stoull(line.substr(7), nullptr, 16);
      // While the C library makes a thread, as libraries that MPI loads have it do, it holds back all there are.
      found = found || (has(mask, number) && !has(mask, SIGQUIT));
    }
    return found;
  }
  Ended wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(out_), read_text(err_)};
  }

 private:
  static void redirect(const std::filesystem::path& path, int descriptor) {
    dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), descriptor);
  }

  std::filesystem::path out_, err_;
  pid_t pid_;
};

/// Runs `lockstep arguments...` to its end.
inline Ended lockstep_command(std::vector<std::string> arguments, const Folder& folder,
                              const Program::Variables& variables = {}) {
  arguments.insert(arguments.begin(), LOCKSTEP_BINARY);
  return Program(std::move(arguments), folder.path(), variables).wait();
}

inline const std::string kMlpJob = LOCKSTEP_SOURCE_DIR "/configs/digits_mlp.pbtxt";
inline const std::string kConvnetJob = LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt";

/// What a program has on its stderr beside warnings: tests train few steps, on ranks that share few cores.
inline std::string without_warnings(const std::string& err) {
  std::string rest;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("lockstep: warning: ")) rest.append(line).append("\n");
  }
  return rest;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace lockstep::launcher
