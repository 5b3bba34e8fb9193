// SPDX-License-Identifier: Apache-2.0
// A loop as users write it, without a StepContext: dropout masks are those of the global batch on any number of ranks.
// Run as 1 to 4 ranks.
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "runtime/data/batch.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

const MlpOptions kUserLoopMlp{.hidden = {16, 12}, .activation = Activation::kGelu, .dropout = 0.25, .batch_norm = true};

/// How a rank's forward pass learns where its samples lie.
enum class Place { kTold, kFoundOut };

class UserLoop {
 public:
  explicit UserLoop(const World* world)
      : model_(model_zoo::build(kUserLoopMlp, {{8, 8, 2}, kClasses}, 7)),
        optimizer_(optim::sgd(model_->parameters(), {.lr = 0.05, .momentum = 0.9})) {
    amp::initialize(*model_, *optimizer_, {}, rank_device());
    if (world != nullptr) ddp_.emplace(*model_, *world);
    scaler_.emplace(world != nullptr ? world->communicator() : make_self_communicator(rank_device()), kUnscaled);
  }

  /// The output of this rank's share of `samples`.
  Tensor step(const Samples& samples, const Range& share, Place place = Place::kTold) {
    const data::Batch batch{.input = samples.input.rows(share.begin, share.end).to(rank_device()),
                            .target = samples.target.rows(share.begin, share.end).to(rank_device()),
                            .first_sample = share.begin,
                            .step_samples = samples.target.numel()};
    optimizer_->zero_grad();
    // Where ddp is not told of the step's samples, gradients are averaged over ranks.
    const auto averaged = [&](const Tensor& output) {
      const double largest = static_cast<double>(batch.step_samples) / world().size();
      return ShareOutput(output, share.end - share.begin, Share{.loss_divisor = largest});
    };
    const ShareOutput output = !ddp_ ? output_of_whole(model_->forward(batch.input), batch.step_samples)
                               : place == Place::kTold ? ddp_->forward(batch)
                                                       : averaged(ddp_->forward(batch.input));
    scaler_->scale(ops::scale(ops::cross_entropy(output, batch.target), output.loss_weight())).backward();
    scaler_->step(*optimizer_);
    scaler_->update();
    return output.detach();
  }

  nn::Module& model() { return *model_; }
  nn::Arena& arena() { return *model_->arena(); }
  DistributedDataParallel& ddp() { return *ddp_; }

 private:
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<DistributedDataParallel> ddp_;
  std::optional<amp::GradScaler> scaler_;
};

Range share_of(std::int64_t samples, Shares shares) {
  return cut({0, samples}, world().rank(), world().size(), shares);
}

TEST(UserLoop, DrawsTheMasksOfOneRank) {
  for (const Place place : {Place::kTold, Place::kFoundOut}) {
    for (const Shares shares : {Shares::kEven, Shares::kGrowing, Shares::kLastIdle}) {
      SCOPED_TRACE(static_cast<int>(shares));
      UserLoop truth(nullptr), mine(&world());
      const double tolerance =
          8 * std::numeric_limits<float>::epsilon() * static_cast<double>(truth.arena().slots().size());
      const Range share = share_of(23, shares);
      for (std::uint64_t step = 1; step <= 3; ++step) {
        const Samples batch = make_samples(23, 8, 2, step);
        const Tensor whole = truth.step(batch, {0, 23});
        const Tensor output = mine.step(batch, share, place);
        EXPECT_LE(distance(output, whole.rows(share.begin, share.end)), 10 * tolerance * norm(whole));
        EXPECT_LE(distance(mine.arena().grads(), truth.arena().grads()), tolerance * norm(truth.arena().grads()));
        EXPECT_LE(distance(mine.arena().masters(), truth.arena().masters()), tolerance * norm(truth.arena().masters()));
      }
    }
  }
}

// Whether the comparison above would notice.
TEST(UserLoop, DrawsOtherMasksElsewhereInTheBatch) {
  UserLoop truth(nullptr), mine(&world());
  const Samples batch = make_samples(23, 8, 2, 1);
  const Tensor whole = truth.step(batch, {0, 23});
  const Range share = share_of(23, Shares::kEven);
  const Tensor input = batch.input.rows(share.begin, share.end).to(rank_device());
  const Tensor elsewhere = mine.ddp().forward(input, {.first_sample = share.begin + 1});
  EXPECT_GT(distance(elsewhere, whole.rows(share.begin, share.end)), 0.01 * norm(whole));
}

TEST(UserLoop, DrawsNewMasksEachStep) {
  UserLoop mine(&world());
  const Samples batch = make_samples(23, 8, 2, 1);
  const Range share = share_of(23, Shares::kEven);
  const Tensor input = batch.input.rows(share.begin, share.end).to(rank_device());
  const Tensor first = mine.ddp().forward(input);
  EXPECT_GT(distance(mine.ddp().forward(input), first), 0.01 * norm(first));
}

TEST(UserLoop, KeepsTheMasksOfAStepContext) {
  UserLoop truth(nullptr), mine(&world());
  const Samples batch = make_samples(23, 8, 2, 1);
  const Range share = share_of(23, Shares::kGrowing);
  Tensor whole, output;
  {
    const nn::StepContext context(7, 5, 0);
    whole = truth.model().forward(batch.input.to(rank_device()));
  }
  const nn::StepContext context(7, 5, share.begin);
  output = mine.ddp().forward(batch.input.rows(share.begin, share.end).to(rank_device()));
  EXPECT_LE(distance(output, whole.rows(share.begin, share.end)), 1e-5 * norm(whole));
}

}  // namespace
}  // namespace lockstep::comm
