// SPDX-License-Identifier: Apache-2.0
// A model that nobody initialised trains from PyTorch's distributions, alike on any number of ranks. Run as 1 to 4.
#include <gtest/gtest.h>

#include <limits>

#include "comm/ddp/digest.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kMadeModelSamples = 12;

/// A model as a program makes it, and its optimizer.
struct MadeModel {
  MadeModel() {
    net.add<nn::Flatten>("flatten");
    net.add<nn::Linear>("in", 32, 16, true, Activation::kTanh);
    net.add<nn::Linear>("out", 16, kClasses);
    optimizer = optim::sgd(net.parameters(), {.lr = 0.2});
    amp::initialize(net, *optimizer, {}, rank_device());
  }

  /// Trains on the share of `samples`; returns the last loss of the whole batch, a sum over shares.
  double train(const Samples& samples, const Range& share, const std::function<ShareOutput(const Tensor&)>& forward) {
    const Tensor input = samples.input.rows(share.begin, share.end).to(rank_device());
    const Tensor target = samples.target.rows(share.begin, share.end).to(rank_device());
    double last = 0;
    for (int step = 0; step < 30; ++step) {
      optimizer->zero_grad();
      const ShareOutput output = forward(input);
      const Tensor loss = ops::cross_entropy(output, target, {.divisor = output.loss_divisor()});
      loss.backward();
      optimizer->step();
      last = loss.item() * output.share().loss_factor;
    }
    return last;
  }

  nn::Sequential net;
  std::unique_ptr<optim::Optimizer> optimizer;
};

TEST(MadeModel, HasTheSameWeightsOnEveryRankAndLearns) {
  nn::manual_seed(5);
  MadeModel truth, other;
  nn::manual_seed(5);
  MadeModel mine;
  EXPECT_EQ(weights_digest(*mine.net.arena()), weights_digest(*truth.net.arena()));
  EXPECT_NE(weights_digest(*other.net.arena()), weights_digest(*truth.net.arena()));
  // Before a DistributedDataParallel makes it so.
  require_equal_weights(*mine.net.arena(), {}, *world().communicator());

  DistributedDataParallel ddp(mine.net, world());
  const Samples samples = make_samples(kMadeModelSamples, 4, 2, 1);
  const double whole = truth.train(samples, {0, kMadeModelSamples}, [&](const Tensor& x) {
    return output_of_whole(nn::forward(truth.net, x), kMadeModelSamples);
  });
  const Range share = cut({0, kMadeModelSamples}, world().rank(), world().size(), Shares::kGrowing);
  const double shared = sum_over_ranks(mine.train(samples, share, [&](const Tensor& x) {
    return ddp.forward(x, {.first_sample = share.begin, .step_samples = kMadeModelSamples});
  }));
  EXPECT_LT(whole, 0.5) << "a network that starts from zeros learns how frequent the classes are, no more";
  EXPECT_NEAR(shared, whole, 1e-5);
  EXPECT_LE(distance(mine.net.arena()->masters(), truth.net.arena()->masters()),
            1e-5 * norm(truth.net.arena()->masters()));
}

}  // namespace
}  // namespace lockstep::comm
