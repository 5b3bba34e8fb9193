// SPDX-License-Identifier: Apache-2.0
// A transformer block of structure operations, layer norms, an embedding and attention with dropout, and a loss with
// class weights and an ignored class. Run as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "comm/ddp/digest.h"
#include "runtime/data/batch.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kBlockWords = 11, kBlockWidth = 8, kBlockHeads = 2, kBlockLength = 5, kBlockClasses = 4,
                       kIgnoredWord = 3;

class Block : public nn::Module {
 public:
  Block()
      : table_(add_module<nn::Embedding>("table", kBlockWords, kBlockWidth)),
        places_(add_parameter("places", {kBlockLength, kBlockWidth}, nn::ParameterKind::kWeight,
                              nn::Initializer::normal(0.1))),
        before_attention_(add_module<nn::LayerNorm>("before_attention", Shape{kBlockWidth})),
        projections_(add_module<nn::Linear>("projections", kBlockWidth, 3 * kBlockWidth)),
        joined_(add_module<nn::Linear>("joined", kBlockWidth, kBlockWidth)),
        before_hidden_(add_module<nn::LayerNorm>("before_hidden", Shape{kBlockWidth})),
        hidden_(add_module<nn::Linear>("hidden", kBlockWidth, 2 * kBlockWidth, true, kernels::Activation::kGelu)),
        output_(add_module<nn::Linear>("output", 2 * kBlockWidth, kBlockWidth)),
        classes_(add_module<nn::Linear>("classes", 4 * kBlockWidth, kBlockClasses)) {
    nn::initialize(*this, 7);
  }

  Tensor forward(const Tensor& words) override {
    Tensor x = ops::add(table_.forward(words), places_);
    x = ops::add(x, joined_.forward(attended(before_attention_.forward(x))));
    x = ops::add(x, output_.forward(hidden_.forward(before_hidden_.forward(x))));
    const Tensor pooled = ops::cat({ops::mean(x, 1), ops::amax(x, 1), ops::var(x, 1), ops::select(x, 1, -1)}, 1);
    return classes_.forward(ops::where(ops::gt(pooled, 2.0), 2.0, pooled));
  }

  std::uint64_t step = 0;  ///< what masks are named by, beside the samples

 private:
  Tensor attended(const Tensor& x) const {
    const std::int64_t samples = x.size(0), channels = kBlockWidth / kBlockHeads;
    const auto heads_of = [&](const Tensor& part) {
      return ops::permute(ops::reshape(part, {samples, kBlockLength, kBlockHeads, channels}), {0, 2, 1, 3});
    };
    const std::vector<Tensor> parts = ops::chunk(projections_.forward(x), 3, -1);
    const Tensor y = ops::scaled_dot_product_attention(heads_of(parts[0]), heads_of(parts[1]), heads_of(parts[2]),
                                                       {.causal = true,
                                                        .dropout = 0.2,
                                                        .dropout_key = {.seed = 5, .step = step},
                                                        .first_sample = nn::StepContext::current().first_sample});
    return ops::reshape(ops::permute(y, {0, 2, 1, 3}), {samples, kBlockLength, kBlockWidth});
  }

  nn::Embedding& table_;
  Tensor places_;
  nn::LayerNorm& before_attention_;
  nn::Linear& projections_;
  nn::Linear& joined_;
  nn::LayerNorm& before_hidden_;
  nn::Linear& hidden_;
  nn::Linear& output_;
  nn::Linear& classes_;
};

/// A Block in training on all ranks, or alone.
struct BlockLoop {
  explicit BlockLoop(bool joined) {
    optimizer = optim::sgd(block.parameters(), {.lr = 0.1, .momentum = 0.9});
    amp::initialize(block, *optimizer, {.opt_level = amp::OptLevel::kO0}, rank_device());
    if (joined) ddp.emplace(block, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  /// `number` names the data.
  void step(std::int64_t samples, const Range& share, std::int64_t number) {
    const std::vector<double> weights{0.5, 1.5, 1.0, 2.0};
    std::vector<std::int64_t> words, labels;
    double of_batch = 0;
    for (std::int64_t i = 0; i < samples * kBlockLength; ++i) words.push_back((i * i + number * 5) % kBlockWords);
    for (std::int64_t i = 0; i < samples; ++i) {
      labels.push_back((i + number) % kBlockClasses);
      if (labels.back() != kIgnoredWord) of_batch += weights[static_cast<std::size_t>(labels.back())];
    }
    const data::Batch batch{
        .input = Tensor::from(words, {samples, kBlockLength}).rows(share.begin, share.end).to(rank_device()),
        .target = Tensor::from(labels, {samples}).rows(share.begin, share.end).to(rank_device()),
        .first_sample = share.begin,
        .step_samples = samples};
    block.step = static_cast<std::uint64_t>(number);
    const ShareOutput y = ddp ? ddp->forward(batch) : output_of_whole(nn::forward(block, batch.input), samples);
    optimizer->zero_grad();
    ops::cross_entropy(y, batch.target,
                       {.label_smoothing = 0.1,
                        .divisor = y.loss_divisor() / static_cast<double>(samples) * of_batch,
                        .weight = Tensor::from(weights, {kBlockClasses}).to(rank_device()),
                        .ignore_index = kIgnoredWord})
        .backward();
    optimizer->step();
  }

  Block block;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

TEST(TransformerBlock, TrainsAlikeOnAnyNumberOfRanks) {
  for (const Shares shares : {Shares::kEven, Shares::kGrowing, Shares::kLastIdle}) {
    BlockLoop truth(false), mine(true);
    const Tensor start = truth.block.arena()->masters().to(kCpu);
    const std::vector<float> before(start.as<float>().begin(), start.as<float>().end());
    for (std::int64_t step = 1; step <= 4; ++step) {
      truth.step(11, {0, 11}, step);
      mine.step(11, cut({0, 11}, world().rank(), world().size(), shares), step);
      const Tensor& weights = truth.block.arena()->masters();
      EXPECT_LE(distance(mine.block.arena()->masters(), weights), 1e-5 * norm(weights));
    }
    EXPECT_GT(distance(truth.block.arena()->masters(), Tensor::from(before, {start.numel()})), 0.01);
    require_equal_weights(*mine.block.arena(), mine.optimizer->state(), *world().communicator());
  }
}

}  // namespace
}  // namespace lockstep::comm
