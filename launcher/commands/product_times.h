// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::launcher {

/// The time of matrix products in 16 bits on the CPU, over that of the same ones in float32, measured in less than a
/// second: {"64": {"float16": 1.9, "bfloat16": 1.2}, "512": {...}}, by rows and columns of square matrices.
nlohmann::ordered_json measure_product_times();

/// One sentence on the dtype that is the fastest by these times.
std::string advice_on(const nlohmann::ordered_json& product_times);

}  // namespace lockstep::launcher
