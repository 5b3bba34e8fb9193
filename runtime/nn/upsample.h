// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/nn/module.h"
#include "runtime/ops/types.h"

namespace lockstep::nn {

/// x [N, spatial..., C] with its extents times `scale_factor`, one for all dimensions or one for each:
/// ops::upsample_by.
class Upsample : public Module {
 public:
  explicit Upsample(std::vector<double> scale_factor, ops::UpsampleMode mode = ops::UpsampleMode::kNearest,
                    bool align_corners = false);
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<double> scale_factor_;
  ops::UpsampleMode mode_;
  bool align_corners_;
};

}  // namespace lockstep::nn
