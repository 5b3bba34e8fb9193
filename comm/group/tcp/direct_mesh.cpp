// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/direct_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/group/launcher_variables.h"
#include "comm/group/tcp/direct_door.h"
#include "comm/group/tcp/search.h"

namespace lockstep::comm {

namespace {

using Clock = Socket::Clock;

/// How often a rank that waits for a connection looks whether the other one is lost.
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

constexpr int kMostLanes = 16;

constexpr const char* kDirectAdvice =
    "The hosts of ranks must reach each other, not only rank 0's: see their networks, routes and firewalls. Where few "
    "ports are open, LOCKSTEP_MASTER_PORT and the 16 ports behind it must be. Or start the ranks with mpirun.";

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

/// One rank's part in the making of the connections.
class Connecting {
 public:
  Connecting(TcpMembership& membership, Socket listener, const Group& group, const std::vector<DirectCard>& cards,
             const RunKey& key, const std::string& what)
      : link_(membership.link()),
        key_(key),
        cards_(cards),
        what_(what),
        timeout_(membership.timeout()),
        end_(Clock::now() + timeout_),
        own_(cards[static_cast<std::size_t>(group.rank)].hello),
        lanes_(static_cast<int>(std::ranges::min(cards, {}, &DirectCard::lanes).lanes)),
        door_(std::move(listener), own_, hellos(), lanes_, key_) {
    mesh_.place = group.rank;
    mesh_.ranks = group.ranks;
    for (const DirectCard& card : cards) mesh_.names.push_back(rank_name(card.hello, own_));
    mesh_.sockets.resize(cards.size());
    for (std::size_t place = 0; place < cards.size(); ++place) {
      if (static_cast<int>(place) != mesh_.place) mesh_.sockets[place].resize(static_cast<std::size_t>(lanes_));
    }
  }

  /// Each rank of the job calls those before it and then takes the calls of those behind it, so that no two wait for
  /// each other. Rank 0, which does not know its own address, calls nobody.
  DirectMesh connect() {
    for (int place = 0; place < static_cast<int>(mesh_.ranks.size()); ++place) {
      for (int lane = 0; lane < lanes_ && is_before(place); ++lane) {
        lanes_of(place)[static_cast<std::size_t>(lane)] = call(place, lane);
      }
    }
    while (const std::optional<int> missing = first_missing()) {
      if (std::optional<DirectDoor::Guest> guest = door_.next(next_look())) {
        lanes_of(guest->place)[static_cast<std::size_t>(guest->lane)] = std::move(guest->socket);
      } else if (Clock::now() >= end_) {
        fail(fmt::format("{} has not connected to {}, port {}", name(*missing), rank_name(own_, {}), own_.port));
      } else {
        require_present();
      }
    }
    return std::move(mesh_);
  }

 private:
  std::vector<Hello> hellos() const {
    std::vector<Hello> hellos;
    for (const DirectCard& card : cards_) hellos.push_back(card.hello);
    return hellos;
  }
  bool is_before(int place) const { return mesh_.ranks[static_cast<std::size_t>(place)] < own_.rank; }
  std::vector<Socket>& lanes_of(int place) { return mesh_.sockets[static_cast<std::size_t>(place)]; }
  const std::string& name(int place) const { return mesh_.names[static_cast<std::size_t>(place)]; }
  Clock::time_point next_look() const { return std::min(end_, Clock::now() + kBetweenLooks); }

  std::optional<int> first_missing() {
    for (int place = 0; place < static_cast<int>(mesh_.sockets.size()); ++place) {
      if (place != mesh_.place && !std::ranges::all_of(lanes_of(place), [](const Socket& lane) { return bool(lane); }))
        return place;
    }
    return std::nullopt;
  }

  /// A rank that reaches rank 0 through the loopback interface is on its machine, and is found where rank 0 is.
  std::string address_of(int place) const {
    const std::string told = cards_[static_cast<std::size_t>(place)].address.str();
    return told.empty() || is_loopback(told) ? link_.hub_address() : told;
  }

  Socket call(int place, int lane) {
    const Hello& other = cards_[static_cast<std::size_t>(place)].hello;
    Hello hello = own_;
    hello.lane = lane;
    const std::string address = address_of(place);
    HubSearch search({{address, static_cast<std::uint16_t>(other.port)}}, hello, key_, name(place));
    std::string answer;
    while (true) {
      if (std::optional<HubSearch::Found> found = search.next(next_look())) {
        const Welcome& welcome = found->welcome;
        const bool is_other = welcome.answer == Welcome::Answer::kWelcome && welcome.hub.rank == other.rank &&
                              welcome.hub.process == other.process;
        if (is_other && found->socket.send(&kTaken, 1) == 1) return std::move(found->socket);
        answer = is_other                                      ? ""
                 : welcome.answer == Welcome::Answer::kWelcome ? "another rank answers"
                                                               : welcome.reason.str();
      }
      if (Clock::now() >= end_) {
        const std::string& reason = answer.empty() ? search.reason() : answer;
        fail(fmt::format("{} cannot connect to {} at {}, port {} ({})", rank_name(own_, {}), name(place), address,
                         other.port, reason.empty() ? "no answer" : reason));
      }
      require_present();
    }
  }

  /// Throws where a rank of the channel is lost, which then may never connect.
  void require_present() {
    const std::optional<TcpLink::LostRank> lost = link_.first_lost(Clock::now());
    if (!lost || (lost->rank != 0 && std::ranges::find(mesh_.ranks, lost->rank) == mesh_.ranks.end())) return;
    throw lost->error(what_);
  }

  [[noreturn]] void fail(const std::string& reason) {
    throw PeerError(
        fmt::format("{}: {} within {:.1f} s", what_, reason, std::chrono::duration<double>(timeout_).count()),
        kDirectAdvice);
  }

  TcpLink& link_;
  const RunKey& key_;
  const std::vector<DirectCard>& cards_;
  const std::string& what_;
  std::chrono::milliseconds timeout_;
  Clock::time_point end_;
  Hello own_;
  DirectMesh mesh_;
  int lanes_;
  DirectDoor door_;
};

}  // namespace

int direct_lanes() {
  constexpr const char* kName = "LOCKSTEP_TCP_CONNECTIONS";
  if (!is_set(kName)) return 1;
  const int lanes = integer_in(kName);
  if (lanes >= 1 && lanes <= kMostLanes) return lanes;
  throw UsageError(fmt::format("environment variable {} is {}", kName, lanes),
                   fmt::format("Two ranks have 1 to {} connections.", kMostLanes));
}

DirectCard direct_card(TcpMembership& membership, const Socket& listener, std::int32_t channel) {
  DirectCard card{.hello = membership.hello()};
  card.hello.channel = channel;
  card.hello.port = listener.port();
  card.lanes = direct_lanes();
  const std::string& chosen = membership.rendezvous().own_address;
  card.address = ShortText::of(chosen.empty() ? membership.link().own_address() : chosen);
  return card;
}

DirectMesh connect_ranks(TcpMembership& membership, Socket listener, const Group& group,
                         const std::vector<DirectCard>& cards, const RunKey& key, const std::string& what) {
  allow_connections(direct_lanes() * static_cast<int>(cards.size()), "the direct connections of a channel");
  return Connecting(membership, std::move(listener), group, cards, key, what).connect();
}

}  // namespace lockstep::comm
