// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// A network interface of this machine with one of its addresses.
struct Interface {
  std::string name;     ///< "eth0"
  std::string address;  ///< "10.0.0.7", "fd00::7"
  int prefix = 0;       ///< the leading bits of the address that name its network
  bool up = false;      ///< it is switched on
  bool has_link = false;
  bool is_loopback = false;
  /// Its name is one that container engines and hypervisors give to a network inside a host. Several hosts often have
  /// the same addresses on theirs, and none reaches another one through it.
  bool is_internal = false;

  /// "10.0.0.0/24"
  std::string network() const;
  /// "eth0 10.0.0.7/24", with ", down", ", no link" or ", inside this host" behind it.
  std::string str() const;
};

/// Those of this machine that have an address, in the system's order. IPv6 addresses of a single link are left out.
std::vector<Interface> interfaces();

/// Those of `all` that are called `wanted` or whose address lies in the network `wanted`: "10.0.0.0/24".
std::vector<Interface> interfaces_of(const std::string& wanted, const std::vector<Interface>& all);

/// "eth0 10.0.0.7/24, docker0 172.17.0.1/16, inside this host": one a line, each behind `indent`.
std::string list_of(const std::vector<Interface>& all, const std::string& indent);

}  // namespace lockstep
