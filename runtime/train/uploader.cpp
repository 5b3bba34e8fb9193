// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/uploader.h"

#include <cstring>

#include "runtime/tensor/gpu.h"

namespace lockstep::train {

Tensor Uploader::stage(Slot& slot, std::size_t offset, const Tensor& from) const {
  const Tensor staged = Tensor::view(slot.memory, offset, from.shape(), from.dtype());
  std::memcpy(staged.data(), from.data(), from.bytes());
  return staged.to(device_);
}

data::Batch Uploader::upload(const data::Batch& batch) {
  if (device_ == kCpu) return batch;
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.copied.synchronize();
  const std::size_t needed = batch.input.bytes() + batch.target.bytes();
  if (!slot.memory || slot.memory.bytes() < needed) slot.memory = gpu::allocate_pinned(needed);
  data::Batch there = batch;
  // Targets first: they are 8-byte elements.
  there.target = stage(slot, 0, batch.target);
  there.input = stage(slot, batch.target.bytes(), batch.input);
  slot.copied = Stream::current(device_).record();
  return there;
}

}  // namespace lockstep::train
