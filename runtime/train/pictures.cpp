// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/formats/png_writer.h"
#include "runtime/kernels/assign.h"
#include "runtime/step/replicated.h"
#include "runtime/train/mask_pictures.h"
#include "runtime/train/worst_pictures.h"

namespace lockstep::train {

namespace {

float at_channel(const std::vector<float>& values, std::size_t c, float otherwise) {
  return values.empty() ? otherwise : values.size() == 1 ? values[0] : values[c];
}

}  // namespace

std::uint8_t level_of(float value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(std::isfinite(value) ? value : 0.0f, 0.0f, 1.0f)));
}

std::vector<float> floats_of(const Tensor& tensor) {
  const Tensor there = tensor.to(kCpu);
  const Tensor values = Tensor::empty(there.shape(), DType::kFloat32);
  kernels::cast(there, values);
  const auto span = values.as<float>();
  return {span.begin(), span.end()};
}

std::vector<std::uint8_t> pixels_of(const Tensor& input, const data::NormalizeOptions& normalize) {
  const std::vector<float> values = floats_of(input);
  const auto channels = static_cast<std::size_t>(input.size(3));
  const std::size_t count = values.size() / channels;
  std::vector<std::uint8_t> pixels(3 * count);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t channel = channels == 3 ? i % 3 : 0;
    const float value = values[i / 3 * channels + channel];
    pixels[i] = level_of(value * at_channel(normalize.std, channel, 1) + at_channel(normalize.mean, channel, 0));
  }
  return pixels;
}

std::unique_ptr<Pictures> make_pictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count,
                                        const std::vector<std::string>& class_names) {
  const Shape& sample = task.model_input().sample_shape;
  const Shape& target = task.model_input().target_shape;
  const bool is_image = task.model_input().vocabulary == 0 && sample.rank() == 3;
  if (is_image && task.classifies() && target.rank() == 0) {
    return std::make_unique<WorstPictures>(task, normalize, count, class_names);
  }
  if (is_image && target.rank() == 2 && sample[0] == target[0] && sample[1] == target[1]) {
    return std::make_unique<MaskPictures>(task, normalize, count);
  }
  throw UsageError(
      fmt::format("--pictures needs images [H, W, C] with a class each or a target a pixel; samples have the shape {} "
                  "and targets {}",
                  sample.str(), target.str()));
}

void write_picture(const std::filesystem::path& path, const std::vector<std::uint8_t>* mine, std::int64_t height,
                   std::int64_t width, comm::Communicator& communicator) {
  std::vector<float> numbers(static_cast<std::size_t>(3 * height * width));
  if (mine != nullptr) std::ranges::copy(*mine, numbers.begin());
  const Tensor all = Tensor::from(numbers, {std::ssize(numbers)});
  communicator.all_reduce(all, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
  step::on_rank_zero(communicator, [&] {
    std::vector<std::uint8_t> pixels;
    for (const float value : all.as<float>()) pixels.push_back(static_cast<std::uint8_t>(value));
    if (const auto error = write_whole_file(path, data::png_of(pixels, width, height, 3))) {
      throw StorageError("cannot write " + path.string() + ": " + error.message(),
                         "Check the space and the permissions there, or choose another --pictures.");
    }
  });
}

}  // namespace lockstep::train
