// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/storage.h"

#include "runtime/tensor/cpu_allocator.h"
#include "runtime/tensor/error.h"

namespace lockstep {

Storage::Block::~Block() {
  if (release) release();
}

Storage::Storage(void* data, std::size_t bytes, Device device, std::function<void()> release)
    : block_(new Block{data, bytes, device, std::move(release)}) {}

Storage Storage::allocate(std::size_t bytes, Device device) {
  if (device.type != DeviceType::kCpu) {
    throw EnvironmentError("no memory on " + str(device) + ": this build has no CUDA backend", "Use --device cpu.");
  }
  void* data = CpuAllocator::instance().allocate(bytes);
  return {data, bytes, device, [data, bytes] { CpuAllocator::instance().deallocate(data, bytes); }};
}

MemoryStatistics memory_statistics(Device device) {
  return device.type == DeviceType::kCpu ? CpuAllocator::instance().statistics() : MemoryStatistics{};
}

}  // namespace lockstep
