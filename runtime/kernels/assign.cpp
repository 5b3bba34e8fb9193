// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/assign.h"

#include "runtime/kernels/elementwise.h"

namespace lockstep::kernels {

void fill(const Tensor& out, double value) { Elementwise::on(out.device()).fill(out, value); }

void cast(const Tensor& in, const Tensor& out) { Elementwise::on(out.device()).cast(in, out); }

void accumulate(const Tensor& in, const Tensor& out) { Elementwise::on(out.device()).accumulate(in, out); }

void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) {
  Elementwise::on(out.device()).scale(in, factor, device_factor, out);
}

void add(const Tensor& a, const Tensor& b, const Tensor& out) { Elementwise::on(out.device()).add(a, b, out); }

void multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  Elementwise::on(out.device()).multiply(a, b, out);
}

}  // namespace lockstep::kernels
