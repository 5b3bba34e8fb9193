// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/image_sample.h"
#include "runtime/data/inputs/inputs.h"

namespace lockstep::data {

/// Images to predict, a file each: [size, size, 3], the center crop.
class ImageInputs : public Inputs {
 public:
  static constexpr std::array<std::string_view, 4> kEndings{".jpg", ".jpeg", ".png", ".webp"};
  static constexpr std::string_view kRowTitle = "";

  ImageInputs(std::vector<std::string> files, const ImageCrop& crop) : files_(std::move(files)), crop_(crop) {}

  std::int64_t size() const override { return std::ssize(files_); }
  Shape sample_shape() const override { return {crop_.size, crop_.size, 3}; }
  InputPlace place(std::int64_t index) const override { return {files_[static_cast<std::size_t>(index)]}; }

 private:
  void read(std::int64_t index, const Sample& sample) const override;

  std::vector<std::string> files_;
  ImageCrop crop_;
};

}  // namespace lockstep::data
