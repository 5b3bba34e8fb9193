// SPDX-License-Identifier: Apache-2.0
// The vision transformer and BERT: images with a label, texts with hidden tokens and filled-up texts with a label,
// dropout, a tied head, blocks that run again in the backward pass. Run as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "tests/comm/ddp/model_loop.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kEncoderSamples = 11, kEncoderClasses = 5;
const model_zoo::ModelInput kImages{.sample_shape = {8, 8, 2}, .outputs = kEncoderClasses, .classes = kEncoderClasses};

Lesson images(std::uint64_t step) {
  const auto shift = static_cast<std::int64_t>(step);
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kEncoderSamples * 8 * 8 * 2; ++i) {
    pixels.push_back(static_cast<float>((i * i + 7 * shift) % 17) / 8 - 1);
  }
  for (std::int64_t i = 0; i < kEncoderSamples; ++i) labels.push_back((i * i + shift) % kEncoderClasses);
  return {Tensor::from(pixels, {kEncoderSamples, 8, 8, 2}), Tensor::from(labels, {kEncoderSamples})};
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

constexpr std::int64_t kEncoderWords = 11, kEncoderLength = 6, kEncoderHidden = 2;
const model_zoo::ModelInput kMaskedTexts{.sample_shape = {kEncoderLength},
                                         .outputs = kEncoderWords,
                                         .vocabulary = kEncoderWords,
                                         .target_shape = {kEncoderLength},
                                         .classes = kEncoderWords};
const model_zoo::ModelInput kLabelledTexts{.sample_shape = {kEncoderLength},
                                           .outputs = kEncoderClasses,
                                           .vocabulary = kEncoderWords,
                                           .classes = kEncoderClasses};

Tensor tokens(std::uint64_t step) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < kEncoderSamples * kEncoderLength; ++i) {
    all.push_back((i * i + static_cast<std::int64_t>(step) * 5) % kEncoderWords);
  }
  return Tensor::from(all, {kEncoderSamples, kEncoderLength});
}

Lesson masked_texts(std::uint64_t step) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kEncoderSamples * kEncoderLength; ++i) {
    labels.push_back(i % kEncoderLength < kEncoderHidden ? (i * i + 3 * i) % kEncoderWords : data::kIgnoredLabel);
  }
  return {tokens(step), Tensor::from(labels, {kEncoderSamples, kEncoderLength}), kEncoderHidden};
}

Lesson labelled_texts(std::uint64_t step) { return {tokens(step), images(step).labels}; }

model_zoo::BertOptions bert(bool checkpointed = false) {
  return {.layers = 2,
          .heads = 2,
          .width = 8,
          .context = 8,
          .dropout = 0.2,
          .initial_deviation = 0.2,
          .pad_token = 4,
          .checkpoint_activations = checkpointed};
}

TEST(Encoders, TrainAlikeOnAnyNumberOfRanks) {
  expect_alike_on_any_number_of_ranks(vit(), kImages, images);
  expect_alike_on_any_number_of_ranks(vit(true), kImages, images);
  expect_alike_on_any_number_of_ranks(bert(), kMaskedTexts, masked_texts);
  expect_alike_on_any_number_of_ranks(bert(true), kMaskedTexts, masked_texts);
  expect_alike_on_any_number_of_ranks(bert(), kLabelledTexts, labelled_texts);
}

TEST(Encoders, CheckpointTheirActivationsToTheSameBits) {
  expect_equal_bits(vit(), vit(true), kImages, images);
  expect_equal_bits(bert(), bert(true), kMaskedTexts, masked_texts);
  expect_equal_bits(bert(), bert(true), kLabelledTexts, labelled_texts);
}

TEST(Encoders, KeepATiedWeightInOneSlot) {
  const ModelLoop loop(bert(), kMaskedTexts, true);
  EXPECT_EQ(slots_of(loop, "token_embedding.weight"), 1);
  EXPECT_EQ(slots_of(loop, "head.weight"), 0);
  EXPECT_EQ(slots_of(loop, "head.bias"), 1);
}

}  // namespace
}  // namespace lockstep::comm
