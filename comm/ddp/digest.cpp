// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/digest.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>

#include "comm/group/rank_names.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

std::uint64_t hash_of(const Tensor& tensor) {
  const Tensor host = tensor.to(kCpu);
  return XXH3_64bits(host.data(), host.bytes());
}

}  // namespace

std::string weights_digest(const nn::Arena& arena) {
  std::map<std::string, const nn::Arena::Slot*> by_name;
  for (const nn::Arena::Slot& slot : arena.slots()) by_name[slot.parameter.name] = &slot;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const auto& [name, slot] : by_name) {
    const Tensor master = arena.master(*slot).to(kCpu);
    XXH3_128bits_update(state.get(), name.c_str(), name.size() + 1);
    XXH3_128bits_update(state.get(), master.data(), master.bytes());
  }
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state.get()));
  std::string hex;
  for (const unsigned char byte : canonical.digest) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(byte));
    hex += digits.data();
  }
  return hex;
}

void require_equal_weights(const nn::Arena& arena, const std::vector<std::pair<std::string, Tensor>>& state,
                           Communicator& communicator) {
  std::vector<std::string> names;
  std::vector<std::int64_t> hashes;
  const auto add = [&](std::string name, const Tensor& tensor) {
    names.push_back(std::move(name));
    hashes.push_back(static_cast<std::int64_t>(hash_of(tensor)));
  };
  for (const nn::Arena::Slot& slot : arena.slots()) {
    add(slot.parameter.name, arena.master(slot));
    for (const auto& [name, tensor] : state) {
      add(slot.parameter.name + " (" + name + ")", tensor.rows(slot.begin, slot.end));
    }
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
    std::map<std::int64_t, std::vector<int>> holders;
    for (int rank = 0; rank < communicator.size(); ++rank) holders[hash(rank, i)].push_back(rank);
    if (holders.size() == 1) continue;
    const auto most =
        std::ranges::max_element(holders, {}, [](const auto& entry) { return entry.second.size(); })->first;
    std::vector<int> odd;
    for (const auto& [value, ranks] : holders) {
      if (value != most) odd.insert(odd.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(odd);
    throw PeerError("the ranks no longer hold the same " + names[i] + ": " + rank_names(odd) + " differs from " +
                        rank_names(holders[most]),
                    "Resume from the last checkpoint; if it happens again, suspect the memory of that rank's machine.");
  }
}

}  // namespace lockstep::comm
