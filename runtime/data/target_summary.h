// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// How targets of numbers are scaled for the loss: (t - mean) / std. One value each serves all channels, the last
/// dimension of a target; none: targets are as they stand.
struct TargetScale {
  std::vector<float> mean = {};
  std::vector<float> std = {};

  bool is_none() const { return mean.empty() && std.empty(); }
  /// The number of the files that a scaled one stands for; `element` is its place in the flattened target.
  double undone(double scaled, std::size_t element) const;
  /// All numbers of one target, in place; each is rounded once.
  void undo(std::span<float> scaled) const;
  bool operator==(const TargetScale&) const = default;
};

/// The targets of training data as a whole: what a guess that looks at no sample would answer, and their scale.
struct TargetSummary {
  /// Mean of each element of the targets of numbers, as the files have them; empty where it is not known.
  std::vector<double> mean = {};
  std::optional<std::int64_t> common_class = {};  ///< the most frequent one, where a sample has one label
  TargetScale scale = {};

  bool operator==(const TargetSummary&) const = default;
};

/// The most frequent of the labels, the lowest one on ties; none without labels.
std::optional<std::int64_t> most_common(std::span<const std::int64_t> labels);

/// The summary as a JSON text, which target_summary_in() reads to an equal one.
std::string json_text(const TargetSummary& summary);
/// Throws StorageError that says where `text` is no such summary. `what` names the text in errors.
TargetSummary target_summary_in(std::string_view text, const std::string& what);

}  // namespace lockstep::data
