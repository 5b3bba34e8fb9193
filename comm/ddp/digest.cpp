// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/digest.h"

#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "comm/group/holders.h"
#include "comm/group/rank_names.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"

namespace lockstep::comm {

namespace {

std::span<const std::byte> bytes_of(const Tensor& host) {
  return {static_cast<const std::byte*>(host.data()), host.bytes()};
}

/// Half of the hash: enough to tell ranks apart.
std::int64_t hash_of(const Tensor& tensor) {
  Hash128 hash;
  hash.update(bytes_of(tensor.to(kCpu)));
  return static_cast<std::int64_t>(hash.high64());
}

}  // namespace

std::string weights_digest(const nn::Arena& arena) {
  std::map<std::string, const nn::Arena::Slot*> by_name;
  for (const nn::Arena::Slot& slot : arena.slots()) by_name[slot.parameter.name] = &slot;
  Hash128 hash;
  for (const auto& [name, slot] : by_name) {
    const Tensor master = arena.master(*slot).to(kCpu);
    hash.update(std::string_view(name.c_str(), name.size() + 1));
    hash.update(bytes_of(master));
  }
  return hash.hex();
}

void require_equal_weights(const nn::Arena& arena, const std::vector<std::pair<std::string, Tensor>>& state,
                           Communicator& communicator,
                           const std::vector<std::pair<std::string, Tensor>>& parameter_state) {
  std::vector<std::string> names;
  std::vector<std::int64_t> hashes;
  const auto add = [&](std::string name, const Tensor& tensor) {
    names.push_back(std::move(name));
    hashes.push_back(hash_of(tensor));
  };
  std::int64_t number = 0;
  for (const nn::Arena::Slot& slot : arena.slots()) {
    add(slot.parameter.name, arena.master(slot));
    for (const auto& [name, tensor] : state) {
      add(slot.parameter.name + " (" + name + ")", tensor.rows(slot.begin, slot.end));
    }
    for (const auto& [name, tensor] : parameter_state) {
      add(slot.parameter.name + " (" + name + ")", tensor.rows(number, number + 1));
    }
    ++number;
  }
  for (const auto& [name, statistics] : arena.statistics()) add(name, statistics->committed());

  const auto count = static_cast<std::int64_t>(hashes.size());
  const Tensor mine = Tensor::from(hashes, {count});
  const Tensor all = Tensor::empty({communicator.size(), count}, DType::kInt64);
  communicator.all_gather(mine, all, Stream::calling_thread());
  const auto hash = [&](int rank, std::size_t i) {
    return all.as<std::int64_t>()[static_cast<std::size_t>(rank * count) + i];
  };
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    std::vector<std::int64_t> of_ranks;
    for (int rank = 0; rank < communicator.size(); ++rank) of_ranks.push_back(hash(rank, i));
    const Holders holders = holders_of(of_ranks);
    if (holders.agree()) continue;
    if (!holders.has_majority()) {
      throw PeerError("the ranks no longer hold the same " + names[i] + ": no value of it has most of the " +
                          std::to_string(communicator.size()) + " ranks, so which of them is wrong cannot be told",
                      "Resume from the last checkpoint; if it happens again, suspect the memory of the machines. Three "
                      "ranks can tell which one differs.");
    }
    throw PeerError("the ranks no longer hold the same " + names[i] + ": " + rank_names(holders.odd()) +
                        " differs from " + rank_names(holders.groups.front()),
                    "Resume from the last checkpoint; if it happens again, suspect the memory of that rank's machine.");
  }
}

}  // namespace lockstep::comm
