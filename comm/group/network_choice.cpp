// SPDX-License-Identifier: Apache-2.0
#include "comm/group/network_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"

namespace lockstep::comm {

namespace {

int speed_in_system(const Interface& interface) {
  int speed = 0;
  std::ifstream("/sys/class/net/" + interface.name + "/speed") >> speed;
  return speed;
}

}  // namespace

std::vector<Interface> chosen_interfaces() {
  const char* const wanted = std::getenv(kInterfaceVariable);
  if (wanted == nullptr) return {};
  const std::vector<Interface> all = interfaces();
  std::vector<Interface> chosen = interfaces_of(wanted, all);
  if (!chosen.empty()) return chosen;
  throw UsageError(fmt::format("there is no interface and no network \"{}\" on {}, which has\n{}", wanted, host_name(),
                               list_of(all, "  ")),
                   "Give --interface, or LOCKSTEP_INTERFACE, an interface's name or a network that every host has.");
}

std::string chosen_address() {
  const std::vector<Interface> chosen = chosen_interfaces();
  return chosen.empty() ? "" : chosen.front().address;
}

std::vector<std::string> addresses_of_this_host() {
  const std::string chosen = chosen_address();
  if (!chosen.empty()) return {chosen};
  return addresses_of(interfaces(), speed_in_system);
}

std::vector<std::string> addresses_of(std::vector<Interface> ways,
                                      const std::function<int(const Interface&)>& speed_of) {
  std::erase_if(ways, [](const Interface& each) { return each.is_loopback || !each.up || !each.has_link; });
  std::ranges::stable_sort(ways, {},
                           [&](const Interface& each) { return std::pair(each.is_internal, -speed_of(each)); });
  std::vector<std::string> addresses;
  for (const Interface& each : ways) addresses.push_back(each.address);
  return addresses;
}

void apply_network_choice() {
  std::vector<std::string> names;
  for (const Interface& each : chosen_interfaces()) {
    if (std::ranges::find(names, each.name) == names.end()) names.push_back(each.name);
  }
  if (names.empty()) return;
  const std::string list = fmt::format("{}", fmt::join(names, ","));
  setenv("OMPI_MCA_btl_tcp_if_include", list.c_str(), 1);
  // Open MPI refuses to be told both.
  unsetenv("OMPI_MCA_btl_tcp_if_exclude");
  // Without the sign of equality NCCL takes every interface whose name begins so.
  setenv("NCCL_SOCKET_IFNAME", ("=" + list).c_str(), 1);
}

std::string networks_of_this_host() {
  std::vector<Interface> leading_out = interfaces();
  std::erase_if(leading_out, [](const Interface& each) { return each.is_loopback; });
  return fmt::format("The networks of {} are\n{}", host_name(), list_of(leading_out, "  "));
}

}  // namespace lockstep::comm
