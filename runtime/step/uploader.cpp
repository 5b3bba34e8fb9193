// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/uploader.h"

#include <algorithm>
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

/// A tensor of a step's inputs.
struct Input {
  Tensor* tensor;
  const data::Batch* batch;  ///< null for what every rank has as much of
};

/// Those on the host, or those on the device.
std::vector<Input> inputs_on(bool host, StepInputs& inputs) {
  std::vector<Input> found;
  if (host) found = {{&inputs.told, nullptr}, {&inputs.positions, nullptr}};
  for (data::Batch& batch : inputs.micro_batches) {
    for (Tensor* const tensor : batch.tensors()) {
      if ((tensor->device() == kCpu) == host) found.push_back({tensor, &batch});
    }
  }
  return found;
}

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

Uploader::Uploader(Device device, int ranks) : device_(device), ranks_(ranks) {
  if (device_ != kCpu) stream_ = Stream::create(device_, "upload");
}

std::size_t Uploader::most_bytes(const Tensor& tensor, const data::Batch& batch) const {
  if (!batch.dealt) return tensor.bytes();
  std::size_t row = size_of(tensor.dtype());
  for (const std::int64_t extent : tensor.shape().extents().subspan(1)) row *= static_cast<std::size_t>(extent);
  const std::int64_t rows = (batch.global_samples + ranks_ - 1) / ranks_;
  return std::max(tensor.bytes(), static_cast<std::size_t>(rows) * row);
}

StepInputs Uploader::upload(std::uint64_t step, std::vector<data::Batch> micro_batches, bool stop) {
  StepInputs inputs = on_host(step, std::move(micro_batches), stop);
  if (device_ == kCpu) return inputs;
  const std::vector<Input> here = inputs_on(true, inputs), there = inputs_on(false, inputs);
  BlockLayout room, staged;
  const auto take_room = [&](const Input& input) {
    room.add(input.batch == nullptr ? input.tensor->bytes() : most_bytes(*input.tensor, *input.batch));
  };
  for (const Input& input : here) {
    take_room(input);
    if (!gpu::is_pinned(input.tensor->data())) staged.add(input.tensor->bytes());
  }
  const std::size_t room_from_host = room.bytes();
  for (const Input& input : there) take_room(input);
  const Staging& staging = prepare(staged.bytes());
  make_room(room_from_host, room.bytes());

  BlockLayout places, staging_places;
  std::vector<Copy> copies;
  for (const Input& input : here) {
    Tensor& tensor = *input.tensor;
    Copy copy{tensor.storage(), static_cast<const std::byte*>(tensor.data()), places.add(tensor.bytes()),
              tensor.bytes()};
    if (!gpu::is_pinned(copy.from)) {
      auto* const place = static_cast<std::byte*>(staging.memory.data()) + staging_places.add(copy.bytes);
      std::memcpy(place, copy.from, copy.bytes);
      staged_bytes_ += copy.bytes;
      copy.block = staging.memory;
      copy.from = place;
    }
    tensor = Tensor::view(inputs_, copy.to, tensor.shape(), tensor.dtype());
    if (copies.empty() || !copies.back().joined(copy)) copies.push_back(std::move(copy));
  }
  send(copies, places.bytes());
  for (const Input& input : there) {
    Tensor& tensor = *input.tensor;
    const Tensor place = Tensor::view(inputs_, places.add(tensor.bytes()), tensor.shape(), tensor.dtype());
    place.copy_from(tensor);
    tensor = place;
  }
  taken_ = Stream::current(device_).record();
  return inputs;
}

const Uploader::Staging& Uploader::prepare(std::size_t bytes) {
  Staging& staging = stagings_[next_];
  staging.copied.synchronize();
  if (staging.memory.bytes() < bytes) staging.memory = gpu::allocate_pinned(bytes);
  return staging;
}

void Uploader::make_room(std::size_t from_host, std::size_t all) {
  if (arriving_.bytes() >= from_host && inputs_.bytes() >= all) return;
  const MemoryScope scope(MemoryPurpose::kInputs);
  if (arriving_.bytes() < from_host) arriving_ = Storage::allocate(from_host, device_);
  if (inputs_.bytes() < all) inputs_ = Storage::allocate(all, device_);
  // The allocator has given memory that earlier work of the current stream may still use.
  taken_ = Stream::current(device_).record();
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
}

}  // namespace lockstep::step
