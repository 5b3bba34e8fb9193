// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/sweep_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "runtime/base/counter_rng.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/train/history/varied_settings.h"

namespace lockstep::launcher {

namespace {

constexpr std::size_t kMostTrials = 100'000;
constexpr std::size_t kLongestName = 120;

struct Axis {
  std::string path;
  std::vector<std::string> values;  ///< of a grid
  std::string kind;                 ///< of what is random
};

UsageError refusal(const std::string& option, const std::string& text, const std::string& expected) {
  return UsageError("--" + option + " " + text + ": expected " + expected,
                    "For example --grid train.steps=100,200 or --random optimizer.sgd.lr=log:1e-4:1e-1.");
}

/// At commas or colons that stand outside of brackets, braces and quotes.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == separator && depth == 0 && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Axis axis_of(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw refusal(option, text, "PATH=VALUES");
  }
  return {.path = text.substr(0, equals), .values = {text.substr(equals + 1)}};
}

double number_of(const std::string& text, const std::string& axis) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    throw refusal("random", axis, "a number in place of \"" + text + "\"");
  }
  return number;
}

/// A distribution, by a number that is uniform in [0, 1).
std::string drawn(const Axis& axis, double u) {
  const std::string& text = axis.values[0];
  const std::string whole = axis.path + "=" + axis.kind + ":" + text;
  if (axis.kind == "choice") {
    const std::vector<std::string> values = split(text, ',');
    return values[static_cast<std::size_t>(u * static_cast<double>(values.size()))];
  }
  const std::vector<std::string> bounds = split(text, ':');
  if (bounds.size() != 2) throw refusal("random", whole, "LOW:HIGH");
  const double low = number_of(bounds[0], whole);
  const double high = number_of(bounds[1], whole);
  if (!(low <= high)) throw refusal("random", whole, "a LOW that is not above HIGH");
  if (axis.kind == "int" && (low != std::floor(low) || high != std::floor(high))) {
    throw refusal("random", whole, "whole bounds");
  }
  if (axis.kind == "int") return fmt::format("{:.0f}", std::floor(low + u * (high - low + 1)));
  if (axis.kind == "log" && low <= 0) throw refusal("random", whole, "bounds above 0");
  const double value = axis.kind == "log" ? low * std::pow(high / low, u) : low + u * (high - low);
  // The digits of the run's name are those of its setting.
  return fmt::format("{:.4g}", value);
}

Axis random_axis(const std::string& text) {
  Axis axis = axis_of("random", text);
  const std::size_t colon = axis.values[0].find(':');
  axis.kind = axis.values[0].substr(0, colon);
  static const std::set<std::string> kKinds{"log", "uniform", "int", "choice"};
  if (colon == std::string::npos || !kKinds.contains(axis.kind)) {
    throw refusal("random", text, "PATH=log:LOW:HIGH, uniform:LOW:HIGH, int:LOW:HIGH or choice:A,B");
  }
  axis.values[0] = axis.values[0].substr(colon + 1);
  drawn(axis, 0.0);
  return axis;
}

/// 53 bits of it, by the seed, the draw and the setting alone.
double uniform(std::uint64_t seed, std::uint64_t draw, const std::string& path) {
  Hash128 name;
  name.update(path);
  const auto words = philox(seed, draw, name.high64());
  return static_cast<double>((std::uint64_t{words[0]} << 21) ^ (words[1] >> 11)) * 0x1p-53;
}

std::string name_of(const std::vector<std::string>& settings, const std::map<std::string, std::string>& short_names) {
  std::string name;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    name += (name.empty() ? "" : ",") + short_names.at(setting.substr(0, equals)) + setting.substr(equals);
  }
  std::string safe = name;
  std::ranges::replace_if(
      safe,
      [](unsigned char c) {
        return std::isalnum(c) == 0 && std::string("=,.-+_").find(static_cast<char>(c)) == std::string::npos;
      },
      '_');
  if (safe == name && name.size() <= kLongestName) return name;
  Hash128 hash;
  hash.update(name);
  return safe.substr(0, kLongestName) + "-" + hash.hex().substr(0, 8);
}

}  // namespace

std::vector<Trial> trials_of(const SweepSpace& space) {
  std::vector<Axis> grid;
  std::vector<Axis> random;
  train::Settings paths;
  for (const std::string& text : space.grid) {
    grid.push_back(axis_of("grid", text));
    grid.back().values = split(grid.back().values[0], ',');
    if (!paths.emplace(grid.back().path, "").second) throw refusal("grid", text, "each setting once");
  }
  for (const std::string& text : space.random) {
    random.push_back(random_axis(text));
    if (!paths.emplace(random.back().path, "").second) throw refusal("random", text, "each setting once");
  }
  if (paths.empty()) throw UsageError("a sweep needs something to vary: give --grid or --random");
  const auto short_names = train::short_names({paths});
  std::vector<std::vector<std::string>> points{{}};
  for (const Axis& axis : grid) {
    std::vector<std::vector<std::string>> more;
    for (const auto& point : points) {
      for (const std::string& value : axis.values) {
        more.push_back(point);
        more.back().push_back(axis.path + "=" + value);
      }
    }
    points = std::move(more);
    if (points.size() > kMostTrials) throw UsageError(fmt::format("a sweep of more than {} runs", kMostTrials));
  }
  const std::uint64_t draws = random.empty() ? 1 : space.draws;
  if (draws > kMostTrials / points.size()) throw UsageError(fmt::format("a sweep of more than {} runs", kMostTrials));
  std::vector<Trial> trials;
  std::set<std::string> names;
  for (const auto& point : points) {
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      std::vector<std::string> settings = point;
      for (const Axis& axis : random)
        settings.push_back(axis.path + "=" + drawn(axis, uniform(space.seed, draw, axis.path)));
      std::string name = name_of(settings, short_names);
      // Two equal draws are one run.
      if (names.insert(name).second) trials.push_back({std::move(name), std::move(settings)});
    }
  }
  return trials;
}

}  // namespace lockstep::launcher
