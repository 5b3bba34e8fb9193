// SPDX-License-Identifier: Apache-2.0
// A weight that two layers share is one parameter: one slot, one gradient. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include "comm/ddp/digest.h"
#include "runtime/data/batch.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

using amp::OptLevel;

constexpr std::int64_t kWidth = 8;

/// Two layers with the same weight, or with weights of their own that are equal.
class TiedNet : public nn::Sequential {
 public:
  explicit TiedNet(bool tied) {
    auto& first = add<nn::Linear>("first", kWidth, kWidth, true, kernels::Activation::kGelu);
    if (tied) {
      add<nn::Linear>("second", first.parameters().front());
    } else {
      add<nn::Linear>("second", kWidth, kWidth);
    }
    nn::initialize(*this, 7);
    const std::vector<nn::Parameter> all = parameters();
    if (!tied) all[2].tensor.copy_from(all[0].tensor.detach());
  }
};

/// A TiedNet in training on all ranks, or alone.
struct TiedLoop {
  TiedLoop(bool tied, amp::OptLevel level, bool joined) : options{.opt_level = level}, net(tied) {
    optimizer = optim::sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    amp::initialize(net, *optimizer, options, rank_device());
    if (joined) ddp.emplace(net, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  void backward(const Tensor& input, const Range& share) {
    const Tensor x = input.rows(share.begin, share.end).to(rank_device());
    const data::Batch batch{.input = x, .step_samples = input.size(0)};
    const ShareOutput y = ddp ? ddp->forward(batch) : output_of_whole(nn::forward(net, x), x.size(0));
    optimizer->zero_grad();
    ops::scale(ops::mse(y, Tensor::zeros(y.shape(), y.dtype(), y.device())), y.loss_weight()).backward();
  }

  Tensor grad(std::size_t parameter) { return net.parameters()[parameter].tensor.grad(); }

  amp::AmpOptions options;
  TiedNet net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

TEST(TiedWeights, AreOneSlotWithTheGradientsOfBothUses) {
  const Tensor input = make_samples(10, 2, 2, 1).input.reshaped({10, kWidth});
  for (const OptLevel level : {OptLevel::kO0, OptLevel::kO1, OptLevel::kO2}) {
    SCOPED_TRACE(static_cast<int>(level));
    TiedLoop apart(false, level, false), tied(true, level, true);
    ASSERT_EQ(tied.net.arena()->slots().size(), 3u);
    apart.backward(input, {0, 10});
    tied.backward(input, cut({0, 10}, world().rank(), world().size(), Shares::kGrowing));
    const Tensor sum = Tensor::empty({kWidth, kWidth}, DType::kFloat32, rank_device());
    kernels::cast(apart.grad(0), sum);
    kernels::accumulate(apart.grad(2), sum);
    EXPECT_GT(norm(apart.grad(2)), 0.0);
    EXPECT_LE(distance(tied.grad(0), sum), (level == OptLevel::kO0 ? 1e-5 : 1e-2) * norm(sum));
  }
}

TEST(TiedWeights, TrainAlikeOnAnyNumberOfRanks) {
  TiedLoop truth(true, OptLevel::kO0, false), mine(true, OptLevel::kO0, true);
  const Range share = cut({0, 11}, world().rank(), world().size(), Shares::kLastIdle);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const Tensor input = make_samples(11, 2, 2, step).input.reshaped({11, kWidth});
    truth.backward(input, {0, 11});
    mine.backward(input, share);
    truth.optimizer->step();
    mine.optimizer->step();
    const Tensor& weights = truth.net.arena()->masters();
    EXPECT_LE(distance(mine.net.arena()->masters(), weights), 1e-5 * norm(weights));
  }
  require_equal_weights(*mine.net.arena(), mine.optimizer->state(), *world().communicator());
}

TEST(TiedWeights, AreSavedAndLoadedUnderTheFirstName) {
  TiedLoop saved(true, OptLevel::kO1, true), loaded(true, OptLevel::kO1, false);
  const Tensor input = make_samples(9, 2, 2, 1).input.reshaped({9, kWidth});
  saved.backward(input, cut({0, 9}, world().rank(), world().size(), Shares::kEven));
  saved.optimizer->step();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < saved.net.arena()->slots().size(); ++i) {
    const nn::Arena::Slot& slot = saved.net.arena()->slots()[i];
    names.push_back(slot.parameter.name);
    loaded.net.arena()->master(loaded.net.arena()->slots()[i]).copy_from(saved.net.arena()->master(slot));
  }
  loaded.net.arena()->refresh_copies();
  EXPECT_THAT(names, testing::UnorderedElementsAre("first.weight", "first.bias", "second.bias"));
  EXPECT_EQ(weights_digest(*loaded.net.arena()), weights_digest(*saved.net.arena()));
  const Tensor x = input.to(rank_device());
  EXPECT_EQ(bits_of({nn::forward(loaded.net, x)}), bits_of({nn::forward(saved.net, x)}));
}

}  // namespace
}  // namespace lockstep::comm
