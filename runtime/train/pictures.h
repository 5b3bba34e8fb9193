// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/data/batch.h"
#include "runtime/data/normalize.h"
#include "runtime/train/task.h"

namespace lockstep::train {

/// Pictures of the first samples of an evaluation: input, target and answer beside each other. Classes have colours, 0
/// is black and what is ignored white; numbers are grey, of answers their probabilities.
class Pictures {
 public:
  /// Of samples [H, W, C] with a target a pixel, `count` of them; of more than 3 channels the first is shown, of 2 too.
  /// `normalize`: what was done to the samples. Throws UsageError for other samples.
  Pictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count);

  /// Draws those of a batch's samples that are among the first. `first`: the number of its row 0 in the data set.
  void add(const data::Batch& batch, const Tensor& output, std::int64_t first);
  /// Writes the samples of all ranks on rank 0: FOLDER/sample_000012.png and its like. A collective. Throws
  /// StorageError.
  void write(const std::filesystem::path& folder, std::int64_t samples, comm::Communicator& communicator) const;

 private:
  std::vector<std::uint8_t> draw(const Tensor& input, const Tensor& target, const Tensor& output) const;

  const Task& task_;
  data::NormalizeOptions normalize_;
  std::int64_t count_;
  std::int64_t height_;
  std::int64_t width_;
  std::map<std::int64_t, std::vector<std::uint8_t>> mine_;  ///< by sample: [height, 3 width, 3]
};

}  // namespace lockstep::train
