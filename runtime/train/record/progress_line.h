// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::train {

/// The content of a progress line.
struct ProgressState {
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  std::chrono::seconds elapsed{0};
  std::optional<std::chrono::seconds> left;  ///< nothing where it cannot be told yet
  double loss = 0.0;
  double samples_per_s = 0.0;
  std::optional<double> loss_scale;  ///< nothing where it does not change
  std::uint64_t skips = 0;
};

/// The state in one line of at most `columns` characters: percent, bar, steps, time, loss, rate, scale and skips, as
/// many as fit. As the room shrinks, first the bar becomes short and goes; then go the time elapsed, the scale, the
/// rate, the skips, the time left, the loss and the steps. Empty where not even the percentage fits. ASCII.
std::string progress_line(const ProgressState& state, int columns);

/// "0:07", "12:34", "1:02:03", "3d 04:05"
std::string duration_text(std::chrono::seconds duration);
/// "1,234,567"
std::string grouped(std::uint64_t number);

}  // namespace lockstep::train
