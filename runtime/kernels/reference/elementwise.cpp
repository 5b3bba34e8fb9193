// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/functors/binary.h"
#include "runtime/kernels/functors/convert.h"
#include "runtime/kernels/functors/visit_dtype.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

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

void binary(Binary which, const Tensor& a, const Tensor& b, const Tensor& out) {
  checks::binary(which, a, b, out);
  const Values as = load(a), bs = load(b);
  const BroadcastWalk walk(out.shape(), {a.shape(), b.shape()});
  Values values(static_cast<std::size_t>(out.numel()));
  visit_binary(which, [&]<class Function>(Function) {
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      values[index(i)] = Function::value(as[index(walk.offset(0, i))], bs[index(walk.offset(1, i))]);
    }
  });
  store(values, out);
}

void binary_with_number(Binary which, const Tensor& x, double number, bool number_first, const Tensor& out) {
  checks::binary_with_number(which, x, out);
  Values values = load(x);
  visit_binary(which, [&]<class Function>(Function) {
    for (double& value : values) value = number_first ? Function::value(number, value) : Function::value(value, number);
  });
  store(values, out);
}

void ternary(const TernaryFunction& which, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  checks::ternary(which, a, b, c, out);
  const Values as = load(a), bs = load(b), cs = load(c);
  const BroadcastWalk walk(out.shape(), {a.shape(), b.shape(), c.shape()});
  Values values(static_cast<std::size_t>(out.numel()));
  visit_ternary(which, [&](const auto& function) {
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      values[index(i)] =
          function.value(as[index(walk.offset(0, i))], bs[index(walk.offset(1, i))], cs[index(walk.offset(2, i))]);
    }
  });
  store(values, out);
}

void expand(const Tensor& in, const Tensor& out) {
  checks::expand(in, out);
  const Values from = load(in);
  const BroadcastWalk walk(out.shape(), {in.shape()});
  Values values(static_cast<std::size_t>(out.numel()));
  for (std::int64_t i = 0; i < out.numel(); ++i) values[index(i)] = from[index(walk.offset(0, i))];
  store(values, out);
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
                               .scale = scale,
                               .binary = binary,
                               .binary_with_number = binary_with_number,
                               .ternary = ternary,
                               .expand = expand};

}  // namespace lockstep::kernels::reference
