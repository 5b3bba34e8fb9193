// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cuda/staging.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::gpu {

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;
/// The number of small copies on their way before one waits.
constexpr std::size_t kBlocks = 16;

}  // namespace

struct Staging::State {
  /// A piece of page-locked memory and the copy that reads it.
  struct Block {
    Storage memory;
    cudaEvent_t copied = nullptr;

    void wait(Device device) const {
      const auto read = [this] { return ended(cudaEventQuery(copied), "cudaEventQuery"); };
      if (!read()) wait_until(device, read);
    }
  };

  Device device;
  std::mutex mutex;
  std::array<Block, kBlocks> blocks;
  std::size_t next = 0;

  /// The next block, when nothing reads it any more.
  Block& take() {
    Block& block = blocks[next];
    next = (next + 1) % blocks.size();
    if (block.copied != nullptr) {
      block.wait(device);
    } else {
      block.memory = allocate_pinned(kBlock);
      check(cudaEventCreateWithFlags(&block.copied, cudaEventDisableTiming), "cudaEventCreate");
    }
    return block;
  }
};

Staging& Staging::of(Device device) {
  static std::mutex mutex;
  static std::map<int, Staging*>& all = *new std::map<int, Staging*>;
  const std::lock_guard lock(mutex);
  Staging*& staging = all[device.index];
  if (staging == nullptr) staging = new Staging(device);
  return *staging;
}

Staging::Staging(Device device) : state_(new State{.device = device}) {}

void Staging::copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(state_->mutex);
  const DeviceGuard guard(state_->device);
  for (std::size_t done = 0; done < bytes; done += kBlock) {
    const std::size_t part = std::min(kBlock, bytes - done);
    const State::Block& block = state_->take();
    std::memcpy(block.memory.data(), static_cast<const std::byte*>(from) + done, part);
    check(
        cudaMemcpyAsync(static_cast<std::byte*>(to) + done, block.memory.data(), part, cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
    check(cudaEventRecord(block.copied, stream), "cudaEventRecord");
  }
}

}  // namespace lockstep::gpu
