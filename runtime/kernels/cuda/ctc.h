// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/losses.h"

namespace lockstep::kernels::cuda {

Function<decltype(Losses::ctc)> ctc;
Function<decltype(Losses::ctc_backward)> ctc_backward;

}  // namespace lockstep::kernels::cuda
