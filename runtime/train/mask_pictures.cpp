// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/mask_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "runtime/data/dataset.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace {

using Color = std::array<std::uint8_t, 3>;

/// The colours of PASCAL VOC's masks: three bits of the class a place, spread over the three channels.
Color color_of(std::int64_t label) {
  if (label == data::kIgnoredLabel) return {255, 255, 255};
  Color color{};
  for (int place = 7; place >= 0 && label > 0; --place, label >>= 3) {
    for (std::size_t c = 0; c < 3; ++c) color[c] = static_cast<std::uint8_t>(color[c] | (label >> c & 1) << place);
  }
  return color;
}

Color grey(float value) { return {level_of(value), level_of(value), level_of(value)}; }

}  // namespace

MaskPictures::MaskPictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count)
    : task_(task),
      normalize_(normalize),
      count_(count),
      height_(task.model_input().sample_shape[0]),
      width_(task.model_input().sample_shape[1]) {}

void MaskPictures::add(const data::Batch& batch, const Tensor& output, std::int64_t first) {
  for (std::int64_t i = 0; i < batch.input.size(0) && first + i < count_; ++i) {
    mine_[first + i] = draw(batch.input.rows(i, i + 1), batch.target.rows(i, i + 1), output.to(kCpu).rows(i, i + 1));
  }
}

std::vector<std::uint8_t> MaskPictures::draw(const Tensor& input, const Tensor& target, const Tensor& output) const {
  const auto pixels = static_cast<std::size_t>(height_ * width_);
  const std::vector<std::uint8_t> shown = pixels_of(input, normalize_);
  const std::vector<float> answers = floats_of(output);
  const std::size_t answered = answers.size() / pixels;
  std::vector<float> probabilities = answers;
  if (task_.learns_masks()) sigmoid(probabilities);
  std::vector<std::uint8_t> picture(9 * pixels);
  const auto put = [&](std::size_t pixel, std::size_t panel, const Color& color) {
    const std::size_t row = pixel / static_cast<std::size_t>(width_), column = pixel % static_cast<std::size_t>(width_);
    std::ranges::copy(
        color, picture.begin() +
                   static_cast<std::ptrdiff_t>(3 * ((3 * row + panel) * static_cast<std::size_t>(width_) + column)));
  };
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    put(pixel, 0, {shown[3 * pixel], shown[3 * pixel + 1], shown[3 * pixel + 2]});
    if (task_.classifies()) {
      const std::int64_t answer = class_of(std::span(answers).subspan(pixel * answered, answered));
      put(pixel, 1, color_of(target.as<std::int64_t>()[pixel]));
      put(pixel, 2, color_of(answer < 0 ? data::kIgnoredLabel : answer));
    } else {
      put(pixel, 1, grey(target.as<float>()[pixel]));
      put(pixel, 2, grey(probabilities[pixel]));
    }
  }
  return picture;
}

void MaskPictures::write(const std::filesystem::path& folder, std::int64_t samples,
                         comm::Communicator& communicator) const {
  for (std::int64_t sample = 0; sample < std::min(samples, count_); ++sample) {
    const auto found = mine_.find(sample);
    write_picture(folder / fmt::format("sample_{:06}.png", sample), found == mine_.end() ? nullptr : &found->second,
                  height_, 3 * width_, communicator);
  }
}

}  // namespace lockstep::train
