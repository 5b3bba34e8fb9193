// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/formats/png_writer.h"
#include "runtime/kernels/assign.h"
#include "runtime/step/replicated.h"
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

std::uint8_t level_of(float value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(std::isfinite(value) ? value : 0.0f, 0.0f, 1.0f)));
}

Color grey(float value) { return {level_of(value), level_of(value), level_of(value)}; }

float at_channel(const std::vector<float>& values, std::size_t c, float otherwise) {
  return values.empty() ? otherwise : values.size() == 1 ? values[0] : values[c];
}

std::vector<float> floats_of(const Tensor& tensor) {
  const Tensor there = tensor.to(kCpu);
  const Tensor values = Tensor::empty(there.shape(), DType::kFloat32);
  kernels::cast(there, values);
  const auto span = values.as<float>();
  return {span.begin(), span.end()};
}

}  // namespace

Pictures::Pictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count)
    : task_(task), normalize_(normalize), count_(count) {
  const Shape& sample = task.model_input().sample_shape;
  const Shape& target = task.model_input().target_shape;
  const bool fits = task.model_input().vocabulary == 0 && sample.rank() == 3 && target.rank() == 2 &&
                    sample[0] == target[0] && sample[1] == target[1];
  if (!fits) {
    throw UsageError(
        fmt::format("--pictures needs images [H, W, C] with a target a pixel; samples have the shape {} and "
                    "targets {}",
                    sample.str(), target.str()));
  }
  height_ = sample[0];
  width_ = sample[1];
}

void Pictures::add(const data::Batch& batch, const Tensor& output, std::int64_t first) {
  for (std::int64_t i = 0; i < batch.input.size(0) && first + i < count_; ++i) {
    mine_[first + i] = draw(batch.input.rows(i, i + 1), batch.target.rows(i, i + 1), output.to(kCpu).rows(i, i + 1));
  }
}

std::vector<std::uint8_t> Pictures::draw(const Tensor& input, const Tensor& target, const Tensor& output) const {
  const auto pixels = static_cast<std::size_t>(height_ * width_);
  const std::vector<float> values = floats_of(input), answers = floats_of(output);
  const std::size_t channels = values.size() / pixels, answered = answers.size() / pixels;
  std::vector<float> probabilities = answers;
  if (task_.learns_masks()) sigmoid(probabilities);
  const auto shown = [&](std::size_t pixel, std::size_t c) {
    const std::size_t channel = channels == 3 ? c : 0;
    const float value = values[pixel * channels + channel];
    return level_of(value * at_channel(normalize_.std, channel, 1) + at_channel(normalize_.mean, channel, 0));
  };
  std::vector<std::uint8_t> picture(9 * pixels);
  const auto put = [&](std::size_t pixel, std::size_t panel, const Color& color) {
    const std::size_t row = pixel / static_cast<std::size_t>(width_), column = pixel % static_cast<std::size_t>(width_);
    std::ranges::copy(
        color, picture.begin() +
                   static_cast<std::ptrdiff_t>(3 * ((3 * row + panel) * static_cast<std::size_t>(width_) + column)));
  };
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    put(pixel, 0, {shown(pixel, 0), shown(pixel, 1), shown(pixel, 2)});
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

void Pictures::write(const std::filesystem::path& folder, std::int64_t samples,
                     comm::Communicator& communicator) const {
  for (std::int64_t sample = 0; sample < std::min(samples, count_); ++sample) {
    // One rank has the sample: the others add nothing.
    std::vector<float> numbers(static_cast<std::size_t>(9 * height_ * width_));
    if (const auto found = mine_.find(sample); found != mine_.end()) std::ranges::copy(found->second, numbers.begin());
    const Tensor all = Tensor::from(numbers, {std::ssize(numbers)});
    communicator.all_reduce(all, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
    step::on_rank_zero(communicator, [&] {
      std::vector<std::uint8_t> pixels;
      for (const float value : all.as<float>()) pixels.push_back(static_cast<std::uint8_t>(value));
      const std::filesystem::path path = folder / fmt::format("sample_{:06}.png", sample);
      if (const auto error = write_whole_file(path, data::png_of(pixels, 3 * width_, height_, 3))) {
        throw StorageError("cannot write " + path.string() + ": " + error.message(),
                           "Check the space and the permissions there, or choose another --pictures.");
      }
    });
  }
}

}  // namespace lockstep::train
