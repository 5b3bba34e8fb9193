// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// A host of "a:4,b:4" and its number of ranks.
struct HostPlaces {
  std::string name;
  int ranks = 1;
};

/// "a:4,b:4"; a host without a number takes one rank. Throws UsageError.
std::vector<HostPlaces> places_on(const std::string& hosts);

/// The number of ranks in all. Throws UsageError.
int ranks_on(const std::string& hosts);
/// The number of ranks that the list puts on this host.
int ranks_here(const std::string& hosts);

/// The hosts, each once, in their order. Throws UsageError.
std::vector<std::string> host_names(const std::string& hosts);

/// Whether the name is that of this machine, with its domain or without, or one of its addresses.
bool is_this_host(const std::string& name);

/// The hosts but for this one, each once; none where there is no list.
std::vector<std::string> other_hosts(const std::string& hosts);

/// Whether rank 0 runs on this host: on the first one of the list, or where there is none.
bool has_rank_zero_here(const std::string& hosts);

}  // namespace lockstep::launcher
