// SPDX-License-Identifier: Apache-2.0
// A network that takes an image, a table and a text trains alike on any number of ranks. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/multi_input_module.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"
#include "tests/runtime/data/several_inputs.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kBatchOfInputs = 7;

class ThreeBranches final : public nn::MultiInputModule<3> {
 public:
  ThreeBranches()
      : image_(add_module<nn::Linear>("image", 4, 6)),
        table_(add_module<nn::Linear>("table", 3, 6)),
        words_(add_module<nn::Embedding>("words", 7, 6)),
        head_(add_module<nn::Linear>("head", 6, 3)) {
    nn::initialize(*this, 7);
  }
  Tensor forward(const Tensor& image, const Tensor& table, const Tensor& text) override {
    return head_.forward(
        ops::gelu(image_.forward(ops::flatten(image)) + table_.forward(table) + ops::sum(words_.forward(text), 1)));
  }

 private:
  nn::Linear& image_;
  nn::Linear& table_;
  nn::Embedding& words_;
  nn::Linear& head_;
};

/// In training on all ranks, each with its share of the batches; or alone, with all of them.
struct SeveralInputsLoop {
  SeveralInputsLoop(amp::OptLevel level, DType dtype, bool joined)
      : loader(std::make_shared<data::ImagesTablesAndTexts>(), {.global_batch = kBatchOfInputs,
                                                                .rank = joined ? world().rank() : 0,
                                                                .world_size = joined ? world().size() : 1,
                                                                .seed = 5}) {
    optimizer = optim::sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    amp::initialize(model, *optimizer, {.opt_level = level, .dtype = dtype}, rank_device());
    if (joined) ddp.emplace(model, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  void step() {
    const data::Batch batch = loader.next().to(rank_device());
    optimizer->zero_grad();
    if (ddp) {
      const ShareOutput output = ddp->forward(batch);
      ops::cross_entropy(output, batch.target, {.divisor = output.loss_divisor()}).backward();
    } else {
      ops::cross_entropy(nn::forward(model, batch.inputs()), batch.target).backward();
    }
    optimizer->step();
  }

  data::Loader loader;
  ThreeBranches model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

TEST(SeveralInputs, TrainAlikeOnAnyNumberOfRanks) {
  for (const auto& [level, dtype, bound] :
       {std::tuple(amp::OptLevel::kO0, DType::kFloat32, 1e-4), std::tuple(amp::OptLevel::kO1, DType::kBFloat16, 0.1),
        std::tuple(amp::OptLevel::kO2, DType::kFloat16, 0.02)}) {
    SeveralInputsLoop truth(level, dtype, false), mine(level, dtype, true);
    const Tensor before = ops::scale(truth.model.arena()->masters(), 1).detach();
    for (int step = 0; step < 6; ++step) {
      truth.step();
      mine.step();
    }
    const Tensor& weights = truth.model.arena()->masters();
    // Less than a part of the way that the weights have gone.
    const double way = distance(before, weights);
    EXPECT_GT(way, 0.01 * norm(weights));
    EXPECT_LE(distance(mine.model.arena()->masters(), weights), bound * way);
    require_equal_weights(*mine.model.arena(), mine.optimizer->state(), *world().communicator());
  }
}

TEST(SeveralInputs, OfDifferentNumbersOfSamplesAreRefused) {
  SeveralInputsLoop mine(amp::OptLevel::kO0, DType::kFloat32, true);
  data::Batch batch = mine.loader.next().to(rank_device());
  batch.more_inputs[0] = Tensor::zeros({batch.input.size(0) + 1, 3}, DType::kFloat32, rank_device());
  EXPECT_THROW(mine.ddp->forward(batch), UsageError);
  EXPECT_THROW(mine.ddp->forward(std::span<const Tensor>()), UsageError);
}

}  // namespace
}  // namespace lockstep::comm
