// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/memory_budget.h"

#include <fmt/format.h>

#include <limits>

#include "runtime/base/error.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep {

namespace {

constexpr std::uint64_t kUnwatched = std::uint64_t{64} << 20;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::string in_gib(std::uint64_t bytes) {
  constexpr double kGiB = 1 << 30;
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kGiB);
}

}  // namespace

void MemoryBudget::take(std::uint64_t bytes, const std::string& file, std::string_view advice) {
  const std::uint64_t wanted = bytes > kMost - taken_ ? kMost : taken_ + bytes;
  if (wanted <= limit_.value_or(kUnwatched)) {
    taken_ = wanted;
    return;
  }
  if (!limit_) {
    const std::optional<std::size_t> room = least_of(memory_room());
    limit_ = room ? (*room + taken_) / 2 : kMost;
  }
  if (wanted > *limit_) {
    throw StorageError(
        fmt::format("{} takes {} of memory or more on each rank; {} may be taken, half of what is free: {}", file,
                    in_gib(wanted), in_gib(*limit_), str(memory_room())),
        std::string(advice));
  }
  taken_ = wanted;
}

}  // namespace lockstep
