// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/uploader.h"

#include <cstring>
#include <functional>

#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory.h"

namespace lockstep::step {

namespace {

/// As the device's allocator aligns: kernels read 16 bytes at a time.
constexpr std::size_t kAlignment = 512;

/// Tensors one behind the other in one block.
class Layout {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = end_;
    end_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

/// The step's inputs as the host has them: positions and what ranks add up as tensors beside the batches.
StepInputs on_host(std::uint64_t step, std::vector<data::Batch> micro_batches, bool stop) {
  StepInputs inputs;
  inputs.step = step;
  std::int64_t skipped = 0;
  for (const data::Batch& batch : micro_batches) skipped += batch.skipped_samples;
  inputs.told = Tensor::from<float>({stop ? 1.0f : 0.0f, static_cast<float>(skipped)}, {2});
  const auto bytes = static_cast<std::int64_t>(micro_batches.size() * sizeof(kernels::StepPosition));
  inputs.positions = Tensor::empty({bytes}, DType::kUInt8);
  auto* position = static_cast<kernels::StepPosition*>(inputs.positions.data());
  for (const data::Batch& batch : micro_batches) *position++ = {step, batch.first_sample};
  inputs.micro_batches = std::move(micro_batches);
  return inputs;
}

/// Puts each of the inputs' tensors where `place` says.
void move_tensors(StepInputs& inputs, const std::function<Tensor(const Tensor&)>& place) {
  inputs.told = place(inputs.told);
  inputs.positions = place(inputs.positions);
  for (data::Batch& batch : inputs.micro_batches) {
    for (Tensor* const tensor : batch.tensors()) *tensor = place(*tensor);
  }
}

}  // namespace

Uploader::Uploader(Device device) : device_(device) {
  if (device_ != kCpu) stream_ = Stream::create(device_, "upload");
}

StepInputs Uploader::upload(std::uint64_t step, std::vector<data::Batch> micro_batches, bool stop) {
  StepInputs inputs = on_host(step, std::move(micro_batches), stop);
  if (device_ == kCpu) return inputs;
  Layout layout;
  move_tensors(inputs, [&](const Tensor& tensor) {
    if (tensor.device() == kCpu) layout.add(tensor.bytes());
    return tensor;
  });
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.copied.synchronize();
  if (slot.memory.bytes() < layout.bytes()) slot.memory = gpu::allocate_pinned(layout.bytes());
  if (inputs_.bytes() < layout.bytes()) {
    const MemoryScope scope(MemoryPurpose::kInputs);
    staging_ = Storage::allocate(layout.bytes(), device_);
    inputs_ = Storage::allocate(layout.bytes(), device_);
    // The allocator has given memory that earlier work of the current stream may still use.
    taken_ = Stream::current(device_).record();
  }
  Layout filled;
  move_tensors(inputs, [&](const Tensor& tensor) {
    if (tensor.device() != kCpu) return tensor;
    const std::size_t offset = filled.add(tensor.bytes());
    std::memcpy(static_cast<std::byte*>(slot.memory.data()) + offset, tensor.data(), tensor.bytes());
    return Tensor::view(inputs_, offset, tensor.shape(), tensor.dtype());
  });
  send(slot, layout.bytes());
  return inputs;
}

void Uploader::send(Slot& slot, std::size_t bytes) {
  const Stream compute = Stream::current(device_);
  stream_->wait(taken_);
  gpu::copy(staging_.data(), slot.memory.data(), bytes, *stream_);
  slot.copied = stream_->record();
  compute.wait(slot.copied);
  gpu::copy(inputs_.data(), staging_.data(), bytes, compute);
  taken_ = compute.record();
}

}  // namespace lockstep::step
