// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string_view>

#include "runtime/base/descriptor.h"

// Writing to a stream that came with the process, as stdout does, without waiting for whoever reads it: a stopped
// terminal, a log collector that hangs.

namespace lockstep {

/// An open file description of its own, with O_NONBLOCK, of the terminal or pipe behind `number`: on the one that came
/// with the process, O_NONBLOCK would hold for every process that shares it. None where the system refuses, and for
/// anything else: a regular file's offset and O_APPEND have to stay shared.
Descriptor reopen_nonblocking(int number) noexcept;

/// Writes a first part of `bytes` where `descriptor` takes any now. Returns how many bytes; -1 with errno else, EAGAIN
/// where none were taken. Waits for a slow disk, and may wait for a terminal whose description lacks O_NONBLOCK.
/// Async-signal-safe.
ssize_t write_promptly(int descriptor, std::string_view bytes) noexcept;

}  // namespace lockstep
