// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <utility>

#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::gpu {

namespace {

struct Found {
  int count = 0;
  std::string why_none;
};

Found look() {
  Found found;
  const cudaError_t status = cudaGetDeviceCount(&found.count);
  if (status != cudaSuccess) {
    found.count = 0;
    found.why_none = std::string("no CUDA driver answers: ") + cudaGetErrorString(status);
    cudaGetLastError();  // the failure is dealt with; it must not surface in a later call
  } else if (found.count == 0) {
    found.why_none = "the CUDA driver finds no device";
  }
  return found;
}

const Found& found() {
  static const Found once = look();
  return once;
}

std::atomic<int> process_device = -1;  ///< that of use_device()
/// Whether the calling thread's device is one that it has chosen.
thread_local bool chosen = false;

/// 13000 is 13.0.
std::string version_text(int version) {
  return version == 0 ? "" : std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const std::string text =
      std::string(what) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")";
  if (status == cudaErrorMemoryAllocation) {
    throw MemoryError(text, "Use a smaller data.global_batch, more ranks, or train.accumulate.");
  }
  throw EnvironmentError(
      text, "An error of a kernel shows in a later call: CUDA_LAUNCH_BLOCKING=1 shows it where it happens.");
}

bool ended(cudaError_t status, const char* what) {
  if (status == cudaErrorNotReady) return false;
  check(status, what);
  return true;
}

DeviceGuard::DeviceGuard(Device device) {
  check(cudaGetDevice(&previous_), "cudaGetDevice");
  if (previous_ == device.index && chosen) return;
  check(cudaSetDevice(device.index), "cudaSetDevice");
  changed_ = std::exchange(chosen, true);
}

DeviceGuard::~DeviceGuard() {
  if (changed_) cudaSetDevice(previous_);
}

int device_count() { return found().count; }
std::string why_none() { return found().why_none; }

void settle_thread() noexcept {
  if (process_device >= 0) settle_thread({DeviceType::kCuda, process_device});
}

void settle_thread(Device device) noexcept {
  if (std::exchange(chosen, true)) return;
  cudaSetDevice(process_device >= 0 ? process_device.load() : device.index);
}

void use_device(Device device) {
  require(device);
  process_device = device.index;
  chosen = true;
  check(cudaSetDevice(device.index), "cudaSetDevice");
}

void require(Device device) {
  if (device.type != DeviceType::kCuda || device.index < 0 || device.index >= device_count()) {
    throw EnvironmentError(
        "there is no " + str(device) +
            (device_count() == 0 ? ": " + why_none()
                                 : "; there are " + std::to_string(device_count()) + " CUDA devices"),
        "Use --device cpu; lockstep doctor says more.");
  }
}

Description describe(Device device) {
  require(device);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  Description description;
  description.name = properties.name;
  description.compute_capability = 10 * properties.major + properties.minor;
  description.multiprocessors = properties.multiProcessorCount;
  description.total_memory = properties.totalGlobalMem;
  return description;
}

std::size_t free_memory(Device device) {
  require(device);
  const DeviceGuard guard(device);
  std::size_t available = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return available;
}

int oldest_compute_capability() { return LOCKSTEP_OLDEST_COMPUTE_CAPABILITY; }

std::string runtime_version() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? version_text(version) : "";
}

std::string driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version_text(version) : "";
}

}  // namespace lockstep::gpu
