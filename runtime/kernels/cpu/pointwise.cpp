// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pointwise.h"

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

void unary(const UnaryFunction& function, const Tensor& x, const Tensor& y) {
  checks::same("unary", x, y);
  if (!is_fast(x)) return reference::kPointwise.unary(function, x, y);
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().unary(function, input(x).from(begin), output(y).from(begin), n);
  });
}

void unary_backward(const UnaryFunction& function, const Tensor& at, const Tensor& dy, const Tensor& dx) {
  checks::unary_backward(at, dy, dx);
  if (!is_fast(at)) return reference::kPointwise.unary_backward(function, at, dy, dx);
  parallel_elements(at.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().unary_backward(function, input(at).from(begin), input(dy).from(begin), output(dx).from(begin), n);
  });
}

void dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y) {
  checks::dropout(x, p, y);
  if (!is_fast(x)) return reference::kPointwise.dropout(x, p, key, first_element, y);
  DropoutKey here = key;
  if (key.position != nullptr && x.numel() > 0) {
    here.step += key.position->step;
    first_element += key.position->first_sample * (x.numel() / x.size(0));
  }
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().dropout(input(x).from(begin), p, here, first_element + begin, output(y).from(begin), n);
  });
}

void random(Distribution distribution, double first, double second, const RandomKey& key, std::int64_t first_element,
            const Tensor& out) {
  checks::random(first_element, out);
  if (!is_fast(out)) return reference::kPointwise.random(distribution, first, second, key, first_element, out);
  parallel_elements(out.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().random(distribution, first, second, key, first_element + begin, output(out).from(begin), n);
  });
}

}  // namespace

const Pointwise kPointwise{.unary = unary, .unary_backward = unary_backward, .dropout = dropout, .random = random};

}  // namespace lockstep::kernels::cpu
