// SPDX-License-Identifier: Apache-2.0
// Two models under one GradScaler, with an optimizer over the parameters of both or with one each: any number of ranks
// trains them as one does. Every rank trains them a second time, alone, on whole batches. Run as 1 to 4 ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "comm/ddp/digest.h"
#include "runtime/autograd/engine.h"
#include "runtime/data/batch.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kSeveralModelsSamples = 13;

enum class Optimizers { kOneOfBoth, kOneEach };

struct SeveralModelsCase {
  const char* name;
  Optimizers optimizers;
  MakeOptimizer make;
  amp::AmpOptions amp;
  Shares shares;
};

/// Two models whose outputs both losses need.
class Pair {
 public:
  Pair(const SeveralModelsCase& test, bool alone) {
    const MlpOptions options{.hidden = {12}, .activation = Activation::kGelu, .dropout = 0.25, .batch_norm = true};
    std::vector<nn::Parameter> all;
    for (const std::uint64_t seed : {7, 8}) {
      models_.push_back(model_zoo::build(options, {{4, 4, 2}, kClasses}, seed));
      const std::vector<nn::Parameter>& parameters = models_.back()->parameters();
      if (test.optimizers == Optimizers::kOneEach) optimizers_.push_back(test.make.of(parameters));
      all.insert(all.end(), parameters.begin(), parameters.end());
    }
    if (test.optimizers == Optimizers::kOneOfBoth) optimizers_.push_back(test.make.of(all));
    std::vector<optim::Optimizer*> optimizers;
    for (const auto& optimizer : optimizers_) optimizers.push_back(optimizer.get());
    amp::initialize({models_[0].get(), models_[1].get()}, optimizers, test.amp, rank_device());
    for (const auto& model : models_) {
      if (!alone) ddps_.push_back(std::make_unique<DistributedDataParallel>(*model, world()));
    }
    scaler_.emplace(alone ? make_self_communicator(rank_device()) : world().communicator(),
                    amp::GradScalerOptions{.init = 1024});
  }

  /// Returns this share's contribution to the sum of the mean losses; an overflow where `spoil` is set.
  double step(const Samples& samples, const Range& share, std::uint64_t step, bool spoil = false) {
    const data::Batch batch{.input = samples.input.rows(share.begin, share.end).to(rank_device()),
                            .target = samples.target.rows(share.begin, share.end).to(rank_device()),
                            .step = step,
                            .first_sample = share.begin,
                            .step_samples = kSeveralModelsSamples};
    for (const auto& optimizer : optimizers_) optimizer->zero_grad();
    const nn::StepContext context(7, step, share.begin);
    const ShareOutput left = forward(0, batch), right = forward(1, batch);
    const double divisor = left.loss_divisor();
    const Tensor first = ops::cross_entropy(left + 2 * right, batch.target, {.divisor = divisor});
    const Tensor second = ops::cross_entropy(2 * left - right, batch.target, {.divisor = divisor});
    const double factor = spoil ? std::numeric_limits<double>::infinity() : 1.0;
    autograd::backward(scaler_->scale(first * factor), {}, {.retain_graph = true});
    scaler_->scale(second).backward();
    for (const auto& optimizer : optimizers_) scaler_->step(*optimizer);
    scaler_->update();
    return (first.item() + second.item()) * left.share().loss_factor;
  }

  nn::Arena& arena(std::size_t i) { return *models_[i]->arena(); }
  amp::GradScaler& scaler() { return *scaler_; }
  optim::Optimizer& optimizer(std::size_t i) { return *optimizers_[i]; }

 private:
  ShareOutput forward(std::size_t i, const data::Batch& batch) {
    if (!ddps_.empty()) return ddps_[i]->forward(batch);
    return output_of_whole(nn::forward(*models_[i], batch.input), kSeveralModelsSamples);
  }

  std::vector<std::unique_ptr<nn::Module>> models_;
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;
  std::vector<std::unique_ptr<DistributedDataParallel>> ddps_;
  std::optional<amp::GradScaler> scaler_;
};

class SeveralModels : public testing::TestWithParam<SeveralModelsCase> {};

const amp::AmpOptions kSeveralModelsFloat16{.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16};

INSTANTIATE_TEST_SUITE_P(
    Optimizers, SeveralModels,
    testing::Values(
        SeveralModelsCase{"OneSgd", Optimizers::kOneOfBoth, with_sgd({.lr = 0.05, .momentum = 0.9}), {}, Shares::kEven},
        SeveralModelsCase{"OneSgdClipped",
                          Optimizers::kOneOfBoth,
                          with_sgd({.lr = 0.05, .momentum = 0.9}, {.clip_norm = 0.5}),
                          {},
                          Shares::kGrowing},
        SeveralModelsCase{"OneLamb", Optimizers::kOneOfBoth, with_lamb({.lr = 0.01}), {}, Shares::kLastIdle},
        SeveralModelsCase{"OneNovograd", Optimizers::kOneOfBoth, with_novograd({.lr = 0.01}), {}, Shares::kGrowing},
        SeveralModelsCase{"OneLarc",
                          Optimizers::kOneOfBoth,
                          with_sgd({.lr = 0.05, .momentum = 0.9}, {.larc = optim::LarcOptions{}}),
                          {},
                          Shares::kEven},
        SeveralModelsCase{"OneSgdFloat16", Optimizers::kOneOfBoth, with_sgd({.lr = 0.05, .momentum = 0.9}),
                          kSeveralModelsFloat16, Shares::kEven},
        SeveralModelsCase{
            "TwoSgd", Optimizers::kOneEach, with_sgd({.lr = 0.05, .momentum = 0.9}), {}, Shares::kGrowing},
        SeveralModelsCase{"TwoNovograd", Optimizers::kOneEach, with_novograd({.lr = 0.01}), {}, Shares::kLastIdle},
        SeveralModelsCase{"TwoSgdFloat16", Optimizers::kOneEach, with_sgd({.lr = 0.05, .momentum = 0.9}),
                          kSeveralModelsFloat16, Shares::kGrowing}),
    [](const auto& at) { return at.param.name; });

