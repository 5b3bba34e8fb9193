// SPDX-License-Identifier: Apache-2.0
// GPT and Llama: texts with a label a position, a tied head, dropout, blocks that run again in the backward pass. Run
// as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "tests/comm/ddp/model_loop.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kTextWords = 11, kTextLength = 6, kLanguageModelSamples = 11;
const model_zoo::ModelInput kTexts{
    .sample_shape = {kTextLength}, .outputs = kTextWords, .vocabulary = kTextWords, .target_shape = {kTextLength}};

Lesson texts(std::uint64_t step) {
  std::vector<std::int64_t> tokens, labels;
  for (std::int64_t i = 0; i < kLanguageModelSamples * kTextLength; ++i) {
    tokens.push_back((i * i + static_cast<std::int64_t>(step) * 5) % kTextWords);
    labels.push_back(i % kTextLength == 0 ? data::kIgnoredLabel : (i * i + 3 * i) % kTextWords);
  }
  return {Tensor::from(tokens, {kLanguageModelSamples, kTextLength}),
          Tensor::from(labels, {kLanguageModelSamples, kTextLength}), kTextLength - 1};
}

const model_zoo::GptOptions kGpt{
    .layers = 2, .heads = 2, .width = 8, .context = 8, .dropout = 0.2, .initial_deviation = 0.2};
const model_zoo::GptOptions kCheckpointedGpt{.layers = 2,
                                             .heads = 2,
                                             .width = 8,
                                             .context = 8,
                                             .dropout = 0.2,
                                             .initial_deviation = 0.2,
                                             .checkpoint_activations = true};
const model_zoo::LlamaOptions kLlama{
    .layers = 2, .heads = 4, .kv_heads = 2, .width = 8, .hidden = 12, .context = 8, .initial_deviation = 0.2};

TEST(LanguageModels, TrainAlikeOnAnyNumberOfRanks) {
  for (const model_zoo::ModelOptions& options :
       {model_zoo::ModelOptions(kGpt), model_zoo::ModelOptions(kCheckpointedGpt), model_zoo::ModelOptions(kLlama)}) {
    expect_alike_on_any_number_of_ranks(options, kTexts, texts);
  }
}

TEST(LanguageModels, CheckpointTheirActivationsToTheSameBits) {
  expect_equal_bits(kGpt, kCheckpointedGpt, kTexts, texts);
}

TEST(LanguageModels, KeepATiedWeightInOneSlot) {
  const ModelLoop loop(kGpt, kTexts, true);
  EXPECT_EQ(slots_of(loop, "token_embedding.weight"), 1);
  EXPECT_EQ(slots_of(loop, "head.weight"), 0);
}

}  // namespace
}  // namespace lockstep::comm
