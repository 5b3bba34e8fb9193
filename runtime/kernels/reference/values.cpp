// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reference/values.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/kernels/functors/convert.h"
#include "runtime/kernels/functors/visit_dtype.h"

namespace lockstep::kernels::reference {

namespace {

void require_cpu(const Tensor& tensor) {
  if (tensor.device() != kCpu) throw UsageError("the reference backend computes on the CPU, found " + describe(tensor));
}

}  // namespace

Values load(const Tensor& tensor) {
  require_cpu(tensor);
  Values values(static_cast<std::size_t>(tensor.numel()));
  visit_dtype(tensor.dtype(),
              [&]<class T>() { std::ranges::transform(tensor.as<T>(), values.begin(), convert<double, T>); });
  return values;
}

void store(const Values& values, const Tensor& tensor) {
  require_cpu(tensor);
  visit_dtype(tensor.dtype(),
              [&]<class T>() { std::ranges::transform(values, tensor.mutable_as<T>().begin(), convert<T, double>); });
}

Values load_if(bool accumulate, const Tensor& tensor) {
  return accumulate ? load(tensor) : Values(static_cast<std::size_t>(tensor.numel()), 0.0);
}

double rounded(double value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>() { return convert<double>(convert<T>(value)); });
}

}  // namespace lockstep::kernels::reference