TEST_P(SeveralModels, TrainOnAnyNumberOfRanksAsOnOne) {
  const SeveralModelsCase& test = GetParam();
  Pair truth(test, true), mine(test, false);
  const Range share = cut({0, kSeveralModelsSamples}, world().rank(), world().size(), test.shares);
  // Gradients of 16 bits are rounded once a rank, in another order of the samples.
  const double tolerance =
      test.amp.dtype == DType::kFloat16 && test.amp.opt_level == amp::OptLevel::kO1 ? 0x1p-8 : 1e-4;
  for (std::uint64_t step = 1; step <= 6; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Samples batch = make_samples(kSeveralModelsSamples, 4, 2, step);
    const bool spoil = step == 3;  // on the last rank that has samples, and alone
    const bool mine_spoils = spoil && share.end == kSeveralModelsSamples && share.begin < share.end;
    const double loss = truth.step(batch, {0, kSeveralModelsSamples}, step, spoil);
    EXPECT_NEAR(sum_over_ranks(mine.step(batch, share, step, mine_spoils)), loss, tolerance * loss);
    for (const std::size_t i : {0, 1}) {
      EXPECT_LE(distance(mine.arena(i).masters(), truth.arena(i).masters()),
                tolerance * norm(truth.arena(i).masters()));
    }
    EXPECT_EQ(mine.scaler().get_scale(), truth.scaler().get_scale());
    EXPECT_EQ(mine.optimizer(0).applied_steps(), truth.optimizer(0).applied_steps());
  }
  EXPECT_EQ(truth.optimizer(0).applied_steps(), 5);
  EXPECT_EQ(truth.scaler().get_scale(), 512);
  for (const std::size_t i : {0, 1}) require_equal_weights(mine.arena(i), {}, *world().communicator());
}

/// The gradients of models that one backward pass reaches, `first` first; on whole batches where `alone`.
std::vector<std::vector<float>> gradients_of_a_pass(std::size_t count, std::size_t first, bool alone) {
  std::vector<std::unique_ptr<nn::Module>> models;
  std::vector<std::unique_ptr<DistributedDataParallel>> ddps;
  for (std::size_t i = 0; i < count; ++i) {
    models.push_back(model_zoo::build(MlpOptions{.hidden = {6}}, {{4, 4, 2}, kClasses}, i));
    amp::initialize({models[i].get()}, {}, {}, rank_device());
    if (!alone) ddps.push_back(std::make_unique<DistributedDataParallel>(*models[i], world()));
  }
  const Samples samples = make_samples(kSeveralModelsSamples, 4, 2, 1);
  const Range share = alone ? Range{0, kSeveralModelsSamples}
                            : cut({0, kSeveralModelsSamples}, world().rank(), world().size(), Shares::kGrowing);
  const data::Batch batch{.input = samples.input.rows(share.begin, share.end).to(rank_device()),
                          .target = samples.target.rows(share.begin, share.end).to(rank_device()),
                          .step = 1,
                          .first_sample = share.begin,
                          .step_samples = kSeveralModelsSamples};
  std::vector<Tensor> losses;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (first + i) % count;
    const ShareOutput output = alone ? output_of_whole(nn::forward(*models[at], batch.input), kSeveralModelsSamples)
                                     : ddps[at]->forward(batch);
    losses.push_back(ops::cross_entropy(output, batch.target, {.divisor = output.loss_divisor()}));
  }
  autograd::backward(losses);
  std::vector<std::vector<float>> gradients;
  for (const auto& model : models) gradients.push_back(floats_of(model->arena()->grads()));
  return gradients;
}

TEST(ModelsOfOnePass, AreReducedInTheSameOrderOnEveryRank) {
  // With another order on one rank each waits for buckets that the other has not sent yet.
  constexpr std::size_t kModels = 6;
  const auto first = static_cast<std::size_t>(world().rank());
  const auto reduced = gradients_of_a_pass(kModels, first, false), whole = gradients_of_a_pass(kModels, 0, true);
  for (std::size_t i = 0; i < kModels; ++i) {
    EXPECT_THAT(reduced[i], testing::Pointwise(testing::FloatNear(1e-6f), whole[i])) << "model " << i;
  }
}

}  // namespace
}  // namespace lockstep::comm
