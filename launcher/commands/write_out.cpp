// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/write_out.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "runtime/base/error.h"

namespace lockstep::launcher {

void write_out(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw StorageError("cannot write to stdout: " + std::generic_category().message(errno));
}

}  // namespace lockstep::launcher
