// SPDX-License-Identifier: Apache-2.0
// A network whose residual branches are Tensor's own members: they carry gradients as operations do. Run as 1 to 4
// ranks.
#include <gmock/gmock.h>

#include "comm/ddp/digest.h"
#include "runtime/data/batch.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kFeatures = 8;

/// last(h) + two branches of h = first(x), each either by Tensor's members or by operations.
class ResidualNet : public nn::Sequential {
 public:
  explicit ResidualNet(bool by_members)
      : by_members_(by_members),
        first_(add<nn::Linear>("first", kFeatures, kFeatures, true, kernels::Activation::kGelu)),
        last_(add<nn::Linear>("last", kFeatures, kFeatures)) {
    nn::initialize(*this, 7);
  }

  Tensor forward(const Tensor& x) override {
    const Tensor h = first_.forward(x);
    return ops::add(ops::add(last_.forward(h), copied(h)), upper(h));
  }

 private:
  Tensor copied(const Tensor& h) const {
    if (!by_members_) return ops::reshape(ops::flatten(h), h.shape());
    const Tensor copy = Tensor::empty({h.numel()}, h.dtype(), h.device());
    copy.copy_from(h.reshaped({h.numel()}).to(h.device()));
    return copy.reshaped(h.shape());
  }
  /// The first row beside each; zeros where there is none.
  Tensor upper(const Tensor& h) const {
    if (h.size(0) == 0) return h;
    return by_members_ ? h.rows(0, 1) : ops::slice(h, 0, 0, 1);
  }

  bool by_members_;
  nn::Linear& first_;
  nn::Linear& last_;
};

/// A ResidualNet in training: on all ranks, or alone.
struct ResidualLoop {
  ResidualLoop(bool by_members, bool joined) : net(by_members) {
    optimizer = optim::sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    amp::initialize(net, *optimizer, {.opt_level = amp::OptLevel::kO0}, rank_device());
    if (joined) ddp.emplace(net, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  void step(const Tensor& input) {
    const data::Batch batch{.input = input.to(rank_device()),
                            .step_samples = input.size(0) * (ddp ? world().size() : 1)};
    optimizer->zero_grad();
    if (ddp) {
      const ShareOutput y = ddp->forward(batch);
      backward(y, y.loss_weight());
    } else {
      backward(nn::forward(net, batch.input), 1.0);
    }
    optimizer->step();
  }

  static void backward(const Tensor& y, double weight) {
    ops::scale(ops::mse(y, Tensor::zeros(y.shape(), y.dtype(), y.device())), weight).backward();
  }

  ResidualNet net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

TEST(ResidualBranches, TrainAlikeByMembersAndByOperationsOnAnyNumberOfRanks) {
  ResidualLoop truth(false, false), mine(true, true);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    // The same part on every rank, so that each knows what one alone would do with it.
    const Tensor input = make_samples(6, 2, 2, step).input.reshaped({6, kFeatures});
    truth.step(input);
    mine.step(input);
    const Tensor& weights = truth.net.arena()->masters();
    EXPECT_LE(distance(mine.net.arena()->masters(), weights), 1e-5 * norm(weights));
  }
  require_equal_weights(*mine.net.arena(), mine.optimizer->state(), *world().communicator());
}

}  // namespace
}  // namespace lockstep::comm
