// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

using Binary = void (*)(Input, Input, Output, std::int64_t);
using BinaryChannels = void (*)(Input, const float*, Output, std::int64_t, std::int64_t);

void binary(const Tensor& a, const Tensor& b, const Tensor& out, Binary loop) {
  parallel_elements(a.numel(), [&](std::int64_t begin, std::int64_t n) {
    loop(input(a).from(begin), input(b).from(begin), output(out).from(begin), n);
  });
}

void binary_channels(const Tensor& a, const Tensor& b, const Tensor& out, BinaryChannels loop) {
  const std::int64_t channels = b.numel();
  if (a.numel() == 0) return;
  const Tensor widened = b.dtype() == DType::kFloat32 ? b : Tensor::empty(b.shape(), DType::kFloat32);
  if (!widened.is(b)) loops().convert(input(b), output(widened), channels);
  parallel_rows(a.numel() / channels, channels, [&](std::int64_t first, std::int64_t rows) {
    loop(input(a).from(first * channels), static_cast<const float*>(widened.data()), output(out).from(first * channels),
         rows, channels);
  });
}

void fill(const Tensor& out, double value) {
  Check("fill").that(out.defined(), "out must be defined");
  if (value == 0) {
    // Zero has the same bytes in every dtype.
    std::memset(out.data(), 0, out.bytes());
    return;
  }
  if (!is_fast(out)) return reference::kElementwise.fill(out, value);
  const float as_float = static_cast<float>(value);
  std::uint32_t bits = 0;
  loops().convert({&as_float, DType::kFloat32}, {&bits, out.dtype()}, 1);
  parallel_elements(out.numel(), [&](std::int64_t begin, std::int64_t n) {
    if (out.dtype() == DType::kFloat32) {
      std::fill_n(static_cast<std::uint32_t*>(out.data()) + begin, n, bits);
    } else {
      std::fill_n(static_cast<std::uint16_t*>(out.data()) + begin, n, static_cast<std::uint16_t>(bits));
    }
  });
}

void cast(const Tensor& in, const Tensor& out) {
  checks::cast(in, out);
  if (in.dtype() == out.dtype()) {
    std::memmove(out.data(), in.data(), in.bytes());
    return;
  }
  if (!is_fast(in) || !is_fast(out)) return reference::kElementwise.cast(in, out);
  parallel_elements(in.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().convert(input(in).from(begin), output(out).from(begin), n);
  });
}

void copy_unless(const float* rejected, const Tensor& in, const Tensor& out) {
  checks::same("copy_unless", in, out);
  if (*rejected == 0.0f) std::memcpy(out.data(), in.data(), in.bytes());
}

void accumulate(const Tensor& in, const Tensor& out) {
  checks::same_shape_floating("accumulate", in, out);
  if (!is_fast(in) || !is_fast(out)) return reference::kElementwise.accumulate(in, out);
  parallel_elements(in.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().accumulate(input(in).from(begin), output(out).from(begin), n);
  });
}

void add(const Tensor& a, const Tensor& b, const Tensor& out) {
  const bool channels = checks::binary("add", a, b, out);
  if (!is_fast(a)) return reference::kElementwise.add(a, b, out);
  if (channels) return binary_channels(a, b, out, loops().add_channels);
  binary(a, b, out, loops().add);
}

void multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  const bool channels = checks::binary("multiply", a, b, out);
  if (!is_fast(a)) return reference::kElementwise.multiply(a, b, out);
  if (channels) return binary_channels(a, b, out, loops().multiply_channels);
  binary(a, b, out, loops().multiply);
}

void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) {
  checks::same("scale", in, out);
  if (!is_fast(in)) return reference::kElementwise.scale(in, factor, device_factor, out);
  const float whole = static_cast<float>(device_factor != nullptr ? factor * *device_factor : factor);
  parallel_elements(in.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().scale(input(in).from(begin), whole, output(out).from(begin), n);
  });
}

}  // namespace

const Elementwise kElementwise{.fill = fill,
                               .cast = cast,
                               .copy_unless = copy_unless,
                               .accumulate = accumulate,
                               .add = add,
                               .multiply = multiply,
                               .scale = scale};

}  // namespace lockstep::kernels::cpu
