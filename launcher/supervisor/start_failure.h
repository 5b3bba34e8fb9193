// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::launcher {

/// The cause for which mpirun has started no rank.
struct StartFailure {
  std::string what;  ///< "host b is unknown: its name has no address"; one line
  std::string advice;
};

/// Whether ssh, or the shell that it starts on a host, prints this line where mpirun's daemon does not start there.
bool is_of_a_daemons_start(std::string_view line);

/// Whether this is Open MPI 4.1's count of ranks that it could not start, which it prints on stdout.
bool is_count_of_failed_starts(std::string_view text);

/// The cause that these words of an mpirun tell, Open MPI 4.1 or 5: its remarks, and lines for which
/// is_of_a_daemons_start() holds. Nothing where no remark says that a start has failed.
std::optional<StartFailure> start_failure(std::string_view remarks, std::string_view lines);

}  // namespace lockstep::launcher
