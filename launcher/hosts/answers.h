// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::launcher {

/// The other end of an examination of hosts: `lockstep doctor --answer FOLDER`, which ssh starts on each of them.
/// Prints the facts of this host, {"lockstep", "mpi", "mpi_daemon", "folder", "host", "interfaces": [{"name",
/// "address", "network", "up", "loopback", "internal"}], "port", "id"}, and then answers on stdout what stdin asks, a
/// line of JSON each, until that ends:
///
///   {"do": "clock"}                                        {"us"}: of the system's clock
///   {"do": "reach", "targets": [{"address", "port", "id"}]}  {"reasons": [TEXT]}: why not; all are tried at once
///   {"do": "kill", "mark": TEXT}                           {}: marked_processes.h
///   {"do": "measure", "address", "port", "id"}             {"reason", "latency_us", "mbit_per_s", "mtu"}
///
/// Ends after ten minutes without a question.
void answer_about_this_host(const std::string& folder);

}  // namespace lockstep::launcher
