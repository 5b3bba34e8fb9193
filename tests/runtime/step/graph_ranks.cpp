// SPDX-License-Identifier: Apache-2.0
// Whether a step is a graph the ranks decide alike, whatever differs between them: NCCL hangs otherwise. Run as 1 to 3
// ranks.
#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/data/synthetic.h"
#include "runtime/kernels/backend_choice.h"
#include "runtime/step/training_step.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::step {
namespace {

using comm::Learner;
using comm::Samples;
using comm::Shares;
using comm::world;

const comm::LearnerOptions kLearner{.model = comm::MlpOptions{.hidden = {8}, .batch_norm = true},
                                    .optimizer = comm::with_sgd({.lr = 0.05, .momentum = 0.9}),
                                    .seed = 7};

bool on_gpu() { return comm::rank_device() != kCpu; }

/// A TrainingStep that writes down which of its steps were graphs, beside one that never makes any.
class TwoWays {
 public:
  explicit TwoWays(const Loss& loss = ops::cross_entropy, const Loss& eager_loss = ops::cross_entropy)
      : graphs_(kLearner, 8, 2), eager_(kLearner, 8, 2) {
    graphs_.join();
    eager_.join();
    step_.emplace(graphs_.ddp(), graphs_.optimizer(), graphs_.scaler(), loss);
    other_.emplace(eager_.ddp(), eager_.optimizer(), eager_.scaler(), eager_loss,
                   TrainingStepOptions{.graph = Graph::kOff});
  }

  void run(const data::Batch& batch) {
    const std::uint64_t before = step_->graph_launches();
    step_->run(batch);
    other_->run(batch);
    graph_steps_ += step_->graph_launches() > before ? 'g' : '-';
    EXPECT_EQ(comm::weights_digest(graphs_.arena()), comm::weights_digest(eager_.arena()));
    EXPECT_EQ(comm::bits_of(comm::state_of(graphs_)), comm::bits_of(comm::state_of(eager_)));
  }
  /// A letter a step: g where it was a graph. Of every rank.
  std::vector<std::string> graph_steps() const { return world().communicator()->all_gather_text(graph_steps_); }

 private:
  Learner graphs_, eager_;
  std::optional<TrainingStep> step_, other_;
  std::string graph_steps_;
};

/// This rank's share of so many samples, as a loop of one's own gives it.
data::Batch batch_of(std::int64_t count, comm::Range share, std::uint64_t step) {
  const Samples samples = comm::make_samples(count, 8, 2, step);
  return {.input = samples.input.rows(share.begin, share.end),
          .target = samples.target.rows(share.begin, share.end),
          .step = step,
          .first_sample = share.begin,
          .step_samples = count};
}

data::Batch dealt(std::int64_t count, std::uint64_t step) {
  const data::Range share = data::share({0, count}, world().rank(), world().size());
  data::Batch batch = batch_of(count, {share.begin, share.end}, step);
  batch.global_samples = count;
  batch.dealt = true;
  return batch;
}

/// Of batches whose largest share grows on some of the ranks alone.
TEST(GraphOfRanks, OfDealtBatchesIsDecidedAlike) {
  TwoWays steps;
  std::uint64_t step = 0;
  for (const std::int64_t count : {63, 63, 64, 63, 63, 64, 64, 67, 63, 63}) steps.run(dealt(count, ++step));
  // One of three ranks has a 22nd sample of the 64, and a 23rd of the 67.
  EXPECT_THAT(steps.graph_steps(), testing::Each(steps.graph_steps().front()));
  if (!on_gpu()) return;
  EXPECT_EQ(steps.graph_steps().front()[1], 'g');
  EXPECT_EQ(steps.graph_steps().front().back(), 'g');
}

TEST(GraphOfRanks, OfBatchesOfALoopsOwnIsAgreedOn) {
  TwoWays steps;
  // Only rank 0's share changes at the third step, and it gives one sample to the last rank.
  std::uint64_t step = 0;
  for (const bool moved : {false, false, true, false, true, true}) {
    const int rank = world().rank(), last = world().size() - 1;
    comm::Range share = comm::cut({0, 30}, rank, world().size(), Shares::kEven);
    if (moved && rank < last) --share.end;
    if (moved && rank > 0) --share.begin;
    steps.run(batch_of(30, share, ++step));
  }
  const std::string expected = world().size() == 1 ? "-ggggg" : "-g---g";
  EXPECT_THAT(steps.graph_steps(), testing::Each(on_gpu() ? expected : "------"));
}

TEST(GraphOfRanks, OfBatchesThatLieOnTheDeviceIsOneWhereverTheyLie) {
  TwoWays steps;
  std::vector<data::Batch> kept;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    kept.push_back(dealt(24, step).to(comm::rank_device()));
    steps.run(kept.back());
  }
  EXPECT_THAT(steps.graph_steps(), testing::Each(on_gpu() ? "-ggg" : "----"));
}

