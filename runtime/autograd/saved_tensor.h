// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

struct Meta;

/// A tensor that an operation's backward needs at the value that it had in the forward pass. It shares the memory, and
/// finds out by the tensor's version when that was written since.
class SavedTensor {
 public:
  /// Saves an undefined tensor: take() gives an undefined tensor.
  SavedTensor() = default;
  /// Saves `tensor` outside the graph.
  explicit SavedTensor(const Tensor& tensor);
  /// Saves an input with its place in the graph, for a backward that is itself recorded. Never an operation's own
  /// result, which would then own itself.
  static SavedTensor in_graph(const Tensor& input);

  /// The tensor, for its shape, dtype and device: the values may be others by now.
  const Tensor& peek() const { return tensor_; }
  /// The tensor with the values that were saved. Where it was written since, throws UsageError, which names `operation`
  /// and, for a named leaf, the parameter.
  const Tensor& take(std::string_view operation) const;

 private:
  SavedTensor(const Tensor& tensor, Tensor kept);

  Tensor tensor_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const Meta> parameter_;  ///< for the message; null for what is no named leaf
};

}  // namespace lockstep::autograd
