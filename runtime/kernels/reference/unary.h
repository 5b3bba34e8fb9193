// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/unary.h"

namespace lockstep::kernels::reference {

double unary(const UnaryFunction& function, double x);
/// The derivative; `at` is the output where derivative_follows_from_output(function.kind), else the input.
double unary_derivative(const UnaryFunction& function, double at);

}  // namespace lockstep::kernels::reference
