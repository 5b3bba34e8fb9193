// SPDX-License-Identifier: Apache-2.0
// The number of ranks changes nothing but rounding. Every rank trains the same model a second time, alone, on whole
// batches: what the ranks compute together must be that. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include <limits>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/data/batch.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

const MakeOptimizer kSgd = with_sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01});
// An epsilon of the gradients' size: where a gradient is next to nothing, Adam would blow its rounding up to a whole
// step.
const MakeOptimizer kAdamw = with_adamw({.lr = 0.005, .epsilon = 0.01, .weight_decay = 0.1});
const MakeOptimizer kClipped = with_sgd({.lr = 0.05, .momentum = 0.9}, {.clip_norm = 0.1});

// Norms of a parameter and of its gradient, which lie in several buckets.
const MakeOptimizer kLamb = with_lamb({.lr = 0.01, .epsilon = 0.01, .weight_decay = 0.1});
const MakeOptimizer kNovograd = with_novograd({.lr = 0.01, .weight_decay = 0.1});
const MakeOptimizer kLars = with_lars({.lr = 1, .weight_decay = 0.01, .trust_coefficient = 0.05});
const MakeOptimizer kLarc = with_adagrad({.lr = 0.01, .weight_decay = 0.01, .epsilon = 0.01},
                                         {.larc = optim::LarcOptions{.trust_coefficient = 0.05}});

const ConvnetOptions kConvnet{
    .blocks = {{.channels = 6, .activation = Activation::kGelu, .dropout = 0.2}, {.channels = 8, .stride = 2}},
    .dropout = 0.3,
    .hidden = {12}};
const ConvnetOptions kPooled{
    .blocks = {{.channels = 6, .max_pool = 2}, {.channels = 8, .batch_norm = false, .activation = Activation::kGelu}},
    .head_pool = model_zoo::HeadPool::kGlobalAverage};
const model_zoo::ResnetOptions kResnet{.depth = 18, .stem = model_zoo::ResnetStem::kCifar, .width = 4};
const MlpOptions kMlp{.hidden = {16, 12}, .activation = Activation::kGelu, .dropout = 0.25, .batch_norm = true};

struct RankCountCase {
  std::string name;
  model_zoo::ModelOptions model;
  MakeOptimizer optimizer;
  std::int64_t samples = 24;
  int micro_batches = 1;
  Shares shares = Shares::kEven;
  DdpOptions ddp = {};
};

std::vector<RankCountCase> rank_count_cases() {
  return {
      {"ConvnetSgd", kConvnet, kSgd},
      {"ConvnetUneven", kConvnet, kSgd, 23, 1, Shares::kGrowing},
      {"ConvnetAdamw", kConvnet, kAdamw, 23},
      {"ConvnetClipped", kConvnet, kClipped, 23},
      {"ConvnetRankWithoutSample", kConvnet, kSgd, 21, 1, Shares::kLastIdle},
      {"ConvnetFewerSamplesThanRanks", kConvnet, kSgd, 3},
      {"ConvnetTwoMicroBatches", kConvnet, kSgd, 23, 2},
      {"ConvnetThreeMicroBatches", kConvnet, kAdamw, 25, 3, Shares::kGrowing},
      {"ConvnetMicroBatchesRankWithoutSample", kConvnet, kClipped, 25, 3, Shares::kLastIdle},
      {"ConvnetMicroBatchesOfOneSample", kConvnet, kSgd, 3, 3},
      {"ConvnetFewerSamplesThanMicroBatches", kConvnet, kSgd, 2, 3},
      {"ConvnetPooled", kPooled, kSgd, 23},
      {"ResnetSgd", kResnet, kSgd, 32},
      {"ResnetUnevenAdamw", kResnet, kAdamw, 31, 1, Shares::kGrowing},
      {"ResnetTwoMicroBatchesRankWithoutSample", kResnet, kClipped, 33, 2, Shares::kLastIdle},
      {"MlpSgd", kMlp, kSgd},
      {"MlpThreeMicroBatchesUneven", kMlp, kAdamw, 25, 3, Shares::kGrowing},
      {"MlpSum", kMlp, kSgd, 23, 1, Shares::kEven, {.gradient_average = false}},
      {"MlpPredivided", kMlp, kSgd, 23, 1, Shares::kEven, {.gradient_predivide_factor = 3}},
      {"MlpDelayedReduction", kMlp, kSgd, 23, 1, Shares::kEven, {.delay_reduction = true}},
      {"MlpTwoReductionStreams",
       kMlp,
       kSgd,
       23,
       2,
       Shares::kGrowing,
       {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5, .reduction_streams = 2}},
      {"ConvnetLamb", kConvnet, kLamb, 23},
      {"ConvnetNovogradUneven", kConvnet, kNovograd, 23, 1, Shares::kGrowing},
      {"ConvnetLarsRankWithoutSample", kConvnet, kLars, 21, 1, Shares::kLastIdle},
      {"MlpLarcTwoMicroBatches", kMlp, kLarc, 23, 2},
      {"MlpLambManyBuckets", kMlp, kLamb, 23, 1, Shares::kEven, {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5}},
      {"MlpManyBuckets", kMlp, kSgd, 23, 1, Shares::kEven, {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5}},
  };
}

