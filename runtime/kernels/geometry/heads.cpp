// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/heads.h"

#include <cstddef>
#include <string>

#include "runtime/base/error.h"

namespace lockstep::kernels {

Heads::Heads(const Tensor& tensor) : tensor_(tensor) {
  if (!tensor.defined()) return;
  shape_ = tensor.shape();
  // The check of the operation refuses a tensor of another rank.
  if (shape_.rank() == 4) steps_ = {shape_[1] * shape_[2] * shape_[3], shape_[2] * shape_[3], shape_[3]};
}

Heads::Heads(const Tensor& sequences, std::int64_t first, std::int64_t heads, std::int64_t channels)
    : tensor_(sequences), first_(first) {
  const Shape& shape = sequences.shape();
  if (shape.rank() != 3 || first < 0 || heads < 0 || channels < 0 || first + heads * channels > shape[2]) {
    throw ShapeError(std::to_string(heads) + " heads of " + std::to_string(channels) + " channels from channel " +
                     std::to_string(first) + " on do not lie in sequences " + shape.str());
  }
  shape_ = {shape[0], heads, shape[1], channels};
  steps_ = {shape[1] * shape[2], channels, shape[2]};
}

void* Heads::data(std::int64_t number) const {
  const std::int64_t element = number == 0 ? first_ : first_of(number);
  return static_cast<std::byte*>(tensor_.data()) + element * static_cast<std::int64_t>(size_of(dtype()));
}

Heads Heads::of(const Tensor& tensor) const {
  Heads heads = *this;
  heads.tensor_ = tensor;
  return heads;
}

Walk Heads::walk() const { return {.offset = first_, .strides = {steps_.sample, steps_.head, steps_.row, 1}}; }

}  // namespace lockstep::kernels
