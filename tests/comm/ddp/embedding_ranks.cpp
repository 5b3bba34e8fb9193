// SPDX-License-Identifier: Apache-2.0
// A table whose gradient is dense though a rank sees few of its rows, and a layer norm. Run as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "comm/ddp/digest.h"
#include "runtime/data/batch.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/normalization.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kEmbeddings = 9, kEmbeddingWidth = 6, kEmbeddingLength = 4, kEmbeddingClasses = 3;

class EmbeddingNet : public nn::Sequential {
 public:
  EmbeddingNet() {
    add<nn::Embedding>("table", kEmbeddings, kEmbeddingWidth, 0);
    add<nn::LayerNorm>("norm", Shape{kEmbeddingWidth});
    add<nn::Linear>("hidden", kEmbeddingWidth, kEmbeddingWidth, true, kernels::Activation::kGelu);
    add<nn::RmsNorm>("scale", Shape{kEmbeddingWidth});
    add<nn::Flatten>("flatten");
    add<nn::Linear>("classes", kEmbeddingLength * kEmbeddingWidth, kEmbeddingClasses);
    nn::initialize(*this, 7);
  }
};

/// An EmbeddingNet in training on all ranks, or alone.
struct EmbeddingLoop {
  explicit EmbeddingLoop(bool joined) {
    optimizer = optim::sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    amp::initialize(net, *optimizer, {.opt_level = amp::OptLevel::kO0}, rank_device());
    if (joined) ddp.emplace(net, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  void step(std::int64_t samples, const Range& share, std::int64_t number) {
    std::vector<std::int64_t> words, labels;
    for (std::int64_t i = 0; i < samples * kEmbeddingLength; ++i) words.push_back((i * i + number * 5) % kEmbeddings);
    for (std::int64_t i = 0; i < samples; ++i) labels.push_back((i + number) % kEmbeddingClasses);
    const Tensor input =
        Tensor::from(words, {samples, kEmbeddingLength}).rows(share.begin, share.end).to(rank_device());
    const Tensor target = Tensor::from(labels, {samples}).rows(share.begin, share.end).to(rank_device());
    const data::Batch batch{.input = input, .target = target, .step_samples = samples};
    const ShareOutput y = ddp ? ddp->forward(batch) : output_of_whole(nn::forward(net, input), samples);
    optimizer->zero_grad();
    ops::scale(ops::cross_entropy(y, target), y.loss_weight()).backward();
    optimizer->step();
  }

  EmbeddingNet net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

TEST(EmbeddingAndLayerNorm, TrainAlikeOnAnyNumberOfRanks) {
  for (const Shares shares : {Shares::kEven, Shares::kGrowing, Shares::kLastIdle}) {
    EmbeddingLoop truth(false), mine(true);
    for (std::int64_t step = 1; step <= 3; ++step) {
      truth.step(11, {0, 11}, step);
      mine.step(11, cut({0, 11}, world().rank(), world().size(), shares), step);
      const Tensor& weights = truth.net.arena()->masters();
      EXPECT_LE(distance(mine.net.arena()->masters(), weights), 1e-5 * norm(weights));
    }
    require_equal_weights(*mine.net.arena(), mine.optimizer->state(), *world().communicator());
  }
}

}  // namespace
}  // namespace lockstep::comm