class RankCount : public testing::TestWithParam<RankCountCase> {};
INSTANTIATE_TEST_SUITE_P(Jobs, RankCount, testing::ValuesIn(rank_count_cases()),
                         [](const auto& at) { return at.param.name; });

TEST_P(RankCount, ChangesNothingButRounding) {
  const auto& [name, model, optimizer, samples, micro_batches, shares, ddp] = GetParam();
  const LearnerOptions options{.model = model, .optimizer = optimizer, .ddp = ddp, .seed = 7};
  Learner truth(options, 8, 2);
  Learner mine(options, 8, 2);
  mine.join();
  const Learner::Part whole = part_of(samples, micro_batches, 0, 1, shares);
  const Learner::Part part = part_of(samples, micro_batches, world().rank(), world().size(), shares);
  const std::vector<nn::Arena::Slot>& slots = truth.arena().slots();
  // Every layer sums in another order, and rounds a few times on the way forward and back.
  const double tolerance = 8 * std::numeric_limits<float>::epsilon() * static_cast<double>(slots.size());
  const Tensor start = Tensor::from(floats_of(truth.arena().masters()), {truth.arena().size()});
  for (std::uint64_t step = 1; step <= 3; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Samples batch = make_samples(samples, 8, 2, step);
    const double loss = truth.backward(batch, whole, step);
    EXPECT_NEAR(sum_over_ranks(mine.backward(batch, part, step)), loss, tolerance * loss);
    for (const nn::Arena::Slot& slot : slots) {
      const Tensor expected = truth.arena().grads().rows(slot.begin, slot.end);
      const Tensor found = mine.arena().grads().rows(slot.begin, slot.end);
      EXPECT_GT(norm(expected), 0.0) << slot.parameter.name;
      EXPECT_LE(distance(found, expected), tolerance * norm(expected)) << slot.parameter.name;
    }
    EXPECT_FALSE(truth.step().found_inf);
    EXPECT_FALSE(mine.step().found_inf);
    const Tensor& weights = truth.arena().masters();
    EXPECT_LE(distance(mine.arena().masters(), weights),
              tolerance * distance(weights, start) + std::numeric_limits<float>::epsilon() * norm(weights));
    for (std::size_t i = 0; i < truth.arena().statistics().size(); ++i) {
      const auto& [path, statistics] = truth.arena().statistics()[i];
      EXPECT_LE(distance(mine.arena().statistics()[i].second->committed(), statistics->committed()),
                tolerance * norm(statistics->committed()))
          << path;
    }
  }
  require_equal_weights(mine.arena(), mine.optimizer().state(), *world().communicator(),
                        mine.optimizer().parameter_state());
}

