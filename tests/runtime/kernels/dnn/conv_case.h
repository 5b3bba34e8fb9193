// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/shape.h"

namespace lockstep::kernels::testing {

/// A convolution that the tests of every way to compute one are given.
struct ConvCase {
  const char* name;
  ConvGeometry geometry;
  Shape x;
  Shape weight;
};

}  // namespace lockstep::kernels::testing
