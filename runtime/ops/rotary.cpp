// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

/// x cos + direction (x with its halves exchanged) sin.
Tensor turned(const Tensor& x, const RotaryTable& table, double direction) {
  const autograd::NoGrad unrecorded;
  const WithoutAutocast as_given;
  const std::int64_t half = x.shape().back() / 2;
  const Tensor halves = flip(x.detach({x.numel() / std::max<std::int64_t>(2 * half, 1), 2, half}), {1});
  const Tensor y = addcmul(mul(x, table.cos), halves.detach(x.shape()), table.sin, direction);
  return y.dtype() == x.dtype() ? y : converted(y, x.dtype());
}

Tensor turn(const Tensor& input, const RotaryTable& table, double direction) {
  const Tensor x = amp::autocast(amp::Op::kRotary, input);
  const Tensor y = turned(x, table, direction);
  autograd::record(y, name_of(amp::Op::kRotary), {x},
                   {.recorded = [table, direction](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{turn(dy, table, -direction)};
                   }});
  return y;
}

/// As transformers' _compute_linear_scaling_rope_parameters and _compute_llama3_parameters.
double scaled(double frequency, const RotaryScaling& scaling) {
  const double slow = frequency / scaling.factor;
  if (scaling.kind == RotaryScalingKind::kLinear) return slow;
  // How often the wave goes into the first training's texts.
  const double times = static_cast<double>(scaling.original_context) * frequency / (2 * std::numbers::pi);
  const double low = scaling.low_freq_factor, high = scaling.high_freq_factor;
  if (times > high) return frequency;
  if (times < low) return slow;
  const double share = (times - low) / (high - low);
  return (1 - share) * slow + share * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(std::int64_t channels, double theta,
                                       const std::optional<RotaryScaling>& scaling) {
  if (channels < 2 || channels % 2 != 0 || !(theta > 0)) {
    throw UsageError(
        fmt::format("rotary positions of {} channels with theta {}: expected an even number of channels "
                    "and theta > 0",
                    channels, theta));
  }
  const std::int64_t half = channels / 2;
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
    frequencies.push_back(scaling ? scaled(frequency, *scaling) : frequency);
  }
  return frequencies;
}

RotaryTable rotary_table(std::int64_t length, const std::vector<double>& frequencies, DType dtype) {
  std::vector<double> cos, sin;
  for (std::int64_t t = 0; t < length; ++t) {
    for (const double sign : {-1.0, 1.0}) {
      for (const double frequency : frequencies) {
        cos.push_back(std::cos(static_cast<double>(t) * frequency));
        sin.push_back(sign * std::sin(static_cast<double>(t) * frequency));
      }
    }
  }
  const Shape shape{length, 2 * static_cast<std::int64_t>(frequencies.size())};
  const auto as_dtype = [dtype](const Tensor& exact) {
    return dtype == DType::kFloat64 ? exact : converted(exact, dtype);
  };
  return {as_dtype(Tensor::from(cos, shape)), as_dtype(Tensor::from(sin, shape))};
}

RotaryTable rotary_table(std::int64_t length, std::int64_t channels, double theta, DType dtype) {
  return rotary_table(length, rotary_frequencies(channels, theta), dtype);
}

Tensor rotary(const Tensor& x, const RotaryTable& table) {
  require_defined(x, name_of(amp::Op::kRotary), "the input");
  require_defined(table.cos, name_of(amp::Op::kRotary), "the table's cos");
  require_defined(table.sin, name_of(amp::Op::kRotary), "the table's sin");
  const Tensor& cos = table.cos;
  const bool fits = x.shape().rank() >= 2 && cos.shape() == Shape{x.size(-2), x.size(-1)} &&
                    table.sin.shape() == cos.shape() && x.size(-1) % 2 == 0 && cos.dtype() == wide_of(x.dtype());
  if (!fits) throw ShapeError(fmt::format("rotary of {} with the angles {}", describe(x), describe(cos)));
  const Tensor y = turn(x, table, 1);
  autograd::note_options(y, RotaryOptions(), table.cos, table.sin);
  return y;
}

}  // namespace lockstep::ops
