// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/host_list.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/interfaces.h"

namespace lockstep::launcher {

std::vector<HostPlaces> places_on(const std::string& hosts) {
  const auto refuse = [&](const std::string& host, const char* why = "is not a host with a number of ranks") {
    return UsageError("--hosts " + hosts + ": \"" + host + "\" " + why, "Write hosts as in --hosts a:4,b:4.");
  };
  std::vector<HostPlaces> places;
  std::istringstream list(hosts + ",");
  int ranks = 0;
  for (std::string host; std::getline(list, host, ',');) {
    const std::size_t colon = host.find(':');
    int number = 1;
    if (colon != std::string::npos) {
      const char* end = host.data() + host.size();
      const auto [stop, error] = std::from_chars(host.data() + colon + 1, end, number);
      if (error != std::errc() || stop != end || number < 1) throw refuse(host);
    }
    if (host.empty() || colon == 0) throw refuse(host);
    if (number > std::numeric_limits<int>::max() - ranks) throw refuse(host, "makes more ranks than can be counted");
    ranks += number;
    places.push_back({host.substr(0, colon), number});
  }
  return places;
}

int ranks_on(const std::string& hosts) {
  int ranks = 0;
  for (const HostPlaces& host : places_on(hosts)) ranks += host.ranks;
  return ranks;
}

int ranks_here(const std::string& hosts) {
  int ranks = 0;
  for (const HostPlaces& host : places_on(hosts)) ranks += is_this_host(host.name) ? host.ranks : 0;
  return ranks;
}

std::vector<std::string> host_names(const std::string& hosts) {
  std::vector<std::string> names;
  for (const HostPlaces& host : places_on(hosts)) {
    if (std::ranges::find(names, host.name) == names.end()) names.push_back(host.name);
  }
  return names;
}

bool is_this_host(const std::string& name) {
  const std::string here = host_name();
  if (name == here || name == "localhost" || name.starts_with(here + ".") || here.starts_with(name + ".")) return true;
  return std::ranges::any_of(interfaces(), [&name](const Interface& each) { return each.address == name; });
}

std::vector<std::string> other_hosts(const std::string& hosts) {
  std::vector<std::string> names = hosts.empty() ? std::vector<std::string>() : host_names(hosts);
  std::erase_if(names, is_this_host);
  return names;
}

bool has_rank_zero_here(const std::string& hosts) {
  return hosts.empty() || is_this_host(places_on(hosts).front().name);
}

}  // namespace lockstep::launcher
