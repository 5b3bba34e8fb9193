// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::amp {

/// The numbers that a GradScaler has learned, to be saved and loaded. The factors are for information.
struct GradScalerState {
  float scale = 0.0f;  ///< 0: empty, of no scaler or a disabled one
  double growth_factor = 0.0;
  double backoff_factor = 0.0;
  std::uint32_t growth_interval = 0;
  std::uint32_t growth_tracker = 0;
  std::uint32_t consecutive_skips = 0;
  std::uint64_t skipped_steps = 0;

  bool empty() const { return !(scale > 0.0f); }
  bool operator==(const GradScalerState&) const = default;
};

/// As PyTorch's GradScaler.state_dict() has it, {"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5,
/// "growth_interval": 2000, "_growth_tracker": 0}, with "consecutive_skips" and "skipped_steps" behind, which PyTorch
/// does not read; {} for an empty one.
std::string to_json(const GradScalerState& state);

/// Reads what to_json() or json.dumps(scaler.state_dict()) has written; ignores other fields. Throws UsageError that
/// names the field that is missing or cannot be used.
GradScalerState grad_scaler_state_from_json(std::string_view text);

}  // namespace lockstep::amp
