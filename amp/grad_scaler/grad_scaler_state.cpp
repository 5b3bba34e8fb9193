// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "amp/grad_scaler/grad_scaler.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/kernels/functors/decisions.h"

namespace lockstep::amp {

namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError("the state of a GradScaler: " + what,
                   "It is the JSON text of GradScaler::state_dict() or of PyTorch's scaler.state_dict().");
}

/// A required field, or where `fallback` is there an optional one.
const json& field_of(const json& state, const char* name, const json* fallback = nullptr) {
  const auto found = state.find(name);
  if (found != state.end()) return *found;
  if (fallback == nullptr) refuse(fmt::format("\"{}\" is missing", name));
  return *fallback;
}

double positive(const json& state, const char* name) {
  const json& value = field_of(state, name);
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number > 0) || number > std::numeric_limits<float>::max()) {
    refuse(fmt::format("\"{}\" must be a positive float32 number, is {}", name, shown(value)));
  }
  return number;
}

template <class Integer>
Integer count(const json& state, const char* name, const json* fallback = nullptr) {
  const json& value = field_of(state, name, fallback);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
    refuse(fmt::format("\"{}\" must be a whole number from 0 to 2147483647, is {}", name, shown(value)));
  }
  return value.get<Integer>();
}

}  // namespace

std::string to_json(const GradScalerState& state) {
  if (state.empty()) return "{}";
  nlohmann::ordered_json fields;
  fields["scale"] = state.scale;
  fields["growth_factor"] = state.growth_factor;
  fields["backoff_factor"] = state.backoff_factor;
  fields["growth_interval"] = state.growth_interval;
  fields["_growth_tracker"] = state.growth_tracker;
  fields["consecutive_skips"] = state.consecutive_skips;
  fields["skipped_steps"] = state.skipped_steps;
  return fields.dump();
}

GradScalerState grad_scaler_state_from_json(std::string_view text) {
  const json state = parse_json(text);
  if (!state.is_object()) refuse("no JSON object");
  if (state.empty()) return {};
  const json none = 0u;
  GradScalerState read{.scale = static_cast<float>(positive(state, "scale")),
                       .growth_factor = positive(state, "growth_factor"),
                       .backoff_factor = positive(state, "backoff_factor"),
                       .growth_interval = count<std::uint32_t>(state, "growth_interval"),
                       .growth_tracker = count<std::uint32_t>(state, "_growth_tracker"),
                       .consecutive_skips = count<std::uint32_t>(state, "consecutive_skips", &none),
                       .skipped_steps = count<std::uint64_t>(state, "skipped_steps", &none)};
  if (read.empty()) refuse("\"scale\" is too small for float32");
  return read;
}

GradScalerState GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  const kernels::LossScaleState state = now();
  return {.scale = state.scale,
          .growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval,
          .growth_tracker = static_cast<std::uint32_t>(state.growth_tracker),
          .consecutive_skips = static_cast<std::uint32_t>(state.consecutive_skips),
          .skipped_steps = static_cast<std::uint64_t>(state.skipped_steps)};
}

void GradScaler::load_state_dict(const GradScalerState& saved) {
  if (!options_.enabled) return;
  if (saved.empty()) {
    throw UsageError("the state is empty: it comes from a disabled GradScaler or a checkpoint without one");
  }
  kernels::LossScaleState state = now();
  if (options_.dynamic) {
    state.scale = static_cast<float>(std::clamp(static_cast<double>(saved.scale), options_.min, options_.max));
  }
  if (state.scale != now().scale) ++scale_changes_;
  state.inverse = kernels::inverse_of_scale(state.scale);
  state.growth_tracker = static_cast<std::int32_t>(saved.growth_tracker);
  state.consecutive_skips = static_cast<std::int32_t>(saved.consecutive_skips);
  state.skipped_steps = static_cast<std::int64_t>(saved.skipped_steps);
  initial_ = state;
  if (state_.defined()) state_.write(state);
}

}  // namespace lockstep::amp
