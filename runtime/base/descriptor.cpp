// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/descriptor.h"

#include <cerrno>

namespace lockstep {

void Descriptor::reset(int number) noexcept {
  const int old = std::exchange(number_, number);
  if (old < 0) return;
  const int error = errno;
  // Not repeated where a signal interrupts it: Linux has closed the descriptor all the same.
  ::close(old);
  errno = error;
}

}  // namespace lockstep
