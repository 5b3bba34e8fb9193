// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "launcher/hosts/hosts_examination.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

std::string host_line(const Json& host) {
  const std::string name = host["host"];
  if (host["answers"] == false) return fmt::format("{:<16}does not answer\n", name);
  const double clock = host["clock_ms"];
  std::string text =
      fmt::format("{:<16}lockstep {}, {}, clock {:+.1f} ms, give or take {:.1f}\n", name, host.value("lockstep", ""),
                  host.value("mpi", ""), clock, host["clock_error_ms"].get<double>());
  for (const Json& each : host["interfaces"]) {
    if (each["loopback"] == true) continue;
    text += fmt::format("{:<16}{} {} in {}{}{}\n", "", each.value("name", ""), each.value("address", ""),
                        each.value("network", ""), each["up"] == true ? "" : ", down",
                        each["internal"] == true ? ", inside this host" : "");
  }
  return text;
}

std::string way_line(const Json& way) {
  const std::string by = way["network"].is_null() ? "by name" : "through " + way["network"].get<std::string>();
  const std::string pair = fmt::format("{} to {}", way.value("from", ""), way.value("to", ""));
  if (way["connects"] == false) return fmt::format("{:<16}{}: no connection ({})\n", pair, by, way.value("reason", ""));
  if (way["mbit_per_s"].is_null()) return "";
  return fmt::format("{:<16}{}: {:.0f} Mbit/s, {:.0f} us, MTU {}\n", pair, by, way["mbit_per_s"].get<double>(),
                     way["latency_us"].get<double>(), way["mtu"].get<int>());
}

}  // namespace

std::string hosts_text(const Json& examination) {
  std::string text;
  for (const Json& host : examination["hosts"]) text += host_line(host);
  for (const Json& way : examination["ways"]) text += way_line(way);
  text +=
      fmt::format("{:<16}{}\n", "network to use", examination["use"].is_null() ? "none" : examination.value("use", ""));
  for (const Json& finding : examination["findings"]) {
    text += fmt::format("\nmissing: {}\n  {}\n  → {}\n", finding.value("missing", ""), finding.value("consequence", ""),
                        finding.value("advice", ""));
  }
  return text;
}

std::string findings_text(const Json& examination) {
  std::string text;
  for (const Json& finding : examination["findings"]) {
    text += fmt::format("{}missing: {}: {}. {}", text.empty() ? "" : "\n", finding.value("missing", ""),
                        finding.value("consequence", ""), finding.value("advice", ""));
  }
  return text;
}

}  // namespace lockstep::launcher
