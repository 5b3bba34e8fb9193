// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/storage.h"

#include "runtime/tensor/cpu_allocator.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory_counters.h"

namespace lockstep {

Storage::Block::~Block() {
  if (release) release();
  if (purpose) MemoryCounters::of(device).give_back(*purpose, bytes);
}

Storage::Storage(void* data, std::size_t bytes, Device device, std::function<void()> release)
    : block_(new Block{data, bytes, device, std::move(release), {}}) {}

Storage Storage::counted(void* data, std::size_t bytes, Device device, std::function<void()> release) {
  Storage storage;
  const MemoryPurpose purpose = MemoryCounters::purpose();
  storage.block_.reset(new Block{data, bytes, device, std::move(release), purpose});
  MemoryCounters::of(device).take(purpose, bytes);
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
