// SPDX-License-Identifier: Apache-2.0
// A TrainingStep of several ranks is that of one rank but for rounding, and its pieces called one by one are the same
// to the bit. Run as 1 to 3 ranks.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/data/synthetic.h"
#include "runtime/step/training_step.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::step {
namespace {

using comm::Learner;
using comm::Samples;
using comm::Shares;
using comm::world;

const comm::ConvnetOptions kConvnet{
    .blocks = {{.channels = 6, .activation = comm::Activation::kGelu, .dropout = 0.2}, {.channels = 8, .stride = 2}},
    .dropout = 0.3,
    .hidden = {12}};
const comm::MlpOptions kMlp{
    .hidden = {16, 12}, .activation = comm::Activation::kGelu, .dropout = 0.25, .batch_norm = true};
const auto kSgd = comm::with_sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01});
const auto kClipped = comm::with_sgd({.lr = 0.05, .momentum = 0.9}, {.clip_norm = 0.1});

/// This rank's shares of a step's micro-batches, as a loader gives them.
std::vector<data::Batch> batches_of(const Samples& samples, std::uint64_t step, int micro_batches, Shares shares) {
  std::vector<data::Batch> batches;
  const std::int64_t count = samples.target.numel();
  for (const comm::Range& share : comm::part_of(count, micro_batches, world().rank(), world().size(), shares)) {
    batches.push_back({.input = samples.input.rows(share.begin, share.end),
                       .target = samples.target.rows(share.begin, share.end),
                       .step = step,
                       .first_sample = share.begin,
                       .step_samples = count});
  }
  return batches;
}

/// What TrainingStep does, piece by piece.
amp::Verdict step_by_hand(Learner& learner, const std::vector<data::Batch>& batches) {
  learner.optimizer().zero_grad();
  for (std::size_t m = 0; m < batches.size(); ++m) {
    const auto no_sync = learner.ddp().no_sync(m + 1 < batches.size());
    const data::Batch batch = batches[m].to(comm::rank_device());
    const comm::ShareOutput output = learner.ddp().forward(batch);
    const Tensor loss = ops::cross_entropy(output, batch.target, {.divisor = output.loss_divisor()});
    learner.scaler().scale(loss).backward();
  }
  const amp::Verdict verdict = *learner.scaler().step(learner.optimizer());
  learner.scaler().update();
  return verdict;
}

struct Case {
  std::string name;
  comm::LearnerOptions options;
  std::int64_t samples = 24;
  int micro_batches = 1;
  Shares shares = Shares::kEven;
};

class Ranks : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Jobs, Ranks,
    testing::Values(
        Case{"Even", {.model = kConvnet, .optimizer = kSgd, .seed = 7}},
        Case{"Uneven", {.model = kConvnet, .optimizer = kSgd, .seed = 7}, 23, 1, Shares::kGrowing},
        Case{"RankWithoutSample", {.model = kConvnet, .optimizer = kClipped, .seed = 7}, 21, 1, Shares::kLastIdle},
        Case{"ThreeMicroBatches", {.model = kConvnet, .optimizer = kSgd, .seed = 7}, 25, 3, Shares::kGrowing},
        Case{"SumOfGradients",
             {.model = kMlp, .optimizer = kSgd, .ddp = {.gradient_average = false}, .seed = 7},
             23,
             2,
             Shares::kGrowing}),
    [](const auto& at) { return at.param.name; });

TEST_P(Ranks, ChangeNothingButRounding) {
  const auto& [name, options, samples, micro_batches, shares] = GetParam();
  Learner truth(options, 8, 2), mine(options, 8, 2);
  mine.join();
  TrainingStep step(mine.ddp(), mine.optimizer(), mine.scaler(), ops::cross_entropy);
  const double tolerance =
      8 * std::numeric_limits<float>::epsilon() * static_cast<double>(truth.arena().slots().size());
  for (std::uint64_t number = 1; number <= 3; ++number) {
    SCOPED_TRACE("step " + std::to_string(number));
    const Samples whole = comm::make_samples(samples, 8, 2, number);
    const double loss = truth.backward(whole, comm::part_of(samples, micro_batches, 0, 1, shares), number);
    truth.step();
    step.run(batches_of(whole, number, micro_batches, shares), world().rank() == 0);
    const StepOutcome outcome = step.outcome();
    EXPECT_NEAR(static_cast<double>(outcome.loss), loss, tolerance * loss);
    EXPECT_EQ(outcome.stop, 1.0f) << "rank 0 alone asked to stop";
    EXPECT_FALSE(outcome.skipped());
    EXPECT_EQ(outcome.schedule.applied_steps, static_cast<std::int64_t>(number));
    if (mine.optimizer().device_gradient_norm().defined()) {
      const double norm = truth.optimizer().gradient_norm();
      EXPECT_NEAR(static_cast<double>(outcome.grad_norm), norm, tolerance * norm);
    }
    EXPECT_LE(comm::distance(mine.arena().grads(), truth.arena().grads()),
              tolerance * comm::norm(truth.arena().grads()));
    EXPECT_LE(comm::distance(mine.arena().masters(), truth.arena().masters()),
              tolerance * comm::norm(truth.arena().masters()));
    for (std::size_t i = 0; i < truth.arena().statistics().size(); ++i) {
      const Tensor& expected = truth.arena().statistics()[i].second->committed();
      EXPECT_LE(comm::distance(mine.arena().statistics()[i].second->committed(), expected),
                tolerance * comm::norm(expected));
    }
  }
  comm::require_equal_weights(mine.arena(), mine.optimizer().state(), *world().communicator());
}

