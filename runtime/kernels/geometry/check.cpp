// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/check.h"

#include "runtime/base/error.h"

namespace lockstep::kernels {

const Check& Check::shape(std::string_view name, const Tensor& tensor, const Shape& expected) const {
  defined(name, tensor);
  if (tensor.shape() != expected) fail(name, "have shape " + expected.str(), tensor);
  return *this;
}

const Check& Check::numel(std::string_view name, const Tensor& tensor, std::int64_t expected) const {
  defined(name, tensor);
  if (tensor.numel() != expected) fail(name, "have " + std::to_string(expected) + " elements", tensor);
  return *this;
}

const Check& Check::dtype(std::string_view name, const Tensor& tensor, DType expected) const {
  defined(name, tensor);
  if (tensor.dtype() != expected) fail(name, "be " + std::string(name_of(expected)), tensor);
  return *this;
}

const Check& Check::floating(std::string_view name, const Tensor& tensor) const {
  defined(name, tensor);
  if (!is_floating(tensor.dtype())) fail(name, "have a floating dtype", tensor);
  return *this;
}

const Check& Check::rank_at_least(std::string_view name, const Tensor& tensor, int expected) const {
  defined(name, tensor);
  if (tensor.shape().rank() < expected) {
    fail(name, "have at least " + std::to_string(expected) + " dimensions", tensor);
  }
  return *this;
}

const Check& Check::like(std::string_view name, const Tensor& tensor, const Tensor& model) const {
  return shape(name, tensor, model.shape()).dtype(name, tensor, model.dtype());
}

const Check& Check::that(bool holds, const char* requirement) const {
  if (!holds) throw ShapeError(std::string(operation_) + ": " + requirement);
  return *this;
}

const Check& Check::defined(std::string_view name, const Tensor& tensor) const {
  if (!tensor.defined()) fail(name, "be defined", tensor);
  if (first_name_.empty()) {
    first_name_ = name;
    device_ = tensor.device();
  } else if (tensor.device() != device_) {
    fail(name, "lie on " + str(device_) + " like " + std::string(first_name_), tensor);
  }
  return *this;
}

void Check::fail(std::string_view name, const std::string& expected, const Tensor& found) const {
  throw ShapeError(std::string(operation_) + ": " + std::string(name) + " must " + expected + ", found " +
                   describe(found));
}

DType accumulation_dtype(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

}  // namespace lockstep::kernels
