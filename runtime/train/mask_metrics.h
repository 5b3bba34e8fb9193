// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/task.h"

namespace lockstep::train {

/// Counts how answers and targets a pixel or voxel overlap, on this rank, and what that makes of all ranks' samples
/// together: whole numbers are added up, so that the shares of the ranks change nothing.
///
///   class_dice  of each class 2 |A and B| / (|A| + |B|), A being where it is answered and B where it is the target
///   class_iou   of each class |A and B| / |A or B|
///   mean_dice, mean_iou  their means over the classes that occur in an answer or a target
///
/// Targets that are ignored count for nothing. Of masks of numbers there is one class: where the answer's probability,
/// or the target, is above 0.5.
class MaskMetrics {
 public:
  /// Whether a task has targets that overlap: one a position of samples that are no tokens, as EvalMetrics' `dice` has.
  static bool fit(const Task& task);

  explicit MaskMetrics(const Task& task);

  /// Adds answers [positions, classes or more] to classes, and ones to numbers in [0, 1], of which logits are answered.
  void add_classes(std::span<const float> output, std::span<const std::int64_t> labels);
  void add_masks(std::span<const float> output, std::span<const float> target);

  /// Adds the metrics of all ranks to the result. A collective.
  void add_to(EvalResult& result, comm::Communicator& communicator) const;

 private:
  struct Counts {
    double both = 0, answered = 0, expected = 0;  ///< whole numbers
  };

  std::vector<Counts> counts_;  ///< by class
};

}  // namespace lockstep::train
