// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/dice.h"

#include "runtime/data/dataset.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

double Overlap::dice() const {
  return occurs() ? 2.0 * static_cast<double>(both) / static_cast<double>(answered + expected) : 1.0;
}

Overlap overlap_of_mask(std::span<const float> output, std::span<const float> target) {
  Overlap overlap;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool answer = output[i] > 0;
    const bool truth = target[i] > 0.5f;
    overlap.both += answer && truth ? 1 : 0;
    overlap.answered += answer ? 1 : 0;
    overlap.expected += truth ? 1 : 0;
  }
  return overlap;
}

std::vector<Overlap> overlap_of_classes(std::span<const float> output, std::span<const std::int64_t> labels) {
  if (labels.empty()) return {};
  const std::size_t width = output.size() / labels.size();
  std::vector<Overlap> overlaps(width);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == data::kIgnoredLabel) continue;
    const std::int64_t answer = class_of(output.subspan(i * width, width));
    Overlap& expected = overlaps[static_cast<std::size_t>(labels[i])];
    ++expected.expected;
    if (answer == labels[i]) ++expected.both;
    if (answer >= 0) ++overlaps[static_cast<std::size_t>(answer)].answered;
  }
  return overlaps;
}

double mean_dice(std::span<const Overlap> classes) {
  double sum = 0;
  int occurring = 0;
  for (std::size_t c = 1; c < classes.size(); ++c) {
    if (!classes[c].occurs()) continue;
    sum += classes[c].dice();
    ++occurring;
  }
  return occurring > 0 ? sum / occurring : 1.0;
}

}  // namespace lockstep::train
