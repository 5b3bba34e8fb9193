// SPDX-License-Identifier: Apache-2.0
#include "comm/group/slurm_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "comm/group/launcher_variables.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

int slurm_step_size() { return integer_in("SLURM_STEP_NUM_TASKS", integer_in("SLURM_NTASKS", 1)); }

int slurm_local_size() {
  // "4(x2),3" for 4, 4, 3.
  const char* text = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  std::string_view rest = text == nullptr ? "" : text;
  int nodes_before = integer_in("SLURM_NODEID", 0);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string group(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const std::size_t times = group.find("(x");
    nodes_before -= times == std::string::npos ? 1 : std::atoi(group.c_str() + times + 2);
    if (nodes_before < 0) return std::atoi(group.c_str());
  }
  return 1;
}

bool slurm_starts_mpi() { return is_set("PMIX_RANK"); }

std::string first_host_of(std::string_view hosts) {
  std::string first;
  std::string_view rest = hosts;
  // Plain text up to a comma, and any number of brackets in it, of which the first number counts.
  for (;;) {
    const std::size_t plain = std::min(rest.find_first_of(",[]"), rest.size());
    first += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty() || rest.front() != '[') break;
    const std::size_t number = rest.find_first_of("-,]", 1);
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos || number == 1) break;
    first += rest.substr(1, number - 1);
    rest.remove_prefix(end + 1);
  }
  if (!first.empty() && (rest.empty() || rest.front() == ',')) return first;
  throw UsageError(fmt::format("environment variable SLURM_STEP_NODELIST is \"{}\", where srun puts a list of hosts "
                               "such as n[1-3,7],m02",
                               hosts),
                   "Name rank 0's host in MASTER_ADDR, the same on every rank.");
}

}  // namespace lockstep::comm
