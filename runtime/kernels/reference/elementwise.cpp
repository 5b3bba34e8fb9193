// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/kernels/functors/convert.h"
#include "runtime/kernels/functors/philox.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/reference_backend.h"
#include "runtime/kernels/reference/values.h"
#include "runtime/kernels/reference/visit.h"

namespace lockstep::kernels {

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

}  // namespace

void ReferenceBackend::fill(const Tensor& out, double value) {
  store(Values(static_cast<std::size_t>(out.numel()), value), out);
}

void ReferenceBackend::cast(const Tensor& in, const Tensor& out) {
  checks::cast(in, out);
  visit_dtype(in.dtype(), [&]<class In>() {
    visit_dtype(out.dtype(), [&]<class Out>() {
      std::ranges::transform(in.as<In>(), out.mutable_as<Out>().begin(), convert<Out, In>);
    });
  });
}

void ReferenceBackend::copy_unless(const float* rejected, const Tensor& in, const Tensor& out) {
  checks::same("copy_unless", in, out);
  if (*rejected == 0.0f) std::memcpy(out.data(), in.data(), in.bytes());
}

void ReferenceBackend::accumulate(const Tensor& in, const Tensor& out) {
  checks::same_shape_floating("accumulate", in, out);
  const Values values = load(in);
  Values sums = load(out);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  store(sums, out);
}

void ReferenceBackend::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  binary("add", a, b, out, [](double x, double y) { return x + y; });
}

void ReferenceBackend::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  binary("multiply", a, b, out, [](double x, double y) { return x * y; });
}

void ReferenceBackend::scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) {
  checks::same("scale", in, out);
  if (device_factor != nullptr) factor *= *device_factor;
  Values values = load(in);
  for (double& value : values) value *= factor;
  store(values, out);
}

void ReferenceBackend::dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element,
                               const Tensor& y) {
  checks::dropout(x, p, y);
  const StepPosition moved = key.position != nullptr ? *key.position : StepPosition{};
  const CounterRng rng(key.seed, CounterRng::Purpose::kDropout, key.layer, key.step + moved.step, key.call);
  if (x.numel() > 0) first_element += moved.first_sample * (x.numel() / x.size(0));
  Values values = load(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Compared in float, in which the number is drawn: every backend must keep the same elements.
    const bool keep = rng.uniform(static_cast<std::uint64_t>(first_element) + i) >= static_cast<float>(p);
    values[i] = keep ? values[i] / (1 - p) : 0;
  }
  store(values, y);
}

}  // namespace lockstep::kernels
