// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/bucket_plan.h"

#include <algorithm>

namespace lockstep::comm {

namespace {

std::vector<std::string> names_in(const nn::Arena& arena) {
  std::vector<std::string> names;
  for (const nn::Arena::Slot& slot : arena.slots()) names.push_back(slot.parameter.name);
  return names;
}

}  // namespace

std::vector<Bucket> plan_buckets(const nn::Arena& arena, const DdpOptions& options) {
  const double element_bytes = static_cast<double>(size_of(arena.wire().dtype()));
  const auto elements = [element_bytes](double mebibytes) {
    return static_cast<std::int64_t>(mebibytes * 1024 * 1024 / element_bytes);
  };
  require_bucket_ends(options, names_in(arena));
  const bool by_name = !options.bucket_ends.empty();
  std::vector<Bucket> buckets;
  std::int64_t limit = elements(options.first_bucket_mb);
  Bucket open;
  const std::vector<nn::Arena::Slot>& slots = arena.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // A bucket ends where the next parameter begins, so that every alignment gap belongs to one.
    open.end = i + 1 < slots.size() ? slots[i + 1].begin : arena.size();
    open.last_slot = static_cast<int>(i) + 1;
    const bool ends =
        by_name ? std::ranges::count(options.bucket_ends, slots[i].parameter.name) > 0 : open.end - open.begin >= limit;
    if (!ends && i + 1 < slots.size()) continue;
    buckets.push_back(open);
    open.begin = open.end;
    open.first_slot = open.last_slot;
    limit = elements(options.bucket_mb);
  }
  return buckets;
}

BucketPlan describe_plan(const std::vector<Bucket>& buckets, const nn::Arena& arena) {
  return {.buckets = buckets, .parameters = names_in(arena), .wire_dtype = arena.wire().dtype()};
}

}  // namespace lockstep::comm
