// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::train {

/// The positions of one sample that an answer and a target give a class, or have in a mask.
struct Overlap {
  std::int64_t both = 0;
  std::int64_t answered = 0;
  std::int64_t expected = 0;

  /// In the answer, in the target, or in both.
  bool occurs() const { return answered + expected > 0; }
  /// 2 |A and B| / (|A| + |B|); 1 where both are empty.
  double dice() const;
};

/// Of a mask: the answer holds where its logit is above 0, the target where it is above 0.5.
Overlap overlap_of_mask(std::span<const float> output, std::span<const float> target);

/// Of each class, one a position: output [positions, classes], labels [positions]. A NaN answers no class, and a label
/// kIgnoredLabel counts for nothing. Empty without labels.
std::vector<Overlap> overlap_of_classes(std::span<const float> output, std::span<const std::int64_t> labels);

/// The mean of Dice over the classes but 0, the background, that occur; 1 where none does.
double mean_dice(std::span<const Overlap> classes);

}  // namespace lockstep::train
