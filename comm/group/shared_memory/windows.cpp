// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/windows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace lockstep::comm {

namespace {

using Kind = MemoryName::Kind;

/// 4 KiB, or what the kernel was built with: 64 KiB on some of aarch64. A part that began inside a page could not be
/// populated, and its neighbour would decide which memory holds the page.
std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t whole_pages(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + page() - 1) / page() * page(); }

std::string mebibytes(std::int64_t bytes) {
  const std::string text = std::to_string(static_cast<double>(bytes) / (1024.0 * 1024.0));
  return text.substr(0, text.find('.') + 2) + " MiB";
}

/// The message of a rank before a window is made. The first rank of the group names it, the first of a node has made
/// it.
struct Offer {
  std::int64_t id;
  std::int64_t room;
  MemoryName memory;
};

}  // namespace

std::shared_ptr<SharedWindow> SharedWindows::allocate(Transport& group, const Topology& topology, std::size_t bytes) {
  const Operation operation{.kind = OperationKind::kAllocate, .count = static_cast<std::int64_t>(bytes)};
  const auto ranks = static_cast<std::size_t>(topology.local_size());
  // A size that cannot be counted is refused for that alone.
  const bool countable = bytes < std::numeric_limits<std::size_t>::max() / ranks / 2;
  const std::size_t part = countable ? whole_pages(bytes) : 0;
  for (const Kind kind : {Kind::kDescriptor, Kind::kFile}) {
    const bool makes = topology.local_rank == 0 && countable;
    const SharedFile file(makes ? kind : Kind::kNone, part * ranks);
    const std::vector<Offer> offers = gather(group, operation, Offer{next_id(), room(kind), file.name()});
    const std::int64_t available = std::ranges::min(offers, {}, &Offer::room).room;
    if (!fits(bytes, topology.local_size(), available, kind)) return nullptr;

    auto window = std::make_unique<SharedWindow>();
    window->id = offers.front().id;
    window->bytes = bytes;
    const Offer& leader = offers[static_cast<std::size_t>(topology.local.front())];
    window->mapping = Mapping(leader.memory, part * ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      window->ranks.push_back(group.group().ranks[static_cast<std::size_t>(topology.local[i])]);
      window->parts.push_back(window->mapping.data() + i * part);
    }
    window->own = window->parts[static_cast<std::size_t>(topology.local_rank)];
    // Each takes its own pages, from the memory that is nearest to it.
    enum class Found : int { kMemory, kShort, kNothing };
    const Found found = !window->mapping              ? Found::kNothing
                        : populate(window->own, part) ? Found::kMemory
                                                      : Found::kShort;
    const Found worst = std::ranges::max(gather(group, operation, found));
    if (worst == Found::kMemory) return add(std::move(window));
    const std::lock_guard lock(mutex_);
    shortage_ = mebibytes(static_cast<std::int64_t>(part * ranks)) +
                (worst == Found::kShort ? " needed, which the system promised but did not have"
                                        : " needed, which the ranks of a machine cannot open for each other");
    if (worst == Found::kShort) return nullptr;
  }
  return nullptr;
}

std::string SharedWindows::shortage() const {
  const std::lock_guard lock(mutex_);
  return shortage_;
}

std::optional<SharedWindows::Place> SharedWindows::find(const void* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const SharedWindow* const window : windows_) {
    const std::ptrdiff_t offset = static_cast<const std::byte*>(data) - window->own;
    if (offset >= 0 && static_cast<std::size_t>(offset) + bytes <= window->bytes) return Place{window->id, offset};
  }
  return std::nullopt;
}

std::vector<std::byte*> SharedWindows::parts(const Place& place, const std::vector<int>& ranks) const {
  const std::lock_guard lock(mutex_);
  const SharedWindow& window = **std::ranges::find(windows_, place.window, &SharedWindow::id);
  std::vector<std::byte*> parts;
  for (const int rank : ranks) {
    // Most often it is the group that made the window.
    const std::size_t next = parts.size();
    const auto found = next < window.ranks.size() && window.ranks[next] == rank
                           ? window.ranks.begin() + static_cast<std::ptrdiff_t>(next)
                           : std::ranges::find(window.ranks, rank);
    if (found == window.ranks.end()) return {};
    parts.push_back(window.parts[static_cast<std::size_t>(found - window.ranks.begin())] + place.offset);
  }
  return parts;
}

std::int64_t SharedWindows::next_id() {
  const std::lock_guard lock(mutex_);
  return (static_cast<std::int64_t>(world_rank_) << 32) + made_++;
}

std::int64_t SharedWindows::room(Kind kind) const {
  const std::int64_t available = free_bytes(kind);
  // A limit below the system's, to rehearse small machines: for all windows of a node together.
  const char* const limit = std::getenv("LOCKSTEP_SHARED_MEMORY_BYTES");
  if (limit == nullptr) return available;
  const std::lock_guard lock(mutex_);
  std::int64_t rest = std::atoll(limit);
  for (const SharedWindow* const window : windows_) {
    rest -= static_cast<std::int64_t>(whole_pages(window->bytes) * window->parts.size());
  }
  return std::clamp<std::int64_t>(rest, 0, available);
}

bool SharedWindows::fits(std::size_t bytes, int ranks, std::int64_t available, Kind kind) {
  // Compared by ranks, because the product may not be a number.
  const std::size_t share = static_cast<std::size_t>(available) / static_cast<std::size_t>(ranks);
  if (share >= page() && bytes <= share - page() + 1) return true;
  const std::lock_guard lock(mutex_);
  shortage_ = fmt::format("{} needed by each of {} ranks, {} free{}", mebibytes(static_cast<std::int64_t>(bytes)),
                          ranks, mebibytes(available),
                          kind == Kind::kFile ? " in /dev/shm, which docker run --shm-size=1g makes larger" : "");
  return false;
}

std::shared_ptr<SharedWindow> SharedWindows::add(std::unique_ptr<SharedWindow> window) {
  const std::lock_guard lock(mutex_);
  windows_.push_back(window.get());
  return {window.release(), [windows = shared_from_this()](const SharedWindow* used) {
            {
              const std::lock_guard guard(windows->mutex_);
              std::erase(windows->windows_, used);
            }
            delete used;
          }};
}

}  // namespace lockstep::comm