/// The division of an average is a part of the pass that looks for infinities.
TEST(GraphOfRanks, HasAPassAndAReductionABucket) {
  if (!on_gpu() || world().size() == 1) GTEST_SKIP() << "no rank of the CPU makes a graph, and a lone one no buckets";
  std::vector<std::size_t> nodes, buckets;
  for (const double mebibytes : {25.0, 1e-6}) {
    comm::LearnerOptions options = kLearner;
    options.ddp.bucket_mb = options.ddp.first_bucket_mb = mebibytes;
    Learner learner(options, 8, 2);
    learner.join();
    TrainingStep step(learner.ddp(), learner.optimizer(), learner.scaler(), ops::cross_entropy);
    for (std::uint64_t number = 1; number <= 2; ++number) step.run(dealt(24, number));
    nodes.push_back(step.graph_nodes());
    buckets.push_back(learner.ddp().reducer().buckets().size());
  }
  if (kernels::backend_name(comm::rank_device()) != "emulated") GTEST_SKIP() << "CUDA's pass has two kernels";
  ASSERT_GT(buckets[1], buckets[0]);
  EXPECT_EQ(nodes[1] - nodes[0], 2 * (buckets[1] - buckets[0]));
}

TEST(GraphOfRanks, RefusesADealtBatchThatIsNotTheRanksShare) {
  if (!on_gpu() || world().size() == 1) GTEST_SKIP() << "ranks decide alike only about graphs";
  data::Batch batch = dealt(24, 1);
  batch.input = batch.input.rows(0, 1);
  batch.target = batch.target.rows(0, 1);
  Learner learner(kLearner, 8, 2);
  learner.join();
  TrainingStep step(learner.ddp(), learner.optimizer(), learner.scaler(), ops::cross_entropy);
  EXPECT_THAT([&] { step.run(batch); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("has 1 samples of the 24 of a loader's batch")));
}

/// Reads the loss on the host, which no capture allows.
Tensor read_on_the_host(const Tensor& output, const Tensor& target, const ops::LossOptions& options) {
  const Tensor loss = ops::cross_entropy(output, target, options);
  EXPECT_TRUE(std::isfinite(loss.item()));
  return loss;
}

TEST(GraphOfRanks, WhoseCaptureFailsOnOneRankAllRunEagerly) {
  const bool fails = world().rank() == world().size() - 1;
  TwoWays steps(fails ? Loss(read_on_the_host) : Loss(ops::cross_entropy));
  for (std::uint64_t step = 1; step <= 5; ++step) steps.run(dealt(24, step));
  EXPECT_THAT(steps.graph_steps(), testing::Each("-----"));
}

/// An observer that breaks the capture of step 2 off, once.
class BreaksOff final : public StepObserver {
 public:
  explicit BreaksOff(Phase at) : at_(at) {}
  void step_begins(std::uint64_t step) override { step_ = step; }
  void phase_begins(Phase phase, std::uint64_t, std::uint32_t) override {
    if (phase != at_ || step_ != 2 || failed_ || !on_gpu()) return;
    failed_ = true;
    throw EnvironmentError("the capture was broken off");
  }
  bool failed() const { return failed_; }

 private:
  Phase at_;
  std::uint64_t step_ = 0;
  bool failed_ = false;
};

TEST(GraphOfRanks, WhoseCaptureIsBrokenOffGoesOnAsIfItHadNotBegun) {
  for (const Phase at : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
    Learner broken(kLearner, 8, 2), eager(kLearner, 8, 2);
    broken.join();
    eager.join();
    BreaksOff observer(at);
    TrainingStep step(broken.ddp(), broken.optimizer(), broken.scaler(), ops::cross_entropy,
                      {.observers = {&observer}});
    TrainingStep other(eager.ddp(), eager.optimizer(), eager.scaler(), ops::cross_entropy, {.graph = Graph::kOff});
    for (std::uint64_t number = 1; number <= 4; ++number) {
      step.run(dealt(24, number));
      other.run(dealt(24, number));
      EXPECT_EQ(comm::bits_of(comm::state_of(broken)), comm::bits_of(comm::state_of(eager))) << "step " << number;
    }
    EXPECT_EQ(observer.failed(), on_gpu());
    EXPECT_EQ(step.graph_launches(), 0u);
  }
}

}  // namespace
}  // namespace lockstep::step
