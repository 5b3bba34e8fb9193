// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/upsample.h"

#include <utility>

#include "runtime/ops/upsample.h"

namespace lockstep::nn {

Upsample::Upsample(std::vector<double> scale_factor, ops::UpsampleMode mode, bool align_corners)
    : scale_factor_(std::move(scale_factor)), mode_(mode), align_corners_(align_corners) {}

Tensor Upsample::forward(const Tensor& x) { return ops::upsample_by(x, scale_factor_, mode_, align_corners_); }

}  // namespace lockstep::nn
