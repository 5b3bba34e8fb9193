// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"

namespace lockstep::kernels {

double activation(Activation kind, double x);
double activation_derivative(Activation kind, double x);

}  // namespace lockstep::kernels
