// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

void activate(Activation activation, const Tensor& x, const Tensor& y) {
  checks::same("activate", x, y);
  if (!is_fast(x)) return reference::kPointwise.activate(activation, x, y);
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().activate(activation, input(x).from(begin), output(y).from(begin), n);
  });
}

void activate_backward(Activation activation, const Tensor& at, const Tensor& dy, const Tensor& dx) {
  checks::activate_backward(at, dy, dx);
  if (!is_fast(at)) return reference::kPointwise.activate_backward(activation, at, dy, dx);
  parallel_elements(at.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().activate_backward(activation, input(at).from(begin), input(dy).from(begin), output(dx).from(begin), n);
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

}  // namespace

const Pointwise kPointwise{.activate = activate, .activate_backward = activate_backward, .dropout = dropout};

}  // namespace lockstep::kernels::cpu
