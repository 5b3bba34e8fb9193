// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/progress_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace lockstep::train {

namespace {

constexpr std::size_t kLongestBar = 30;
constexpr std::size_t kShortestBar = 8;

/// A part of the line. The highest `goes` leaves first.
struct Part {
  int goes;
  std::string text;
};

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

/// 7,512 as "7512", 1,234,567 as "1.23M".
std::string short_number(double value) {
  if (!(value < 1e5)) return format("%.3gM", value / 1e6);
  return value < 10.0 ? format("%.2f", value) : format("%.0f", value);
}

double share_of(const ProgressState& state) {
  if (state.steps == 0) return 1.0;
  return std::clamp(static_cast<double>(state.step) / static_cast<double>(state.steps), 0.0, 1.0);
}

std::size_t width_of(const std::vector<Part>& parts) {
  std::size_t width = 0;
  for (const Part& part : parts) width += part.text.size() + 2;
  return parts.empty() ? 0 : width - 2;
}

std::string bar(double share, std::size_t width) {
  const std::size_t inside = width - 2;
  std::string text(inside, '.');
  std::fill_n(text.begin(), static_cast<std::size_t>(share * static_cast<double>(inside)), '#');
  text.insert(0, 1, '[');
  text.push_back(']');
  return text;
}

}  // namespace

std::string progress_line(const ProgressState& state, int columns) {
  const auto room = static_cast<std::size_t>(std::max(columns, 0));
  const double share = share_of(state);
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  // Rounded down: 100 % means that all steps are done.
  std::vector<Part> parts{{0, format("%3.0f %%", std::floor(100.0 * share))},
                          {1, format("%llu/%llu", number(state.step), number(state.steps))},
                          {7, duration_text(state.elapsed)}};
  if (state.left) parts.push_back({3, "eta " + duration_text(*state.left)});
  parts.push_back({2, format("loss %.4g", state.loss)});
  parts.push_back({5, short_number(state.samples_per_s) + " samples/s"});
  if (state.loss_scale) parts.push_back({6, format("scale %g", *state.loss_scale)});
  if (state.skips > 0) parts.push_back({4, format("%llu skipped", number(state.skips))});
  while (width_of(parts) > room) {
    if (parts.size() == 1) return {};
    parts.erase(std::ranges::max_element(parts, {}, &Part::goes));
  }
  const std::size_t left = room - width_of(parts);
  if (left >= kShortestBar + 2) {
    parts.insert(parts.begin() + 1, {8, bar(share, std::min(left - 2, kLongestBar))});
  }
  std::string line;
  for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

std::string duration_text(std::chrono::seconds duration) {
  const auto seconds = static_cast<long long>(std::max(duration, std::chrono::seconds(0)).count());
  const long long minutes = seconds / 60 % 60;
  const long long hours = seconds / 3600;
  if (hours >= 24) return format("%lldd %02lld:%02lld", hours / 24, hours % 24, minutes);
  if (hours > 0) return format("%lld:%02lld:%02lld", hours, minutes, seconds % 60);
  return format("%lld:%02lld", minutes, seconds % 60);
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

}  // namespace lockstep::train
