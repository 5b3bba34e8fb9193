// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/batch_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/block_layout.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/stream.h"

namespace lockstep::data {

namespace {

Storage host_memory(std::int64_t count, std::size_t bytes, Device device) {
  const MemoryScope scope(MemoryPurpose::kInputs);
  const std::size_t all = static_cast<std::size_t>(count) * bytes;
  try {
    return device == kCpu ? Storage::allocate(all, kCpu) : gpu::allocate_pinned(all);
  } catch (const MemoryError& error) {
    throw MemoryError(fmt::format("no memory for {} batches of {} bytes each, {} MiB in all: {}", count, bytes,
                                  all >> 20, error.what()),
                      "Use a smaller data.global_batch or data.prefetch, more ranks, or train.accumulate.");
  }
}

}  // namespace

struct BatchSlots::State {
  /// A slot that nobody holds.
  struct Free {
    std::int64_t number;
    Event read;  ///< the device reads it no more
  };

  State(std::int64_t slots, std::size_t slot_bytes, Device on)
      : device(on), count(slots), bytes(slot_bytes), memory(host_memory(slots, slot_bytes, on)) {
    // The last of the list is the next to be taken.
    for (std::int64_t number = count; number-- > 0;) free.push_back({number, Event()});
  }
  /// The memory must outlast the copies that read it.
  ~State() {
    for (const Free& slot : free) {
      try {
        slot.read.synchronize();
      } catch (const std::exception&) {
        // An aborted copy is over, and whoever needed it has been told.
      }
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void give_back(std::int64_t number) noexcept {
    try {
      Event read = device == kCpu ? Event() : Stream::current(device).record();
      const std::lock_guard lock(mutex);
      free.push_back({number, std::move(read)});
    } catch (const std::exception&) {
      // Nobody can say when the device has read it: it is not used again.
    }
  }

  Device device;
  std::int64_t count;
  std::size_t bytes;
  Storage memory;
  std::mutex mutex;
  std::vector<Free> free;  ///< in the order in which they came back
};

BatchSlots::BatchSlots(std::int64_t count, std::size_t bytes, Device device)
    : state_(std::make_shared<State>(count, BlockLayout::aligned(bytes), device)) {}

std::int64_t BatchSlots::count() const { return state_->count; }
std::size_t BatchSlots::bytes() const { return state_->bytes; }

Storage BatchSlots::take() const {
  State& state = *state_;
  State::Free slot{};
  {
    const std::lock_guard lock(state.mutex);
    if (state.free.empty()) return {};
    // The one that was used last is still in the caches; where the device reads all of them, the first is free first.
    const auto idle =
        std::find_if(state.free.rbegin(), state.free.rend(), [](const auto& it) { return it.read.done(); });
    const auto taken = idle == state.free.rend() ? state.free.begin() : std::prev(idle.base());
    slot = *taken;
    state.free.erase(taken);
  }
  slot.read.synchronize();
  auto* const data = static_cast<std::byte*>(state.memory.data()) + static_cast<std::size_t>(slot.number) * state.bytes;
  return {data, state.bytes, kCpu, [shared = state_, number = slot.number] { shared->give_back(number); }};
}

}  // namespace lockstep::data
