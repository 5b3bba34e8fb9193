// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/readback.h"

#include <cstddef>

#include "runtime/tensor/gpu.h"

namespace lockstep::train {

namespace {

Storage host_memory(Device device) {
  return device == kCpu ? Storage::allocate(sizeof(StepOutcome), kCpu) : gpu::allocate_pinned(sizeof(StepOutcome));
}

}  // namespace

Readback::Readback(Device device) : device_(device), slot_(host_memory(device)) {}

void Readback::request(const DeviceValue<kernels::StepVerdict>& verdict,
                       const DeviceValue<kernels::LossScaleState>& scale,
                       const DeviceValue<kernels::ScheduleState>& schedule, const Tensor& loss_and_stop) {
  const auto receive = [&](std::size_t offset, const Tensor& from) {
    Tensor::view(slot_, offset, from.shape(), from.dtype()).copy_from(from);
  };
  receive(offsetof(StepOutcome, verdict), verdict.bytes());
  receive(offsetof(StepOutcome, scale), scale.bytes());
  receive(offsetof(StepOutcome, schedule), schedule.bytes());
  receive(offsetof(StepOutcome, loss), loss_and_stop);
  arrived_ = Stream::current(device_).record();
}

StepOutcome Readback::take() const {
  arrived_.synchronize();
  return *static_cast<const StepOutcome*>(slot_.data());
}

}  // namespace lockstep::train
