// SPDX-License-Identifier: Apache-2.0
#include "launcher/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace lockstep::launcher {

void open_standard_streams() noexcept {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    // The system gives the lowest number that is free, which is this one. The ranks inherit it.
    if (fcntl(number, F_GETFD) < 0) [[maybe_unused]]
      const int opened = open("/dev/null", O_RDWR);
  }
}

}  // namespace lockstep::launcher
