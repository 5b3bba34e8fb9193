// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/uploader.h"

#include <cstring>
#include <utility>

#include "runtime/tensor/block_layout.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory.h"

namespace lockstep::step {

namespace {

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

/// Those of the inputs' tensors that are not on the device.
std::vector<Tensor*> host_tensors(StepInputs& inputs) {
  std::vector<Tensor*> tensors{&inputs.told, &inputs.positions};
  for (data::Batch& batch : inputs.micro_batches) {
    for (Tensor* const tensor : batch.tensors()) {
      if (tensor->device() == kCpu) tensors.push_back(tensor);
    }
  }
  return tensors;
}

/// Where a tensor goes, and where it is staged if it has to be.
struct Move {
  Tensor* tensor;
  std::size_t to;
  std::optional<std::size_t> staged;
};

}  // namespace

/// A copy of page-locked memory to a place in the device's.
struct Uploader::Copy {
  Storage block;  ///< that `from` lies in; kept until the copy is appended
  const std::byte* from;
  std::size_t to;
  std::size_t bytes;

  /// Takes in `next` where it lies behind this at both ends, as the tensors of a loader's batch do.
  bool joined(const Copy& next) {
    const std::size_t step = BlockLayout::aligned(bytes);
    if (block.data() != next.block.data() || from + step != next.from || to + step != next.to) return false;
    bytes = step + next.bytes;
    return true;
  }
};

Uploader::Uploader(Device device) : device_(device) {
  if (device_ != kCpu) stream_ = Stream::create(device_, "upload");
}

StepInputs Uploader::upload(std::uint64_t step, std::vector<data::Batch> micro_batches, bool stop) {
  StepInputs inputs = on_host(step, std::move(micro_batches), stop);
  if (device_ == kCpu) return inputs;
  BlockLayout there, staged;
  std::vector<Move> moves;
  for (Tensor* const tensor : host_tensors(inputs)) {
    Move& move = moves.emplace_back(Move{tensor, there.add(tensor->bytes()), std::nullopt});
    if (!gpu::is_pinned(tensor->data())) move.staged = staged.add(tensor->bytes());
  }
  const Staging& staging = prepare(staged.bytes(), there.bytes());
  std::vector<Copy> copies;
  for (const auto& [tensor, to, staged_at] : moves) {
    Copy copy{tensor->storage(), static_cast<const std::byte*>(tensor->data()), to, tensor->bytes()};
    if (staged_at) {
      auto* const place = static_cast<std::byte*>(staging.memory.data()) + *staged_at;
      std::memcpy(place, copy.from, copy.bytes);
      staged_bytes_ += copy.bytes;
      copy.block = staging.memory;
      copy.from = place;
    }
    *tensor = Tensor::view(inputs_, to, tensor->shape(), tensor->dtype());
    if (copies.empty() || !copies.back().joined(copy)) copies.push_back(std::move(copy));
  }
  send(copies, there.bytes());
  return inputs;
}

const Uploader::Staging& Uploader::prepare(std::size_t staged_bytes, std::size_t input_bytes) {
  Staging& staging = stagings_[next_];
  staging.copied.synchronize();
  if (staging.memory.bytes() < staged_bytes) staging.memory = gpu::allocate_pinned(staged_bytes);
  if (inputs_.bytes() < input_bytes) {
    const MemoryScope scope(MemoryPurpose::kInputs);
    arriving_ = Storage::allocate(input_bytes, device_);
    inputs_ = Storage::allocate(input_bytes, device_);
    // The allocator has given memory that earlier work of the current stream may still use.
    taken_ = Stream::current(device_).record();
  }
  return staging;
}

void Uploader::send(const std::vector<Copy>& copies, std::size_t bytes) {
  const Stream compute = Stream::current(device_);
  stream_->wait(taken_);
  for (const Copy& copy : copies) {
    gpu::copy(static_cast<std::byte*>(arriving_.data()) + copy.to, copy.from, copy.bytes, *stream_);
  }
  Event& copied = stagings_[next_].copied;
  next_ = (next_ + 1) % stagings_.size();
  copied = stream_->record();
  compute.wait(copied);
  gpu::copy(inputs_.data(), arriving_.data(), bytes, compute);
  taken_ = compute.record();
}

}  // namespace lockstep::step
