// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime, as far as the kernels' host code calls it.
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/occupancy.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/cuda/capture.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "tests/support/emulated_gpu/emulation.h"

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  using namespace lockstep::gpu;
  lockstep::cuda_on_host::require_current(stream);
  emulation::append(current_stream(emulation::device()), [=] { std::memset(data, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = lockstep::gpu::emulation::recording() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const bool relaxed = *mode == cudaStreamCaptureModeRelaxed;
  *mode = relaxed ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeRelaxed;
  lockstep::gpu::emulation::set_recording_aside(relaxed);
  return cudaSuccess;
}

namespace lockstep::gpu {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw EnvironmentError(std::string(what) + " failed");
}
void require(Device device) { describe(device); }
/// The emulated streams know by themselves what is recorded.
bool& capturing() {
  static thread_local bool never = false;
  return never;
}
cudaStream_t current(Device device) {
  emulation::touch(device);
  return reinterpret_cast<cudaStream_t>(current_stream(device).impl().get());
}
DeviceGuard::DeviceGuard(Device device) { emulation::touch(device); }
DeviceGuard::~DeviceGuard() = default;

}  // namespace lockstep::gpu

namespace lockstep::kernels {

/// Few, so that blocks come to more than one piece of work.
std::int64_t cuda::resident_blocks(Device, const void*, int) { return 6; }

std::string cudnn_version() { return "emulated"; }
std::string cublas_version() { return "emulated"; }

}  // namespace lockstep::kernels
