// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "runtime/base/error.h"

namespace lockstep {

void allow_open_files(std::size_t more, const std::string& what, const std::string& advice) {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  const rlim_t needed = static_cast<rlim_t>(std::distance(begin(open), end(open))) + more;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur == needed && setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw EnvironmentError(
      fmt::format("{} need {} open files, and this process may have {}", what, needed, limit.rlim_cur),
      "Raise the limit (ulimit -n)" + advice);
}

}  // namespace lockstep
