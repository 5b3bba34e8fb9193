// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

/// An operand's elements as float32.
Tensor widened(const Tensor& operand) {
  if (operand.dtype() == DType::kFloat32) return operand;
  const Tensor wide = Tensor::empty(operand.shape(), DType::kFloat32);
  loops().convert(input(operand), output(wide), operand.numel());
  return wide;
}

bool is_one_row_of(const Tensor& b, const Tensor& a) {
  return a.shape().rank() > 0 && b.shape() == Shape{a.shape().back()};
}

/// b [channels] for every row of a.
void binary_channels(Binary function, const Tensor& a, const Tensor& b, const Tensor& out) {
  const std::int64_t channels = b.numel();
  const Tensor wide = widened(b);
  parallel_rows(a.numel() / channels, channels, [&](std::int64_t first, std::int64_t rows) {
    loops().binary_channels(function, input(a).from(first * channels), static_cast<const float*>(wide.data()),
                            output(out).from(first * channels), rows, channels);
  });
}

void with_number(Binary function, const Tensor& x, float number, bool number_first, const Tensor& out) {
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().binary_with_number(function, input(x).from(begin), number, number_first, output(out).from(begin), n);
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

void binary(Binary function, const Tensor& a, const Tensor& b, const Tensor& out) {
  checks::binary(function, a, b, out);
  if (!is_fast(a)) return reference::kElementwise.binary(function, a, b, out);
  if (out.numel() == 0) return;
  // The operands that are broadcast most often have loops of their own: a row, and one number.
  if (a.shape() == out.shape() && b.shape() != out.shape()) {
    if (b.numel() == 1) return with_number(function, a, *static_cast<const float*>(widened(b).data()), false, out);
    if (is_one_row_of(b, a)) return binary_channels(function, a, b, out);
  } else if (b.shape() == out.shape() && a.numel() == 1 && out.numel() > 1) {
    return with_number(function, b, *static_cast<const float*>(widened(a).data()), true, out);
  }
  const BroadcastWalk walk(out.shape(), {a.shape(), b.shape()});
  parallel_elements(out.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().binary(function, {input(a), &walk, 0}, {input(b), &walk, 1}, output(out).from(begin), begin, n);
  });
}

void binary_with_number(Binary function, const Tensor& x, double number, bool number_first, const Tensor& out) {
  checks::binary_with_number(function, x, out);
  if (!is_fast(x)) return reference::kElementwise.binary_with_number(function, x, number, number_first, out);
  with_number(function, x, static_cast<float>(number), number_first, out);
}

void ternary(const TernaryFunction& function, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  checks::ternary(function, a, b, c, out);
  if (!is_fast(b)) return reference::kElementwise.ternary(function, a, b, c, out);
  if (out.numel() == 0) return;
  const BroadcastWalk walk(out.shape(), {a.shape(), b.shape(), c.shape()});
  parallel_elements(out.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().ternary(function, {input(a), &walk, 0}, {input(b), &walk, 1}, {input(c), &walk, 2}, output(out).from(begin),
                    begin, n);
  });
}

void expand(const Tensor& in, const Tensor& out) {
  checks::expand(in, out);
  if (!is_fast(in)) return reference::kElementwise.expand(in, out);
  if (out.numel() == 0) return;
  const BroadcastWalk walk(out.shape(), {in.shape()});
  parallel_elements(out.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().expand({input(in), &walk, 0}, output(out).from(begin), begin, n);
  });
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
                               .scale = scale,
                               .binary = binary,
                               .binary_with_number = binary_with_number,
                               .ternary = ternary,
                               .expand = expand};

}  // namespace lockstep::kernels::cpu
