// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/start_failure.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <array>
#include <span>

namespace lockstep::launcher {

namespace {

/// How a cause reads, and what to say of it; {0} and {1} are the pattern's groups.
struct StartPattern {
  RE2 expression;
  const char* what;
  const char* advice;
};

/// Lines of OpenSSH and of shells: bash, dash, zsh. The first one that is found is the cause.
std::span<const StartPattern> line_patterns() {
  static const StartPattern lines[] = {
      {R"((?m)^ssh: Could not resolve hostname ([^\s:]+):)", "host {0} is unknown: its name has no address",
       "Correct the name in --hosts, or give it an address in DNS or /etc/hosts."},
      {R"((?m)^ssh: connect to host (\S+) port \d+: ([^\r\n]+))", "host {0} takes no ssh connection: {1}",
       "Look whether it runs, and sshd on it: ssh {0} true"},
      {R"((?m)^(\S+): Permission denied \(([^)\r\n]*)\))",
       "ssh to {0} needs a password or a key: permission denied ({1})",
       "Let this user in there with a key: ssh-copy-id {0}"},
      {R"((?m)^No \S+ host key is known for (\S+) and)", "ssh does not know the key of host {0}",
       "Connect to it once by hand and accept its key: ssh {0} true"},
      {R"((?m)^Host key for (\S+) has changed)", "the key of host {0} is not the one that ssh knows",
       "Where the host was set up anew, forget the old key: ssh-keygen -R {0}"},
      {R"((?m)^Host key verification failed)", "ssh does not trust the key of one of the hosts",
       "Connect to each once by hand and accept its key."},
      {R"((?m)^Connection (?:closed|reset) by (\S+))", "{0} has closed ssh's connection",
       "Look at the log of sshd there."},
      {R"((?m)^kex_exchange_identification: ([^\r\n]+))", "one of the hosts has closed ssh's connection: {0}",
       "Look at the log of sshd there."},
      {R"((?m)^(?:\S+: )?(?:(?:line )?\d+: )?(\S*\b(?:orted|prted)): (?:command not found|not found|No such file or directory|Permission denied))",
       "one of the hosts cannot run {0}, Open MPI's daemon",
       "Install the same Open MPI on each host (Debian: openmpi-bin), in the PATH that ssh gives."},
      {R"((?m)^\S+ command not found: (orted|prted))", "one of the hosts cannot run {0}, Open MPI's daemon",
       "Install the same Open MPI on each host (Debian: openmpi-bin), in the PATH that ssh gives."},
      {R"((?m)^(\S*\b(?:orted|prted)): error while loading shared libraries: ([^\s:]+))",
       "{0}, Open MPI's daemon, lacks {1} on one of the hosts", "Install the same Open MPI on each host."},
  };
  return lines;
}

/// mpirun's remarks. The fields of one stand in lines of their own.
std::span<const StartPattern> remark_patterns() {
  static const StartPattern remarks[] = {
      {R"((?s)unable to (?:launch|find) the specified .*?Executable:\s+([^\n]+)\n\s*Node:\s+([^\n]+))",
       "host {1} has no program {0} that it may run", "Each host needs the same build at the same path."},
      {R"((?s)unable to (?:launch|find) the specified .*?Node:\s+([^\n]+)\n\s*Executable:\s+([^\n]+))",
       "host {0} has no program {1} that it may run", "Each host needs the same build at the same path."},
      {R"((?s)unable to launch the specified .*?Working directory:\s+([^\n]+)\n\s*Node:\s+([^\n]+))",
       "host {1} has no folder {0} that ranks may start in", "Start from a folder that each host has."},
      {R"((?s)unable to (?:launch|start) the specified application as it encountered an\s+error:\s.*?Error(?: name)?:\s+([^\n]+)\n\s*Node:\s+([^\n]+))",
       "host {1} could not start a rank: {0}", ""},
      {R"(unable to reliably start one or more daemons)", "its daemon did not start on one of the hosts",
       "Check that ssh reaches each host by its name without a password, and that orted or prted is found there."},
      {R"(daemon has unexpectedly failed after launch)", "its daemon has failed on one of the hosts",
       "Check that each host has the same Open MPI, and a network that leads back to this one: --interface NAME|NET."},
  };
  return remarks;
}

std::optional<StartFailure> found_in(std::string_view text, std::span<const StartPattern> patterns) {
  const re2::StringPiece searched(text.data(), text.size());
  for (const StartPattern& pattern : patterns) {
    std::array<std::string, 2> groups;
    const RE2::Arg first(&groups[0]), second(&groups[1]);
    const RE2::Arg* const arguments[] = {&first, &second};
    if (!RE2::PartialMatchN(searched, pattern.expression, arguments, pattern.expression.NumberOfCapturingGroups()))
      continue;
    return StartFailure{fmt::format(fmt::runtime(pattern.what), groups[0], groups[1]),
                        fmt::format(fmt::runtime(pattern.advice), groups[0], groups[1])};
  }
  return std::nullopt;
}

}  // namespace

bool is_of_a_daemons_start(std::string_view line) { return found_in(line, line_patterns()).has_value(); }

bool is_count_of_failed_starts(std::string_view text) {
  static const RE2 count(R"(\d+ total process(?:es)? failed to start\s*)");
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), count);
}

std::optional<StartFailure> start_failure(std::string_view remarks, std::string_view lines) {
  const std::optional<StartFailure> failure = found_in(remarks, remark_patterns());
  if (!failure) return std::nullopt;
  const std::optional<StartFailure> cause = found_in(lines, line_patterns());
  return cause ? cause : failure;
}

}  // namespace lockstep::launcher
