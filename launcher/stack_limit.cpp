// SPDX-License-Identifier: Apache-2.0
#include "launcher/stack_limit.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::launcher {

namespace {

/// Training on the CPU was seen to need between 64 and 128 KiB.
constexpr rlim_t kLeastStack = rlim_t{256} << 10;
/// Where there is so much, nothing is changed.
constexpr rlim_t kEnoughStack = rlim_t{1} << 20;
constexpr rlim_t kUsualStack = rlim_t{8} << 20;

bool set_stack(rlim_t bytes, rlim_t most) {
  const rlimit limit{bytes, most};
  return setrlimit(RLIMIT_STACK, &limit) == 0;
}

}  // namespace

void require_stack() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kEnoughStack) return;
  // Only a privileged process may raise the upper limit.
  rlim_t stack = kUsualStack;
  if (!set_stack(stack, std::max(limit.rlim_max, stack))) {
    stack = std::min(limit.rlim_max, kUsualStack);
    if (stack < kLeastStack || !set_stack(stack, limit.rlim_max)) {
      throw EnvironmentError(
          fmt::format("the stack may have {} KiB, and a run needs {}", limit.rlim_cur >> 10, kLeastStack >> 10),
          "Raise the limit (ulimit -s 8192).");
    }
  }
  // Threads have the limit that there was when the program was started.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace lockstep::launcher
