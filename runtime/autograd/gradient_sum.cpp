// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/gradient_sum.h"

#include <utility>
#include <vector>

#include "runtime/autograd/node.h"
#include "runtime/kernels/assign.h"

namespace lockstep::autograd {

Tensor sum_of_gradients(const Tensor& a, const Tensor& b) {
  const Tensor sum = Tensor::empty(a.shape(), promote(a.dtype(), b.dtype()), a.device());
  if (a.dtype() == b.dtype()) {
    kernels::add(a, b, sum);
  } else {
    kernels::cast(a, sum);
    kernels::accumulate(b, sum);
  }
  // The sum is promoted: a gradient goes back in its operand's dtype.
  record(sum, "accumulate", {a, b}, OnLosses::kAdds, {.recorded = [](const Tensor& grad, const BackwardContext&) {
           return std::vector<Tensor>{grad, grad};
         }});
  return sum;
}

void GradientSum::add(const Tensor& grad, bool recorded) {
  if (!sum.defined()) {
    sum = grad;
  } else if (owned && !recorded) {
    kernels::accumulate(grad, sum);
  } else {
    sum = sum_of_gradients(sum, grad);
    owned = true;
  }
}

void GradientSum::add_all_but(const Tensor& last) {
  if (addend.defined()) add(std::exchange(addend, {}), false);
  sum.defined() ? addend = last : sum = last;
}

}  // namespace lockstep::autograd
