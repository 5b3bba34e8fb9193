// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/kernels/functors/convert.h"
#include "runtime/kernels/functors/visit_dtype.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

template <class Function>
void binary(std::string_view operation, const Tensor& a, const Tensor& b, const Tensor& out, Function function) {
  checks::binary(operation, a, b, out);
  Values values = load(a);
  const Values other = load(b);
  // b is as long as a, or as one row of it.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = function(values[i], other[i % other.size()]);
  store(values, out);
}

void fill(const Tensor& out, double value) { store(Values(static_cast<std::size_t>(out.numel()), value), out); }

void cast(const Tensor& in, const Tensor& out) {
  checks::cast(in, out);
  visit_dtype(in.dtype(), [&]<class In>() {
    visit_dtype(out.dtype(), [&]<class Out>() {
      std::ranges::transform(in.as<In>(), out.mutable_as<Out>().begin(), convert<Out, In>);
    });
  });
}

void copy_unless(const float* rejected, const Tensor& in, const Tensor& out) {
  checks::same("copy_unless", in, out);
  if (*rejected == 0.0f) std::memcpy(out.data(), in.data(), in.bytes());
}

void accumulate(const Tensor& in, const Tensor& out) {
  checks::same_shape_floating("accumulate", in, out);
  const Values values = load(in);
  Values sums = load(out);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  store(sums, out);
}

void add(const Tensor& a, const Tensor& b, const Tensor& out) {
  binary("add", a, b, out, [](double x, double y) { return x + y; });
}

void multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  binary("multiply", a, b, out, [](double x, double y) { return x * y; });
}

void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) {
  checks::same("scale", in, out);
  if (device_factor != nullptr) factor *= *device_factor;
  Values values = load(in);
  for (double& value : values) value *= factor;
  store(values, out);
}

}  // namespace

const Elementwise kElementwise{.fill = fill,
                               .cast = cast,
                               .copy_unless = copy_unless,
                               .accumulate = accumulate,
                               .add = add,
                               .multiply = multiply,
                               .scale = scale};

}  // namespace lockstep::kernels::reference
