// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "runtime/train/pictures.h"

namespace lockstep::train {

/// Pictures of the first samples of an evaluation with a target a pixel: input, target and answer beside each other.
/// Classes have colours, 0 is black and what is ignored white; numbers are grey, of answers their probabilities.
/// FOLDER/sample_000012.png and its like.
class MaskPictures final : public Pictures {
 public:
  MaskPictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count);

  void add(const data::Batch& batch, const Tensor& output, std::int64_t first) override;
  void write(const std::filesystem::path& folder, std::int64_t samples,
             comm::Communicator& communicator) const override;

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
