// SPDX-License-Identifier: Apache-2.0
#include "comm/group/seating.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string_view>

#include "comm/group/rank_names.h"
#include "runtime/base/host_name.h"

namespace lockstep::comm {

namespace {

bool on_one_machine(const Seat& a, const Seat& b) { return std::string_view(a.machine) == b.machine; }

int pretended_ranks_per_node() {
  const char* const pretended = std::getenv("LOCKSTEP_RANKS_PER_NODE");
  return pretended == nullptr ? 0 : std::atoi(pretended);
}

std::size_t place_of(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

Seat Seat::of_this_process() {
  Seat seat;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  const std::string machine = boot.empty() ? host_name() : boot;
  std::memcpy(seat.machine, machine.data(), std::min(machine.size(), sizeof seat.machine - 1));
  const std::string host = host_name();
  std::memcpy(seat.host, host.data(), std::min(host.size(), sizeof seat.host - 1));
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) == 0) seat.pid_namespace = status.st_ino;
  seat.process = getpid();
  sched_getaffinity(0, sizeof seat.cores, &seat.cores);
  return seat;
}

Seating::Seating(const std::vector<Seat>& seats) : places_(seats.size()) {
  std::map<std::string_view, std::vector<int>> machines;
  for (std::size_t i = 0; i < seats.size(); ++i) machines[seats[i].machine].push_back(static_cast<int>(i));
  const int ranks_per_node = pretended_ranks_per_node();
  for (const auto& [machine, ranks] : machines) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (const int rank : ranks) CPU_OR(&cores, &cores, &seats[place_of(rank)].cores);
    const int size = static_cast<int>(ranks.size());
    for (int i = 0; i < size; ++i) {
      const int first = ranks_per_node > 0 ? i / ranks_per_node * ranks_per_node : 0;
      places_[place_of(ranks[place_of(i)])] = {seats[place_of(ranks[place_of(i)])], i, size, ranks[place_of(first)],
                                               CPU_COUNT(&cores)};
    }
  }
}

int Seating::machine_rank(int rank) const { return places_[place_of(rank)].machine_rank; }

int Seating::machine_size(int rank) const { return places_[place_of(rank)].machine_size; }

std::map<int, std::string> Seating::names_for(int rank) const {
  const std::string here = places_[place_of(rank)].seat.host;
  std::map<int, std::string> names;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Seat& seat = places_[i].seat;
    names[static_cast<int>(i)] = rank_name(static_cast<int>(i), seat.process, seat.host, here);
  }
  return names;
}

std::map<int, pid_t> Seating::processes_beside(int rank) const {
  const Seat& here = places_[place_of(rank)].seat;
  std::map<int, pid_t> processes;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Seat& seat = places_[i].seat;
    if (!on_one_machine(seat, here) || seat.pid_namespace != here.pid_namespace) continue;
    processes[static_cast<int>(i)] = static_cast<pid_t>(seat.process);
  }
  return processes;
}

Topology Seating::topology_of(const Group& group) const {
  const auto node_of = [&](int i) { return places_[place_of(group.ranks[place_of(i)])].node; };
  Topology topology;
  topology.size = static_cast<int>(group.ranks.size());
  const Place& own = places_[place_of(group.ranks[place_of(group.rank)])];
  topology.spare_cores = own.spare_cores();
  topology.machine_cores = own.machine_cores;
  topology.machine_ranks = own.machine_size;
  std::map<int, int> sizes;
  for (int i = 0; i < topology.size; ++i) {
    ++sizes[node_of(i)];
    if (node_of(i) != node_of(group.rank)) continue;
    if (i < group.rank) ++topology.local_rank;
    topology.local.push_back(i);
  }
  topology.uniform = std::ranges::all_of(sizes, [&](const auto& node) { return node.second == topology.local_size(); });
  return topology;
}

Topology topology_of(Communicator& communicator) {
  const Seat mine = Seat::of_this_process();
  std::vector<Seat> seats;
  for (const std::string& text : communicator.all_gather_text({reinterpret_cast<const char*>(&mine), sizeof mine})) {
    std::memcpy(&seats.emplace_back(), text.data(), std::min(text.size(), sizeof mine));
  }
  Group group{.rank = communicator.rank(), .ranks = std::vector<int>(seats.size())};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return Seating(seats).topology_of(group);
}

}  // namespace lockstep::comm
