// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/prompt_write.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

namespace lockstep {

Descriptor reopen_nonblocking(int number) noexcept {
  constexpr int kHow = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  struct stat status {};
  if (fstat(number, &status) != 0) return {};
  const bool is_terminal = isatty(number) == 1;
  if (!is_terminal && !S_ISFIFO(status.st_mode)) return {};
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", number);
  Descriptor own(open(path.data(), kHow));
  // The terminal of another user, as su leaves it, opens by the name that every process has for its own.
  if (!own && is_terminal && tcgetsid(number) == getsid(0)) own.reset(open("/dev/tty", kHow));
  return own;
}

ssize_t write_promptly(int descriptor, std::string_view bytes) noexcept {
  // So much a pipe takes without waiting where poll() calls it ready, with O_NONBLOCK or not.
  const std::size_t count = std::min(bytes.size(), std::size_t{PIPE_BUF});
  const ssize_t sent = send(descriptor, bytes.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  // A pipe may have room behind what it holds though poll() does not call it ready.
  const bool waits = (fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0;
  pollfd watched{descriptor, POLLOUT, 0};
  if (!waits || poll(&watched, 1, 0) > 0) return write(descriptor, bytes.data(), count);
  errno = EAGAIN;
  return -1;
}

}  // namespace lockstep
