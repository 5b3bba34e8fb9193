// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/activation.h"

namespace lockstep::kernels::reference {

double activation(Activation kind, double x);
/// At the output where derivative_follows_from_output(kind), else at the input.
double activation_derivative(Activation kind, double at);

}  // namespace lockstep::kernels::reference
