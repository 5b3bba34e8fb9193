// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_outcome.h"

#include "runtime/tensor/gpu.h"

namespace lockstep::step {

namespace {

Storage host_memory(Device device) {
  return device == kCpu ? Storage::allocate(sizeof(StepOutcome), kCpu) : gpu::allocate_pinned(sizeof(StepOutcome));
}

}  // namespace

Readback::Readback(Device device) : device_(device), slot_(host_memory(device)) {}

void Readback::request(const DeviceValue<StepOutcome>& outcome) {
  const Tensor& bytes = outcome.bytes();
  Tensor::view(slot_, 0, bytes.shape(), bytes.dtype()).copy_from(bytes);
  arrived_ = Stream::current(device_).record();
}

StepOutcome Readback::take() const {
  arrived_.synchronize();
  return *static_cast<const StepOutcome*>(slot_.data());
}

}  // namespace lockstep::step
