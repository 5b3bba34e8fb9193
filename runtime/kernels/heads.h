// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/kernels/movement.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// How many elements lie between a sample and the next one, and likewise heads and rows. Channels follow one another.
struct HeadSteps {
  std::int64_t sample = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;

  /// How many elements lie before head `number`. Heads are numbered over all samples, each of which has `heads`.
  LOCKSTEP_HOST_DEVICE std::int64_t offset(std::int64_t number, std::int64_t heads) const {
    return number / heads * sample + number % heads * head;
  }
  friend auto operator<=>(const HeadSteps&, const HeadSteps&) = default;
};

/// Heads [N, heads, T, channels] where they lie: a tensor of this shape, or some channels of sequences [N, T, width],
/// in which heads lie one behind the other, so that nothing moves between a projection and attention.
class Heads {
 public:
  Heads() = default;
  /// A dense tensor [N, heads, T, channels], or an undefined one.
  Heads(const Tensor& tensor);  // NOLINT(google-explicit-constructor): any such tensor is heads
  /// `heads` heads of `channels` channels each, which lie in sequences [N, T, width] from channel `first` on. Throws
  /// ShapeError where the sequences have no such channels.
  Heads(const Tensor& sequences, std::int64_t first, std::int64_t heads, std::int64_t channels);

  bool defined() const { return tensor_.defined(); }
  const Shape& shape() const { return shape_; }
  std::int64_t size(int d) const { return shape_[d]; }
  std::int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return tensor_.dtype(); }
  Device device() const { return tensor_.device(); }
  /// The tensor that holds them: that of [N, heads, T, channels], or the sequences.
  const Tensor& tensor() const { return tensor_; }
  const HeadSteps& steps() const { return steps_; }
  /// Whether tensor() holds nothing else, in the order of shape().
  bool is_dense() const { return !defined() || tensor_.shape() == shape_; }
  /// The element of tensor() that is the first one of head number `number`, counted over all samples.
  std::int64_t first_of(std::int64_t number) const { return first_ + steps_.offset(number, shape_[1]); }
  /// The address of that element.
  void* data(std::int64_t number = 0) const;
  /// The same part of another tensor of tensor()'s shape and dtype.
  Heads of(const Tensor& tensor) const;
  /// Their elements in tensor().
  Walk walk() const;

 private:
  Tensor tensor_;
  Shape shape_;
  HeadSteps steps_;
  std::int64_t first_ = 0;
};

}  // namespace lockstep::kernels
