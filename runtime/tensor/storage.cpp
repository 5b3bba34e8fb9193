// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/storage.h"

#include "runtime/tensor/cpu_allocator.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory_counters.h"

namespace lockstep {

Storage::Block::Block(void* data_in, std::size_t bytes_in, Device device_in, std::function<void()> release_in,
                      std::optional<MemoryPurpose> purpose_in)
    : data(data_in), bytes(bytes_in), device(device_in), release(std::move(release_in)), purpose(purpose_in) {
  if (purpose) MemoryCounters::of(device).take(*purpose, bytes);
}

Storage::Block::~Block() {
  if (release) release();
  if (purpose) MemoryCounters::of(device).give_back(*purpose, bytes);
}

Storage::Storage(void* data, std::size_t bytes, Device device, std::function<void()> release)
    : block_(std::make_shared<const Block>(data, bytes, device, std::move(release), std::nullopt)) {}

Storage Storage::counted(void* data, std::size_t bytes, Device device, std::function<void()> release) {
  Storage storage;
  storage.block_ = std::make_shared<const Block>(data, bytes, device, std::move(release), MemoryCounters::purpose());
  return storage;
}

std::shared_ptr<std::atomic<std::uint64_t>> Storage::writes() const {
  if (!block_) return std::make_shared<std::atomic<std::uint64_t>>(0);
  return {block_, &block_->writes};
}

Storage Storage::allocate(std::size_t bytes, Device device) {
  if (device.type != DeviceType::kCpu) return gpu::allocate(bytes, device);
  void* data = CpuAllocator::instance().allocate(bytes);
  return counted(data, bytes, device, [data, bytes] { CpuAllocator::instance().deallocate(data, bytes); });
}

}  // namespace lockstep
