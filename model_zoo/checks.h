// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model_zoo/model_input.h"

namespace lockstep::model_zoo {

// Checks of options. Each throws FieldError, "PATH: must be >= 1, is 0".

void require(bool holds, const std::string& path, std::string_view rule, double value);
void require_at_least_one(std::int64_t value, const std::string& path);
void require_at_least_one(const std::vector<std::int64_t>& values, const std::string& path);
/// 0 <= value < 1.
void require_fraction(double value, const std::string& path);
/// Samples [H, W, C].
void require_images(const ModelInput& input, const std::string& path);

}  // namespace lockstep::model_zoo
