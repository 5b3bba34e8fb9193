// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/product_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/kernels/floors.h"
#include "runtime/tensor/dtype.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

/// The extents of the matrices of a small layer, and of those of a large one.
constexpr std::int64_t kSmall = 64;
constexpr std::int64_t kLarge = 512;
constexpr std::chrono::milliseconds kTime{25};
/// The ratio of two times from which on they differ by noise alone.
constexpr double kFaster = 0.95;

double seconds_of(DType dtype, std::int64_t size) { return kernels::seconds_of_product(dtype, size, kCpu, kTime); }

}  // namespace

Json measure_product_times() {
  Json times;
  for (const std::int64_t size : {kSmall, kLarge}) {
    const double of_float32 = seconds_of(DType::kFloat32, size);
    Json& by_dtype = times[std::to_string(size)];
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      by_dtype[name_of(dtype)] = std::round(100 * seconds_of(dtype, size) / of_float32) / 100;
    }
  }
  return times;
}

std::string advice_on(const Json& product_times) {
  const Json& large = product_times.back();
  const double float16 = large["float16"];
  const double bfloat16 = large["bfloat16"];
  if (std::min(float16, bfloat16) >= kFaster) {
    return "For speed, train with amp { opt_level: O0 dtype: FP32 } here; 16 bits halve memory and messages alone.";
  }
  const std::string dtype = bfloat16 <= float16 ? "BF16" : "FP16";
  return "For speed, train large layers with amp { opt_level: O1 dtype: " + dtype +
         " } here, and compare FP32 where layers are small.";
}

}  // namespace lockstep::launcher
