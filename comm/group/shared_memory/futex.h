// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lockstep::comm {

/// A word in memory that several processes share; futex_wait() sleeps in the kernel until it changes.
using SharedWord = std::atomic<std::uint32_t>;
static_assert(SharedWord::is_always_lock_free);

/// Sleeps while `word` is `value`, at most for `timeout`; may also return early.
void futex_wait(const SharedWord& word, std::uint32_t value, std::chrono::milliseconds timeout);
/// Wakes every process that sleeps on `word`.
void futex_wake_all(const SharedWord& word);
/// A hint to the core that the thread spins.
void spin_pause();

}  // namespace lockstep::comm
