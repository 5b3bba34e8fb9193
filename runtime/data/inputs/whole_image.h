// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/image_sample.h"
#include "runtime/data/inputs/whole_input.h"

namespace lockstep::data {

/// An image [H, W, 3] with its shorter side scaled as training scales it, of which samples are windows. Its answer is a
/// grey PNG of 8 bits with the pixels of the image itself (upright, where training turns images), each the nearest of
/// the scaled ones: a class, 255 where there is none for a NaN; or a number of [0, 1] times 255, rounded, 0 for a NaN.
class WholeImage : public WholeInput {
 public:
  static constexpr std::string_view kAnswerEnding = ".png";

  /// Decodes the image. Throws StorageError for what is damaged or too large.
  WholeImage(std::string path, const ImageCrop& crop);

  Shape sample_shape() const override { return {scaled_height_, scaled_width_, 3}; }
  void write_answer(const std::string& to, const WholeAnswer& answer) const override;

 private:
  void read(std::int64_t index, const Sample& sample) const override;

  std::int64_t width_ = 0;
  std::int64_t height_ = 0;
  std::int64_t scaled_width_ = 0;
  std::int64_t scaled_height_ = 0;
  std::vector<float> values_;  ///< of sample_shape()
};

}  // namespace lockstep::data
