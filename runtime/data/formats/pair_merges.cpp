// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/pair_merges.h"

#include <functional>
#include <limits>
#include <queue>

namespace lockstep::data {

namespace {

constexpr std::uint32_t kNoPlace = std::numeric_limits<std::uint32_t>::max();

std::uint64_t key_of(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

/// A list of the tokens that are left; the one at place i covers the places up to `next`.
struct Link {
  std::uint32_t value;
  std::uint32_t next;
  std::uint32_t previous;
};

/// Two tokens that may join. One whose tokens have changed since is passed over.
struct Pair {
  std::uint32_t rank;
  std::uint32_t place;
  std::uint32_t left;
  std::uint32_t right;
  bool operator>(const Pair& other) const { return rank != other.rank ? rank > other.rank : place > other.place; }
};

}  // namespace

void PairMerges::add(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t token) {
  merges_.insert_or_assign(key_of(left, right), Merge{rank, token});
}

const PairMerges::Merge* PairMerges::find(std::uint32_t left, std::uint32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void PairMerges::join(std::vector<std::uint32_t>& tokens, std::size_t first) const {
  const auto count = static_cast<std::uint32_t>(tokens.size() - first);
  if (count < 2) return;
  std::vector<Link> list(count);
  for (std::uint32_t i = 0; i < count; ++i) list[i] = {tokens[first + i], i + 1, i == 0 ? kNoPlace : i - 1};
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto offer = [&](std::uint32_t place) {
    if (place == kNoPlace || list[place].next >= count) return;
    const std::uint32_t right = list[list[place].next].value;
    if (const Merge* merge = find(list[place].value, right)) pairs.push({merge->rank, place, list[place].value, right});
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Link& left = list[pair.place];
    if (left.value != pair.left || left.next >= count || list[left.next].value != pair.right) continue;
    Link& right = list[left.next];
    left.value = find(pair.left, pair.right)->token;
    left.next = right.next;
    right.value = kNoPlace;
    if (left.next < count) list[left.next].previous = pair.place;
    offer(left.previous);
    offer(pair.place);
  }
  tokens.resize(first);
  for (std::uint32_t i = 0; i < count; i = list[i].next) tokens.push_back(list[i].value);
}

}  // namespace lockstep::data
