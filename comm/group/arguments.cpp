// SPDX-License-Identifier: Apache-2.0
#include "comm/group/arguments.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace lockstep::comm {

void check_host(const char* name, const Tensor& tensor) { check_device(name, tensor, kCpu); }

void check_device(const char* name, const Tensor& tensor, Device device) {
  if (tensor.device() == kCpu || tensor.device() == device) return;
  throw ShapeError(std::string(name) + ": expected a tensor on cpu" + (device == kCpu ? "" : " or " + str(device)) +
                   ", found " + describe(tensor));
}

void check_device(const char* name, const Tensor& in, const Tensor& out, Device device) {
  check_device(name, in, device);
  check_device(name, out, device);
  if (in.device() == out.device()) return;
  throw ShapeError(std::string(name) + ": expected both tensors on one device, found " + describe(in) + " and " +
                   describe(out));
}

void check_reduction(const char* name, DType dtype, ReduceOp op, float premultiply) {
  const bool integer = dtype == DType::kInt32 || dtype == DType::kInt64;
  if (!is_floating(dtype) && !integer) {
    throw ShapeError(std::string(name) + ": expected a floating dtype, int32 or int64, found " +
                     std::string(name_of(dtype)));
  }
  if (integer && op == ReduceOp::kAverage) {
    throw ShapeError(std::string(name) + ": the average of " + std::string(name_of(dtype)) + " is not defined",
                     "Sum, and divide where a fraction can be held.");
  }
  if ((integer || op == ReduceOp::kMax) && premultiply != 1.0f) {
    throw ShapeError(fmt::format("{}: integers and maxima take no factor, found premultiply {:f}", name, premultiply));
  }
}

void check_slices(const char* name, const Tensor& whole, const Tensor& part, int size) {
  if (whole.dtype() != part.dtype() || whole.numel() != part.numel() * size) {
    throw ShapeError(fmt::format("{} over {} ranks: {} does not hold {} times {}", name, size, describe(whole), size,
                                 describe(part)));
  }
}

void check_root(const char* name, int root, int size) {
  if (root < 0 || root >= size) {
    throw UsageError(fmt::format("{}: root {} is not one of the {} ranks", name, root, size));
  }
}

}  // namespace lockstep::comm
