// SPDX-License-Identifier: Apache-2.0
// A loss with a penalty on the gradient by the input: batch norm's statistics, and their gradients twice over, are
// those of all ranks. Every rank trains the same model a second time, alone, on whole batches. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include "comm/ddp/digest.h"
#include "runtime/autograd/engine.h"
#include "runtime/data/batch.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kPenaltySamples = 12;

const MlpOptions kPenaltyMlp{.hidden = {16, 12}, .activation = Activation::kGelu, .dropout = 0.25, .batch_norm = true};
const ConvnetOptions kPenaltyConvnet{.blocks = {{
                                                    .channels = 4,
                                                    .activation = Activation::kTanh,
                                                },
                                                {.channels = 6, .stride = 2}},
                                     .dropout = 0.2,
                                     .hidden = {8}};

/// Where a ReLU's input lies at 0 to rounding, its derivative jumps, and a penalty with it: float16 comes there too
/// often.
const ConvnetOptions kSmoothConvnet{.blocks = {{.channels = 4, .activation = Activation::kTanh},
                                               {.channels = 6, .stride = 2, .activation = Activation::kTanh}},
                                    .dropout = 0.2};

/// One of the models, and the forward and backward pass of a step of it.
class Penalized {
 public:
  Penalized(const model_zoo::ModelOptions& model, const amp::AmpOptions& amp, bool alone)
      // A wire of 16 bits rounds the gradients of several ranks, and those of one that trains alone not at all.
      : learner_({.model = model,
                  .optimizer = with_sgd({.lr = 0.02, .momentum = 0.9}),
                  .amp = amp,
                  .ddp = {.wire_dtype = DType::kFloat32},
                  .seed = 7},
                 8, 2),
        alone_(alone) {
    if (!alone) learner_.join();
  }

  /// Returns this share's contribution to the mean loss.
  double step(const Samples& samples, const Range& share, std::uint64_t step) {
    const data::Batch batch{.input = samples.input.rows(share.begin, share.end).to(rank_device()),
                            .target = samples.target.rows(share.begin, share.end).to(rank_device()),
                            .step = step,
                            .first_sample = share.begin,
                            .step_samples = kPenaltySamples};
    batch.input.set_requires_grad(true);
    learner_.optimizer().zero_grad();
    const nn::StepContext context(7, step, share.begin);
    const ShareOutput output = alone_ ? output_of_whole(nn::forward(learner_.model(), batch.input), kPenaltySamples)
                                      : learner_.ddp().forward(batch);
    const double divisor = output.loss_divisor();
    const Tensor loss =
        ops::cross_entropy(output, batch.target, {.divisor = divisor}) + penalty(batch.input, output) / divisor;
    if (!alone_) count_gradients();
    learner_.scaler().scale(loss).backward();
    learner_.step();
    return loss.item() * output.share().loss_factor;
  }

  nn::Arena& arena() { return learner_.arena(); }
  optim::Optimizer& optimizer() { return learner_.optimizer(); }
  /// How often the last backward pass reported each parameter.
  const std::vector<int>& reports() const { return reports_; }

 private:
  /// The sum over samples of (|gradient of tanh of the outputs by the sample| - 1)^2.
  Tensor penalty(const Tensor& input, const Tensor& output) {
    const Tensor dx = autograd::grad(ops::sum(ops::tanh(output)), {input}, {}, {.create_graph = true}).front();
    const Tensor flat = ops::flatten(dx);
    const Tensor excess = ops::sqrt(ops::sum_to(flat * flat, {flat.size(0), 1}) + 0.01) - 1;
    return ops::sum(excess * excess);
  }

  void count_gradients() {
    reports_.assign(arena().slots().size(), 0);
    learner_.ddp().reducer().set_on_gradient([this](std::size_t slot) { ++reports_[slot]; });
  }

  Learner learner_;
  bool alone_;
  std::vector<int> reports_;
};

struct PenaltyCase {
  const char* name;
  model_zoo::ModelOptions model;
  Shares shares;
  amp::AmpOptions amp = {};
  double bound = 1e-5;
  std::uint64_t steps = 20;
};

// What ranks round otherwise in 16 bits grows from step to step.
const amp::AmpOptions kPenaltyFloat16{.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16};

class GradientPenalty : public testing::TestWithParam<PenaltyCase> {};
INSTANTIATE_TEST_SUITE_P(
    Models, GradientPenalty,
    testing::Values(PenaltyCase{"Mlp", kPenaltyMlp, Shares::kEven},
                    PenaltyCase{"MlpUneven", kPenaltyMlp, Shares::kGrowing},
                    PenaltyCase{"Convnet", kPenaltyConvnet, Shares::kEven},
                    PenaltyCase{"ConvnetRankWithoutSample", kPenaltyConvnet, Shares::kLastIdle},
                    PenaltyCase{"MlpFloat16", kPenaltyMlp, Shares::kGrowing, kPenaltyFloat16, 0x1p-8, 10},
                    PenaltyCase{"ConvnetFloat16", kSmoothConvnet, Shares::kLastIdle, kPenaltyFloat16, 0x1p-8, 10}),
    [](const auto& at) { return at.param.name; });

TEST_P(GradientPenalty, TrainsOnAnyNumberOfRanksAsOnOne) {
  const auto& [name, model, shares, amp, bound, steps] = GetParam();
  Penalized truth(model, amp, true), mine(model, amp, false);
  const Range share = cut({0, kPenaltySamples}, world().rank(), world().size(), shares);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Samples batch = make_samples(kPenaltySamples, 8, 2, step);
    const double loss = truth.step(batch, {0, kPenaltySamples}, step);
    EXPECT_NEAR(sum_over_ranks(mine.step(batch, share, step)), loss, bound * loss);
    // grad() reported nothing, and the backward pass each parameter once, when all its uses were behind it.
    EXPECT_THAT(mine.reports(), testing::Each(1));
    if (step > 3) continue;
    EXPECT_LE(distance(mine.arena().grads(), truth.arena().grads()), bound * norm(truth.arena().grads()));
    EXPECT_LE(distance(mine.arena().masters(), truth.arena().masters()), bound * norm(truth.arena().masters()));
  }
  require_equal_weights(mine.arena(), mine.optimizer().state(), *world().communicator());
}

}  // namespace
}  // namespace lockstep::comm