struct Level {
  std::string name;
  amp::AmpOptions amp;
};
class Pieces : public testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, Pieces,
                         testing::Values(Level{"O0", {}},
                                         Level{"O1Fp16", {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16}},
                                         Level{"O2Fp16", {.opt_level = amp::OptLevel::kO2, .dtype = DType::kFloat16}},
                                         Level{"O2Bf16", {.opt_level = amp::OptLevel::kO2, .dtype = DType::kBFloat16}},
                                         Level{"O3Bf16", {.opt_level = amp::OptLevel::kO3, .dtype = DType::kBFloat16}}),
                         [](const auto& at) { return at.param.name; });

/// Four steps of a TrainingStep, which a GPU captures as a graph, and of its pieces, called one by one.
void expect_the_bits_of_pieces(const comm::LearnerOptions& options, int micro_batches) {
  Learner whole(options, 8, 2), by_hand(options, 8, 2);
  whole.join();
  by_hand.join();
  TrainingStep step(whole.ddp(), whole.optimizer(), whole.scaler(), ops::cross_entropy);
  for (std::uint64_t number = 1; number <= 4; ++number) {
    const Samples samples = comm::make_samples(23, 8, 2, number);
    const std::vector<data::Batch> batches = batches_of(samples, number, micro_batches, Shares::kGrowing);
    step.run(batches);
    const amp::Verdict verdict = step_by_hand(by_hand, batches);
    EXPECT_EQ(step.outcome().verdict.found_inf, verdict.found_inf);
    ASSERT_TRUE(comm::bits_of(comm::state_of(whole)) == comm::bits_of(comm::state_of(by_hand))) << "step " << number;
  }
  EXPECT_EQ(comm::weights_digest(whole.arena()), comm::weights_digest(by_hand.arena()));
}

TEST_P(Pieces, CalledOneByOneGiveTheSameBits) {
  for (const int micro_batches : {1, 2}) {
    SCOPED_TRACE(std::to_string(micro_batches) + " micro-batches");
    expect_the_bits_of_pieces({.model = kConvnet,
                               .optimizer = kClipped,
                               .amp = GetParam().amp,
                               .scaler = {.dynamic = GetParam().amp.dtype == DType::kFloat16, .init = 1024},
                               .seed = 7},
                              micro_batches);
  }
}

TEST(Pieces, OfEveryOptimizerGiveTheSameBits) {
  for (const comm::MakeOptimizer& optimizer : optim::testing::every_optimizer()) {
    SCOPED_TRACE(optimizer.name);
    expect_the_bits_of_pieces({.model = kMlp,
                               .optimizer = optimizer,
                               .amp = {.opt_level = amp::OptLevel::kO2, .dtype = DType::kFloat16},
                               .scaler = {.init = 1024},
                               .seed = 7},
                              1);
  }
}

TEST(Pieces, ObeyTheOptLevelOfTheModel) {
  const amp::AmpOptions level{.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16};
  Learner learner({.model = kMlp, .optimizer = kSgd, .amp = level}, 8, 2);
  learner.join();
  const data::Batch batch = batches_of(comm::make_samples(9, 8, 2, 1), 1, 1, Shares::kEven)[0];
  EXPECT_EQ(learner.ddp().forward(batch.to(comm::rank_device())).dtype(), DType::kBFloat16);
}

// Where the step is a graph, it has a kernel less.
TEST_P(Pieces, TakeInputsInTheDtypeThatTheModelCastsThemTo) {
  const amp::AmpOptions& level = GetParam().amp;
  const DType dtype = amp::properties_of(level).input_dtype();
  const auto dataset = std::make_shared<data::SyntheticDataset>(
      data::SyntheticOptions{.samples = 23, .shape = {8, 8, 2}, .classes = comm::kClasses});
  data::LoaderOptions options{.global_batch = 7,  // shares of three ranks are uneven
                              .rank = world().rank(),
                              .world_size = world().size(),
                              .drop_last = true,
                              .device = comm::rank_device()};
  data::Loader wide_loader(dataset, options);
  options.input_dtype = dtype;
  data::Loader narrow_loader(dataset, options);
  const comm::LearnerOptions learner{
      .model = kConvnet, .optimizer = kClipped, .amp = level, .scaler = {.init = 1024}, .seed = 7};
  Learner wide(learner, 8, 2), narrow(learner, 8, 2);
  wide.join();
  narrow.join();
  TrainingStep wide_step(wide.ddp(), wide.optimizer(), wide.scaler(), ops::cross_entropy);
  TrainingStep narrow_step(narrow.ddp(), narrow.optimizer(), narrow.scaler(), ops::cross_entropy);
  for (int number = 1; number <= 5; ++number) {
    const data::Batch batch = narrow_loader.next();
    EXPECT_EQ(batch.input.dtype(), dtype);
    narrow_step.run(batch);
    wide_step.run(wide_loader.next());
    ASSERT_TRUE(comm::bits_of(comm::state_of(narrow)) == comm::bits_of(comm::state_of(wide))) << "step " << number;
  }
  const bool is_graph = comm::rank_device() != kCpu;
  EXPECT_EQ(narrow_step.graph_launches() > 0, is_graph);
  EXPECT_EQ(narrow_step.graph_nodes() + (is_graph && is_reduced(dtype) ? 1 : 0), wide_step.graph_nodes());
}

