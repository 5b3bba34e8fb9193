// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Verifies an operation's tensors, as a chain:
///   Check("add").floating("a", a).like("out", out, a);
/// Every requirement throws a ShapeError that names the operation, the tensor, what was expected and what was found.
/// All tensors that one chain sees must lie on one device, that of the first.
class Check {
 public:
  explicit Check(std::string_view operation) : operation_(operation) {}

  /// Requires that the tensor is defined and on the device of those before it. Every other requirement on a tensor does
  /// this first.
  const Check& defined(std::string_view name, const Tensor& tensor) const;
  const Check& shape(std::string_view name, const Tensor& tensor, const Shape& expected) const;
  const Check& numel(std::string_view name, const Tensor& tensor, std::int64_t expected) const;
  const Check& dtype(std::string_view name, const Tensor& tensor, DType expected) const;
  const Check& floating(std::string_view name, const Tensor& tensor) const;
  const Check& rank_at_least(std::string_view name, const Tensor& tensor, int expected) const;
  /// The shape and dtype of `model`.
  const Check& like(std::string_view name, const Tensor& tensor, const Tensor& model) const;
  const Check& that(bool holds, const char* requirement) const;
  /// Takes a function that makes the text, and calls it only on a failure: to make a text takes as long as a small
  /// operation.
  template <std::invocable Text>
  const Check& that(bool holds, Text requirement) const {
    return holds ? *this : that(false, std::string(requirement()).c_str());
  }

 private:
  [[noreturn]] void fail(std::string_view name, const std::string& expected, const Tensor& found) const;

  std::string_view operation_;
  // The name and device of the first tensor. Mutable, since a chain is a value of its own that no one else sees.
  mutable std::string_view first_name_;
  mutable Device device_;
};

/// The dtype of statistics, parameters and losses beside x: float64 for float64, float32 otherwise.
DType accumulation_dtype(DType dtype);

}  // namespace lockstep::kernels
