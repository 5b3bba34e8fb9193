// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

namespace lockstep::support {

/// What the ranks of a test tell each other without what is tested: datagrams between processes that one launcher has
/// started on this machine. A rank's mailbox exists from its construction on and is gone with the process.
class Mailbox {
 public:
  explicit Mailbox(int rank) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un own = address(rank);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) error_ = errno;
  }
  ~Mailbox() { ::close(socket_); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Leaves a number in the mailbox of `rank`, which exists.
  void tell(int rank, std::int64_t number) const {
    const sockaddr_un to = address(rank);
    if (::sendto(socket_, &number, sizeof number, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0)
      fail(errno);
  }
  /// The next number in this mailbox. The time limit is not for tests to meet: a watchdog is around them.
  std::int64_t hear() const {
    if (error_ != 0) fail(error_);
    pollfd message{socket_, POLLIN, 0};
    std::int64_t number = 0;
    if (::poll(&message, 1, kMilliseconds) != 1) throw std::runtime_error("mailbox: nobody has written");
    if (::recv(socket_, &number, sizeof number, 0) != sizeof number) fail(errno);
    return number;
  }

 private:
  static constexpr int kMilliseconds = 60'000;

  [[noreturn]] static void fail(int error) {
    throw std::runtime_error("mailbox: " + std::generic_category().message(error));
  }
  /// Without a file: the name begins with a zero, and the launcher's process id tells tests apart.
  static sockaddr_un address(int rank) {
    sockaddr_un result{};
    result.sun_family = AF_UNIX;
    std::snprintf(result.sun_path + 1, sizeof result.sun_path - 1, "lockstep-test-%d-%d", ::getppid(), rank);
    return result;
  }

  int socket_;
  int error_ = 0;  ///< why others cannot write here, which matters where they are to
};

}  // namespace lockstep::support
