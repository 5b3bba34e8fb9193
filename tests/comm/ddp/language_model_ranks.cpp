// SPDX-License-Identifier: Apache-2.0
// GPT and Llama: texts with a label a position, a tied head, dropout, blocks that run again in the backward pass. Run
// as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "comm/ddp/digest.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/losses.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kWords = 11, kLength = 6, kSamples = 11, kSteps = 4;

/// In training on all ranks, or alone.
struct Loop {
  Loop(const model_zoo::ModelOptions& options, bool joined, const amp::AmpOptions& amp = {})
      : model(model_zoo::build(
            options, {.sample_shape = {kLength}, .outputs = kWords, .vocabulary = kWords, .target_shape = {kLength}},
            7)) {
    // An epsilon of the gradients' size: Adam would blow the rounding of the smallest up to a whole step.
    optimizer = with_adamw({.lr = 0.01, .epsilon = 0.01, .weight_decay = 0.1}).of(model->parameters());
    amp::initialize(*model, *optimizer, amp, rank_device());
    if (joined) ddp.emplace(*model, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  void step(const Range& share, std::uint64_t number) {
    std::vector<std::int64_t> tokens, labels;
    for (std::int64_t i = 0; i < kSamples * kLength; ++i) {
      tokens.push_back((i * i + static_cast<std::int64_t>(number) * 5) % kWords);
      labels.push_back(i % kLength == 0 ? data::kIgnoredLabel : (i * i + 3 * i) % kWords);
    }
    const auto mine = [&](const std::vector<std::int64_t>& all) {
      return Tensor::from(all, {kSamples, kLength}).rows(share.begin, share.end).to(rank_device());
    };
    const data::Batch batch{.input = mine(tokens),
                            .target = mine(labels),
                            .step = number,
                            .first_sample = share.begin,
                            .step_samples = kSamples};
    const auto alone = [&] {
      const nn::StepContext context(number, 0);
      return nn::forward(*model, batch.input);
    };
    const Tensor y = ddp ? ddp->forward(batch) : alone();
    const double samples = ddp ? ddp->loss_divisor(batch) : static_cast<double>(kSamples);
    optimizer->zero_grad();
    ops::cross_entropy(y, batch.target, {.divisor = samples * (kLength - 1), .ignore_index = data::kIgnoredLabel})
        .backward();
    optimizer->step();
  }

  std::unique_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

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
    for (const Shares shares : {Shares::kEven, Shares::kGrowing, Shares::kLastIdle}) {
      SCOPED_TRACE(model_zoo::name_of(options));
      Loop truth(options, false), mine(options, true);
      const std::vector<float> start = floats_of(truth.model->arena()->masters());
      for (std::uint64_t step = 1; step <= kSteps; ++step) {
        truth.step({0, kSamples}, step);
        mine.step(cut({0, kSamples}, world().rank(), world().size(), shares), step);
        const Tensor& weights = truth.model->arena()->masters();
        EXPECT_LE(distance(mine.model->arena()->masters(), weights), 1e-5 * norm(weights));
      }
      EXPECT_GT(
          distance(truth.model->arena()->masters(), Tensor::from(start, {static_cast<std::int64_t>(start.size())})),
          0.01);
      require_equal_weights(*mine.model->arena(), mine.optimizer->state(), *world().communicator());
    }
  }
}

TEST(LanguageModels, CheckpointTheirActivationsToTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    amp::AmpOptions amp;
    if (dtype != DType::kFloat32) amp = {.opt_level = amp::OptLevel::kO1, .dtype = dtype};
    Loop plain(kGpt, true, amp), again(kCheckpointedGpt, true, amp);
    const Range share = cut({0, kSamples}, world().rank(), world().size(), Shares::kGrowing);
    for (std::uint64_t step = 1; step <= kSteps; ++step) {
      plain.step(share, step);
      again.step(share, step);
    }
    EXPECT_EQ(bits_of({again.model->arena()->masters()}), bits_of({plain.model->arena()->masters()}));
  }
}

TEST(LanguageModels, KeepATiedWeightInOneSlot) {
  Loop loop(kGpt, true);
  int slots = 0;
  for (const nn::Arena::Slot& slot : loop.model->arena()->slots()) {
    EXPECT_NE(slot.parameter.name, "head.weight");
    slots += slot.parameter.name == "token_embedding.weight" ? 1 : 0;
  }
  EXPECT_EQ(slots, 1);
}

}  // namespace
}  // namespace lockstep::comm
