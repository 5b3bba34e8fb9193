// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

#include "runtime/base/descriptor.h"

// Streams that a test reads when it likes, or never.

namespace lockstep::support {

/// What is written to `in` is read from `out`.
struct Stream {
  Descriptor out;
  Descriptor in;
};

/// A pipe; of so many bytes where the system has such.
inline Stream make_pipe(int bytes = 4096) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  fcntl(ends[1], F_SETPIPE_SZ, bytes);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// A terminal, by its window's end and the program's. It passes bytes on as they are.
inline Stream make_terminal() {
  int window = -1, terminal = -1;
  if (openpty(&window, &terminal, nullptr, nullptr, nullptr) != 0) throw std::runtime_error("no terminal");
  termios raw{};
  tcgetattr(terminal, &raw);
  cfmakeraw(&raw);
  tcsetattr(terminal, TCSANOW, &raw);
  return {Descriptor(window), Descriptor(terminal)};
}

/// Whether the open file description is; every process that shares it sees it.
inline bool is_nonblocking(int descriptor) { return (fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0; }

/// What can be read now.
inline std::string read_now(const Descriptor& out) {
  fcntl(out.get(), F_SETFL, fcntl(out.get(), F_GETFL) | O_NONBLOCK);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(out.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// While it lives, stderr leads to another file.
class RedirectedStderr {
 public:
  explicit RedirectedStderr(const Descriptor& to) : before_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    dup2(to.get(), STDERR_FILENO);
  }
  ~RedirectedStderr() { dup2(before_.get(), STDERR_FILENO); }
  RedirectedStderr(const RedirectedStderr&) = delete;
  RedirectedStderr& operator=(const RedirectedStderr&) = delete;

 private:
  Descriptor before_;
};

}  // namespace lockstep::support
