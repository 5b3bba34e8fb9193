// SPDX-License-Identifier: Apache-2.0
// The vision transformer: images with a label, dropout, blocks that run again in the backward pass. Run as 1 to 4
// ranks.
#include <gtest/gtest.h>

#include "tests/comm/ddp/model_loop.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kSamples = 11, kClasses = 5;
const model_zoo::ModelInput kImages{.sample_shape = {8, 8, 2}, .outputs = kClasses, .classes = kClasses};

Lesson images(std::uint64_t step) {
  const auto shift = static_cast<std::int64_t>(step);
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kSamples * 8 * 8 * 2; ++i) {
    pixels.push_back(static_cast<float>((i * i + 7 * shift) % 17) / 8 - 1);
  }
  for (std::int64_t i = 0; i < kSamples; ++i) labels.push_back((i * i + shift) % kClasses);
  return {Tensor::from(pixels, {kSamples, 8, 8, 2}), Tensor::from(labels, {kSamples})};
}

model_zoo::VitOptions vit(bool checkpointed = false) {
  return {.patch = 4,
          .layers = 2,
          .heads = 2,
          .width = 8,
          .dropout = 0.2,
          .attention_dropout = 0.2,
          .checkpoint_activations = checkpointed};
}

TEST(Encoders, TrainAlikeOnAnyNumberOfRanks) {
  expect_alike_on_any_number_of_ranks(vit(), kImages, images);
  expect_alike_on_any_number_of_ranks(vit(true), kImages, images);
}

TEST(Encoders, CheckpointTheirActivationsToTheSameBits) { expect_equal_bits(vit(), vit(true), kImages, images); }

}  // namespace
}  // namespace lockstep::comm
