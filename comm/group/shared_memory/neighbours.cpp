// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/neighbours.h"

#include <spdlog/spdlog.h>

#include <map>

namespace lockstep::comm {

Neighbours::Neighbours(Transport& world, bool shared_memory)
    : seating_(gather(world, {.kind = OperationKind::kJoin}, Seat::of_this_process())),
      shared_memory_(shared_memory),
      windows_(std::make_shared<SharedWindows>(world.rank())) {
  world.peers().name(seating_.names_for(world.rank()));
  world.peers().watch(seating_.processes_beside(world.rank()));
  publish_states(world);
}

std::shared_ptr<SharedWindow> Neighbours::share(Transport& group, const Topology& topology, std::size_t bytes) {
  if (!shared_memory_ || !topology.uniform || topology.local_size() == 1) return nullptr;
  std::shared_ptr<SharedWindow> window = windows_->allocate(group, topology, bytes);
  const bool tells = group.group().ranks[static_cast<std::size_t>(group.rank())] == 0;
  if (!window && tells && !warned_.exchange(true)) {
    spdlog::warn(
        "the ranks of a node do not share the memory of their gradients, and copy it instead, which is slower: {}",
        windows_->shortage());
  }
  return window;
}

void Neighbours::publish_states(Transport& world) {
  const std::shared_ptr<SharedWindow> window = share(world, seating_.topology_of(world.group()), sizeof(SharedWord));
  if (!window) return;
  std::map<int, SharedWord*> states;
  for (std::size_t i = 0; i < window->parts.size(); ++i) {
    // Zeroed memory means kRunning, so that it may be read before its owner writes.
    states[window->ranks[i]] = reinterpret_cast<SharedWord*>(window->parts[i]);
  }
  world.peers().publish(std::move(states), window);
}

}  // namespace lockstep::comm