// Whether the comparison above would notice another mask.
TEST(Pieces, DrawOtherMasksInAnotherStep) {
  const comm::LearnerOptions options{.model = kConvnet, .optimizer = kSgd, .seed = 7};
  Learner one(options, 8, 2), other(options, 8, 2);
  one.join();
  other.join();
  const Samples samples = comm::make_samples(23, 8, 2, 1);
  step_by_hand(one, batches_of(samples, 1, 1, Shares::kEven));
  step_by_hand(other, batches_of(samples, 2, 1, Shares::kEven));
  EXPECT_GT(comm::distance(one.arena().grads(), other.arena().grads()), 0.01 * comm::norm(one.arena().grads()));
}

TEST(Verdict, NamesTheRankHoweverTheStepIsWritten) {
  const comm::LearnerOptions options{.model = comm::MlpOptions{.hidden = {8}}, .optimizer = kSgd};
  Learner whole(options, 8, 2), by_hand(options, 8, 2);
  whole.join();
  by_hand.join();
  TrainingStep step(whole.ddp(), whole.optimizer(), whole.scaler(), ops::cross_entropy);
  const int last = world().size() - 1;
  const Samples samples = comm::make_samples(12, 8, 2, 1);
  if (world().rank() == last) {
    const std::span<float> values = samples.input.mutable_as<float>();
    for (float& value : values) value = std::numeric_limits<float>::infinity();
  }
  const std::vector<data::Batch> batches = batches_of(samples, 1, 1, Shares::kEven);
  step.run(batches);
  const StepOutcome outcome = step.outcome();
  EXPECT_TRUE(outcome.skipped());
  EXPECT_EQ(outcome.verdict.rank, last);
  EXPECT_EQ(step.bad_parameter(outcome), whole.arena().slots()[0].parameter.name);
  EXPECT_EQ(step_by_hand(by_hand, batches).rank, last);
}

TEST(OddRank, IsNamedByTheOutcomeOfAStep) {
  const comm::LearnerOptions options{.model = comm::MlpOptions{.hidden = {8}}, .optimizer = kSgd};
  Learner mine(options, 8, 2);
  mine.join();
  TrainingStep step(mine.ddp(), mine.optimizer(), mine.scaler(), ops::cross_entropy);
  const std::vector<data::Batch> batches = batches_of(comm::make_samples(12, 8, 2, 1), 1, 1, Shares::kEven);
  step.run(batches);
  const std::vector<std::string> before = comm::bits_of(comm::state_of(mine));
  if (world().rank() == world().size() - 1) mine.optimizer().set_learning_rate(0.25);
  const auto run = [&] {
    step.run(batches);
    step.outcome();
  };
  if (world().size() == 1) return run();
  EXPECT_THAT(run, testing::ThrowsMessage<PeerError>(testing::HasSubstr("rank " + std::to_string(world().size() - 1) +
                                                                        " has a learning rate of 0.25")));
  EXPECT_TRUE(comm::bits_of(comm::state_of(mine)) == before);
}

TEST(CompareWeights, LooksAtEveryNthStep) {
  const comm::LearnerOptions options{.model = comm::MlpOptions{.hidden = {8}}, .optimizer = kSgd};
  Learner mine(options, 8, 2);
  mine.join();
  TrainingStep step(mine.ddp(), mine.optimizer(), mine.scaler(), ops::cross_entropy, {.compare_weights_every = 3});
  const std::vector<data::Batch> batches = batches_of(comm::make_samples(12, 8, 2, 1), 0, 1, Shares::kEven);
  step.run(batches);
  if (world().rank() == world().size() - 1) {
    const Tensor weight = mine.arena().master(mine.arena().slots()[0]);
    weight.copy_from(Tensor::zeros(weight.shape(), DType::kFloat32));
  }
  step.run(batches);
  if (world().size() == 1) return step.run(batches);
  const std::string name = mine.arena().slots()[0].parameter.name;
  EXPECT_THAT([&] { step.run(batches); },
              testing::ThrowsMessage<PeerError>(testing::HasSubstr("the ranks no longer hold the same " + name)));
}

}  // namespace
}  // namespace lockstep::step
