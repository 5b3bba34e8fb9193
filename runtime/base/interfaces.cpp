// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

namespace lockstep {

namespace {

/// The bits of an address of either family.
struct AddressBits {
  int family = AF_INET;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};

  int count() const { return family == AF_INET ? 32 : 128; }
  bool operator==(const AddressBits&) const = default;
};

std::optional<AddressBits> bits_of(const std::string& address) {
  for (const int family : {AF_INET, AF_INET6}) {
    AddressBits bits{.family = family};
    if (inet_pton(family, address.c_str(), bits.bytes.data()) == 1) return bits;
  }
  return std::nullopt;
}

std::string address_text(const AddressBits& bits) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(bits.family, bits.bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

/// The network that the first `prefix` bits name.
AddressBits network_of(AddressBits bits, int prefix) {
  for (int bit = prefix; bit < bits.count(); ++bit) {
    bits.bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> bit % 8));
  }
  return bits;
}

std::optional<AddressBits> bits_of(const sockaddr* address) {
  AddressBits bits;
  if (address == nullptr) return std::nullopt;
  bits.family = address->sa_family;
  if (bits.family == AF_INET) {
    std::memcpy(bits.bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, sizeof(in_addr));
  } else if (bits.family == AF_INET6) {
    std::memcpy(bits.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, sizeof(in6_addr));
  } else {
    return std::nullopt;
  }
  return bits;
}

bool is_of_one_link(const AddressBits& bits) {
  return bits.family == AF_INET6 && bits.bytes[0] == 0xfe && (bits.bytes[1] & 0xc0) == 0x80;
}

int ones_in(const AddressBits& mask) {
  int ones = 0;
  for (const unsigned char byte : mask.bytes) ones += __builtin_popcount(byte);
  return ones;
}

bool is_named_as_internal(std::string_view name) {
  constexpr std::array kNames{"docker", "br-",   "virbr", "veth", "cni",   "cali",   "flannel",
                              "podman", "lxcbr", "lxdbr", "cbr",  "vmnet", "vboxnet"};
  return std::ranges::any_of(kNames, [name](const char* begin) { return name.starts_with(begin); });
}

}  // namespace

std::string Interface::network() const {
  const std::optional<AddressBits> bits = bits_of(address);
  return bits ? address_text(network_of(*bits, prefix)) + "/" + std::to_string(prefix) : "";
}

std::string Interface::str() const {
  return name + " " + address + "/" + std::to_string(prefix) +
         (!up         ? ", down"
          : !has_link ? ", no link"
                      : "") +
         (is_internal ? ", inside this host" : "");
}

std::vector<Interface> interfaces() {
  std::vector<Interface> result;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return result;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const std::optional<AddressBits> bits = bits_of(each->ifa_addr);
    if (!bits || is_of_one_link(*bits)) continue;
    const std::optional<AddressBits> mask = bits_of(each->ifa_netmask);
    const unsigned flags = each->ifa_flags;
    result.push_back({.name = each->ifa_name,
                      .address = address_text(*bits),
                      .prefix = mask ? ones_in(*mask) : bits->count(),
                      .up = (flags & IFF_UP) != 0,
                      .has_link = (flags & IFF_RUNNING) != 0,
                      .is_loopback = (flags & IFF_LOOPBACK) != 0,
                      .is_internal = is_named_as_internal(each->ifa_name)});
  }
  return result;
}

std::vector<Interface> interfaces_of(const std::string& wanted, const std::vector<Interface>& all) {
  std::vector<Interface> result;
  const std::size_t slash = wanted.find('/');
  const std::optional<AddressBits> network = bits_of(wanted.substr(0, slash));
  int prefix = -1;
  if (slash != std::string::npos) {
    const char* const end = wanted.data() + wanted.size();
    const auto [stop, error] = std::from_chars(wanted.data() + slash + 1, end, prefix);
    if (error != std::errc() || stop != end) prefix = -1;
  }
  const bool is_network = network && prefix >= 0 && prefix <= network->count();
  std::ranges::copy_if(all, std::back_inserter(result), [&](const Interface& each) {
    const std::optional<AddressBits> own = bits_of(each.address);
    const bool lies_there = is_network && own && network_of(*own, prefix) == network_of(*network, prefix);
    return each.name == wanted || lies_there;
  });
  return result;
}

std::string list_of(const std::vector<Interface>& all, const std::string& indent) {
  std::string text;
  for (const Interface& each : all) text += (text.empty() ? "" : "\n") + indent + each.str();
  return text;
}

}  // namespace lockstep