// The same with a loss that knows nothing but its own samples.
TEST(LossWeight, MakesMeanLossesThoseOfTheGlobalBatch) {
  for (const bool average : {true, false}) {
    const LearnerOptions options{.model = kMlp, .optimizer = kSgd, .ddp = {.gradient_average = average}};
    Learner truth(options, 8, 2);
    Learner mine(options, 8, 2);
    mine.join();
    const Samples batch = make_samples(17, 8, 2, 1);
    truth.backward(batch, part_of(17, 1, 0, 1, Shares::kEven), 1);
    const auto [begin, end] = part_of(17, 1, world().rank(), world().size(), Shares::kLastIdle).front();
    {
      const data::Batch share{.input = batch.input.rows(begin, end).to(rank_device()),
                              .target = batch.target.rows(begin, end).to(rank_device()),
                              .step = 1,
                              .first_sample = begin,
                              .step_samples = 17};
      const ShareOutput output = mine.ddp().forward(share);
      ops::scale(ops::cross_entropy(output, share.target), output.loss_weight()).backward();
    }
    EXPECT_LE(distance(mine.arena().grads(), truth.arena().grads()), 1e-5 * norm(truth.arena().grads())) << average;
  }
}

TEST(LossWeight, IsAskedForWhereSharesAreUneven) {
  Learner mine({.model = kMlp, .optimizer = kSgd}, 8, 2);
  mine.join();
  const auto mean_of = [&](std::int64_t samples, bool asks) {
    const Samples all = make_samples(samples, 8, 2, 1);
    const auto [begin, end] = part_of(samples, 1, world().rank(), world().size(), Shares::kEven).front();
    const ShareOutput output = mine.ddp().forward(data::Batch{.input = all.input.rows(begin, end).to(rank_device()),
                                                              .step = 1,
                                                              .first_sample = begin,
                                                              .step_samples = samples});
    const Tensor mean = ops::cross_entropy(output, all.target.rows(begin, end).to(rank_device()));
    return asks ? ops::scale(mean, output.loss_weight()) : mean;
  };
  mean_of(12, false).backward();  // a mean is right where shares are even
  const Tensor wrong = mean_of(7, false);
  if (world().size() == 1) {
    wrong.backward();
  } else {
    // 4 and 3 samples on 2 ranks: the mean of each rank's own would count for 4 / 7 of the step's.
    EXPECT_THAT([&] { wrong.backward(); },
                testing::ThrowsMessage<UsageError>(testing::HasSubstr("is not its part of the mean over the step's")));
  }
  mine.optimizer().zero_grad();
  mean_of(7, true).backward();
}

// Whether the comparison above would notice.
TEST(RankCount, MattersWhereBatchNormIsNotSynchronised) {
  const LearnerOptions options{.model = kMlp, .optimizer = kSgd, .ddp = {.sync_batch_norm = false}};
  Learner truth(options, 8, 2);
  Learner mine(options, 8, 2);
  mine.join();
  const Samples batch = make_samples(24, 8, 2, 1);
  truth.backward(batch, part_of(24, 1, 0, 1, Shares::kEven), 1);
  mine.backward(batch, part_of(24, 1, world().rank(), world().size(), Shares::kEven), 1);
  const double difference = distance(mine.arena().grads(), truth.arena().grads()) / norm(truth.arena().grads());
  if (world().size() > 1) {
    EXPECT_GT(difference, 0.01);
  } else {
    EXPECT_EQ(difference, 0.0);
  }
}

TEST(Runs, AlikeAreBitwiseEqual) {
  const LearnerOptions base{.model = kConvnet, .optimizer = kClipped};
  LearnerOptions half = base, brain = base;
  half.amp = {.opt_level = amp::OptLevel::kO1};
  half.scaler = {};
  brain.amp = {.opt_level = amp::OptLevel::kO2, .dtype = DType::kBFloat16};
  for (const LearnerOptions& options : {base, half, brain}) {
    std::vector<std::vector<std::string>> bits;
    for (int run = 0; run < 2; ++run) {
      Learner learner(options, 8, 2);
      learner.join();
      const Learner::Part part = part_of(23, 2, world().rank(), world().size(), Shares::kGrowing);
      for (std::uint64_t step = 1; step <= 3; ++step) {
        learner.backward(make_samples(23, 8, 2, step), part, step);
        learner.step();
      }
      bits.push_back(bits_of(state_of(learner)));
    }
    EXPECT_TRUE(bits[0] == bits[1]) << "O" << static_cast<int>(options.amp.opt_level);
  }
}

}  // namespace
}  // namespace lockstep::comm
