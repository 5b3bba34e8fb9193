// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/activation.h"
#include "runtime/kernels/geometry/spatial.h"
#include "runtime/kernels/random_keys.h"

namespace lockstep::ops {

// Arguments of operations that their kernels take as they are.
using kernels::Activation;
using kernels::ConvGeometry;
using kernels::DropoutKey;
using kernels::PoolGeometry;
using kernels::PoolKind;
using kernels::RandomKey;
using kernels::UpsampleMode;

}  // namespace lockstep::ops
