// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace lockstep::comm {

void futex_wait(const SharedWord& word, std::uint32_t value, std::chrono::milliseconds timeout) {
  const timespec limit{timeout.count() / 1000, timeout.count() % 1000 * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void futex_wake_all(const SharedWord& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace lockstep::comm
