// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/gpu_waits.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::gpu {

namespace {

constexpr std::size_t kAlignment = 512;
/// Reads as NaN in every floating dtype.
constexpr int kPoison = 0xff;

/// That of use_device(), and the one that this process has a context on.
std::atomic<int> process_device = 0;
std::atomic<int> context = -1;

/// Memory of the device and pinned memory.
struct Memory {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> blocks;  ///< by address, with their sizes
  std::size_t reserved = 0;
};
Memory& memory() {
  static Memory& instance = *new Memory;  // never destroyed: tensors of static lifetime may outlive it
  return instance;
}

void* take(std::size_t bytes, std::size_t counted) {
  void* data = nullptr;
  // Not a byte more: AddressSanitizer then sees what is read or written behind the end.
  if (posix_memalign(&data, kAlignment, std::max<std::size_t>(bytes, 1)) != 0) throw std::bad_alloc();
  std::memset(data, kPoison, bytes);
  const std::lock_guard lock(memory().mutex);
  memory().blocks.emplace(static_cast<std::byte*>(data), bytes + 1);
  memory().reserved += counted;
  return data;
}

void give_back(void* data, std::size_t bytes, std::size_t counted) {
  std::memset(data, kPoison, bytes);
  {
    const std::lock_guard lock(memory().mutex);
    memory().blocks.erase(static_cast<std::byte*>(data));
    memory().reserved -= counted;
  }
  std::free(data);
}

}  // namespace

namespace emulation {

Device device() { return {DeviceType::kCuda, process_device}; }

void touch(Device device) {
  describe(device);
  int made = -1;
  if (context.compare_exchange_strong(made, device.index) || made == device.index) return;
  throw EnvironmentError("a process makes a context on " + str(device) +
                         " beside that on cuda:" + std::to_string(made));
}

bool is_known(const void* data) {
  const std::lock_guard lock(memory().mutex);
  const auto* address = static_cast<const std::byte*>(data);
  auto behind = memory().blocks.upper_bound(address);
  if (behind == memory().blocks.begin()) return false;
  --behind;
  return address < behind->first + behind->second;
}

}  // namespace emulation

int device_count() {
  const char* const count = std::getenv("LOCKSTEP_EMULATED_GPUS");
  return count == nullptr ? 1 : std::atoi(count);
}
std::string why_none() { return {}; }
int oldest_compute_capability() { return 80; }
std::string runtime_version() { return "emulated"; }
std::string driver_version() { return "emulated"; }

Description describe(Device device) {
  if (device.type != DeviceType::kCuda || device.index < 0 || device.index >= device_count()) {
    throw EnvironmentError(
        "there is no " + str(device) + "; there are " + std::to_string(device_count()) + " CUDA devices",
        "Use --device cpu; lockstep doctor says more.");
  }
  return {.name = "emulated", .compute_capability = 90, .multiprocessors = 1, .total_memory = 0};
}

std::size_t free_memory(Device device) {
  emulation::touch(device);
  return 0;
}

void use_device(Device device) {
  describe(device);
  process_device = device.index;
  context = device.index;
}

Storage allocate(std::size_t bytes, Device device) {
  emulation::touch(device);
  const Stream stream = current_stream(device);
  void* data = take(bytes, bytes);
  if (!emulation::recording()) {
    return Storage::counted(data, bytes, device,
                            [=] { emulation::append(stream, [=] { give_back(data, bytes, bytes); }); });
  }
  // Memory of the graph: in each launch it is given and given back anew.
  const auto poison = [=] { std::memset(data, kPoison, bytes); };
  emulation::when_graph_ends([=] { give_back(data, bytes, bytes); });
  emulation::append_memory_work(stream, poison);
  return Storage::counted(data, bytes, device, [=] {
    if (emulation::recording()) emulation::append_memory_work(stream, poison);
  });
}

Storage allocate_pinned(std::size_t bytes) {
  emulation::touch(emulation::device());
  count_host_wait();
  void* data = nullptr;
  try {
    data = take(bytes, 0);
  } catch (const std::bad_alloc&) {
    throw MemoryError("cannot take " + std::to_string(bytes) + " bytes of page-locked host memory");
  }
  return {data, bytes, kCpu, [=] {
            count_host_wait();
            give_back(data, bytes, 0);
          }};
}

bool is_pinned(const void* data) { return emulation::is_known(data); }

std::size_t reserved_memory(Device) {
  const std::lock_guard lock(memory().mutex);
  return memory().reserved;
}
void release_cached(Device) {}

}  // namespace lockstep::gpu
