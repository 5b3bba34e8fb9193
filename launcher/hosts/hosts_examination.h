// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// What ranks on these hosts need, tried from this one over ssh; on each host this program is the other end. As
/// `lockstep doctor --hosts --json` prints it; null for what is not known:
///
///   {"hosts": [{"host", "answers", "lockstep", "mpi", "clock_ms", "clock_error_ms": this far ahead of this host's
///               clock, give or take, "interfaces": [{"name", "address", "network", "up", "loopback", "internal"}]}],
///    "ways": [{"from", "to", "network": null by the host's name, "address", "connects", "reason", "latency_us",
///              "mbit_per_s", "mtu": one direction of each two hosts is measured}],
///    "networks": [{"network", "hosts": [NAME], "works": between each two of all hosts}],
///    "use": the fastest network that works between all hosts,
///    "findings": [{"missing", "consequence", "advice"}]}
///
/// A host that does not answer within 8 s is named, and the rest goes on. Connections to a port of each address are
/// tried at once, for 2 s; latency and bandwidth between two hosts at a time, 0.3 s each where all is well.
nlohmann::ordered_json examine_hosts(const std::vector<std::string>& hosts);

/// The same, for a person to read.
std::string hosts_text(const nlohmann::ordered_json& examination);

/// "missing: A: what follows. What to do.", a line a finding; empty where there is none.
std::string findings_text(const nlohmann::ordered_json& examination);

}  // namespace lockstep::launcher
