// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/engine_name.h"

#include <charconv>

namespace lockstep::kernels {

namespace {

/// Takes `prefix` and then a number from the front of `text`; false where they are not there.
template <class Number>
bool take(std::string_view& text, std::string_view prefix, Number& number) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

}  // namespace

std::optional<EngineName> EngineName::parse(std::string_view name) {
  EngineName result;
  if (!take(name, "eng", result.engine)) return {};
  while (!name.empty()) {
    auto& [knob, choice] = result.knobs.emplace_back();
    if (!take(name, "_k", knob) || !take(name, "=", choice)) return {};
  }
  return result;
}

}  // namespace lockstep::kernels
