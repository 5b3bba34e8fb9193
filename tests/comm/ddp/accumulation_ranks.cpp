// SPDX-License-Identifier: Apache-2.0
// Gradients that 16 bits cannot hold well: sums of many micro-batches, and unscaled ones.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/digest.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/clip.h"
#include "runtime/optim/sgd.h"
#include "tests/comm/ddp/ddp_fixture.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::comm {
namespace {

const MlpOptions kAccumulationModel{.hidden = {24, 16}, .activation = Activation::kGelu};
LearnerOptions narrow_wire() {
  return {
      .model = kAccumulationModel, .scaler = {.dynamic = false, .init = 1024}, .ddp = {.wire_dtype = DType::kFloat16}};
}
constexpr std::int64_t kAccumulationSamples = 192;

/// The gradients of a step of so many micro-batches, each computed in float32 and added in float64.
std::vector<double> exact_gradients(const LearnerOptions& options, const Samples& samples, int micro_batches) {
  Learner learner(options, 4, 1);
  std::vector<double> sum(static_cast<std::size_t>(learner.arena().size()));
  for (const Range& part : part_of(kAccumulationSamples, micro_batches, 0, 1, Shares::kEven)) {
    learner.backward(samples, {part}, 1);
    const std::vector<float> one = floats_of(learner.arena().grads());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(one[i]);
  }
  return sum;
}

double median_error(const Tensor& found, const std::vector<double>& expected) {
  const Tensor host = found.to(kCpu);
  std::vector<double> errors;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0) continue;
    errors.push_back(std::abs(host.item(static_cast<std::int64_t>(i)) / expected[i] - 1));
  }
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::ranges::nth_element(errors, middle);
  return *middle;
}

class MicroBatches : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Accumulate, MicroBatches, testing::Values(1, 4, 64),
                         [](const auto& at) { return std::to_string(at.param); });

TEST_P(MicroBatches, AddUpAsExactlyAsOneOnA16BitWire) {
  const Samples samples = make_samples(kAccumulationSamples, 4, 1, 1);
  Learner learner(narrow_wire(), 4, 1);
  learner.join();
  learner.backward(samples, part_of(kAccumulationSamples, GetParam(), world().rank(), world().size(), Shares::kEven),
                   1);
  const double error = median_error(learner.arena().grads(), exact_gradients(narrow_wire(), samples, GetParam()));
  // A lone rank's sums never leave float32; others' are rounded to the wire, and the sum over ranks once more.
  const bool rounded = world().size() > 1 || GetParam() == 1;
  // Between GPUs they are rounded before the sum as well, where they are divided.
  EXPECT_LE(error, !rounded ? 1e-6 : rank_device() == kCpu ? 3e-4 : 4e-4);
  EXPECT_EQ(learner.arena().grads().dtype(), rounded ? DType::kFloat16 : DType::kFloat32);
}

/// Under autocast with a float16 wire, the gradient of 1, 4 or 64 micro-batches is no worse than PyTorch's float32
/// .grad under autocast. Errors are norms of the difference from the float64 gradient.
TEST(Accumulation, IsAsExactAsPyTorchsFloat32Gradient) {
  const kernels::json& stored = kernels::golden("levels").at("accumulation");
  const double scale = kernels::golden("levels").at("start").at("convnet").at("scale");
  const Tensor x = kernels::tensor_in(stored.at("x"), DType::kFloat32).to(rank_device());
  const Tensor target = kernels::tensor_in(stored.at("target"), DType::kFloat32).to(rank_device());
  const Tensor exact = kernels::tensor_in(stored.at("gradient"), DType::kFloat64);
  for (const auto& [name, expected_error] : stored.at("errors").items()) {
    SCOPED_TRACE(name + " micro-batches");
    nn::Linear model(x.size(1), target.size(1), false);
    nn::initialize(model, 1);
    model.parameters().front().tensor.copy_from(kernels::tensor_in(stored.at("weight"), DType::kFloat32));
    const auto optimizer = optim::sgd(model.parameters(), {.lr = 0.1});
    amp::initialize(model, *optimizer, {.opt_level = amp::OptLevel::kO1}, rank_device());
    DistributedDataParallel ddp(model, world(), {.wire_dtype = DType::kFloat16, .gradient_average = false});
    amp::GradScaler scaler(world(), {.dynamic = false, .init = scale});
    optimizer->zero_grad();
    const std::vector<Range> mine = part_of(x.size(0), std::stoi(name), world().rank(), world().size(), Shares::kEven);
    for (const Range& part : mine) {
      const auto local = ddp.no_sync(&part != &mine.back());
      const Tensor y = ddp.forward(x.rows(part.begin, part.end));
      EXPECT_EQ(y.dtype(), DType::kFloat16);
      const Tensor wanted = target.rows(part.begin, part.end);
      scaler.scale(ops::mse(y, wanted, {.divisor = static_cast<double>(x.size(0))})).backward();
    }
    const Tensor found = model.parameters().front().tensor.grad();
    double squares = 0;
    for (std::int64_t i = 0; i < exact.numel(); ++i) squares += std::pow(found.item(i) / scale - exact.item(i), 2);
    // Ranks add two roundings to the wire: of their own sum, and of the sum over ranks.
    EXPECT_LE(std::sqrt(squares), (world().size() == 1 ? 1.5 : 2.0) * expected_error.get<double>());
  }
}

TEST(Accumulation, WhoseSumTheWireCannotHoldSkipTheStep) {
  Learner learner(narrow_wire(), 4, 1);
  learner.join();
  const std::vector<std::string> before = bits_of(state_of(learner));
  const std::size_t last = learner.arena().slots().size() - 1;
  int passes = 0;
  learner.ddp().reducer().set_on_gradient([&](std::size_t slot) {
    if (slot != last || ++passes % 2 == 0) return;
    const nn::Arena::Slot& place = learner.arena().slots()[last];
    // Finite in float32, where the micro-batches are added.
    kernels::fill(learner.arena().grads().rows(place.begin, place.begin + 1), 1e6);
  });
  learner.backward(make_samples(kAccumulationSamples, 4, 1, 1),
                   part_of(kAccumulationSamples, 2, world().rank(), world().size(), Shares::kEven), 1);
  const amp::Verdict verdict = learner.step();
  const bool overflows = world().size() > 1;  // a lone rank has no wire
  EXPECT_EQ(verdict.found_inf, overflows ? 1.0f : 0.0f);
  EXPECT_EQ(verdict.slot, overflows ? static_cast<int>(last) : -1);
  EXPECT_EQ(verdict.rank, overflows ? 0 : -1);
  EXPECT_EQ(bits_of(state_of(learner)) == before, overflows);
}

class SeveralReductions : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WithAPassUnderNoSyncBetween, SeveralReductions, testing::Bool());

/// Gradients of backward passes of which the first and the last are reduced, as where no_sync() was forgotten.
TEST_P(SeveralReductions, AddUpToo) {
  for (const DdpOptions& ddp :
       {DdpOptions{}, DdpOptions{.gradient_average = false}, DdpOptions{.gradient_predivide_factor = 2}}) {
    SCOPED_TRACE(lines_of(ddp));
    const LearnerOptions options{.model = kAccumulationModel, .ddp = ddp};
    const Samples samples = make_samples(kAccumulationSamples, 4, 1, 1);
    Learner alone(options, 4, 1), mine(options, 4, 1);
    mine.join();
    alone.backward(samples, part_of(kAccumulationSamples, 3, 0, 1, Shares::kEven), 1);
    const Learner::Part parts = part_of(kAccumulationSamples, 3, world().rank(), world().size(), Shares::kGrowing);
    for (const Range& part : parts) {
      const auto no_sync = mine.ddp().no_sync(GetParam() && &part == &parts[1]);
      const nn::StepContext context(options.seed, 1, part.begin);
      const Tensor input = samples.input.rows(part.begin, part.end).to(rank_device());
      const Tensor target = samples.target.rows(part.begin, part.end).to(rank_device());
      const ShareOutput output = mine.ddp().forward(input, {.step_samples = kAccumulationSamples});
      mine.scaler().scale(ops::cross_entropy(output, target, {.divisor = output.loss_divisor()})).backward();
    }
    EXPECT_LE(distance(mine.arena().grads(), alone.arena().grads()), 1e-6 * norm(alone.arena().grads()));
  }
}

TEST(Accumulation, OfGradientsThatAreWeighedInTwoWaysIsRefused) {
  Learner mine({.model = kAccumulationModel, .ddp = {.gradient_average = false}}, 4, 1);
  mine.join();
  const Tensor input = make_samples(kAccumulationSamples, 4, 1, 1).input.to(rank_device());
  {
    const auto no_sync = mine.ddp().no_sync();
    const ShareOutput output = mine.ddp().forward(input, {.step_samples = 7 * kAccumulationSamples});
    ops::scale(ops::sum(output), 1 / output.loss_divisor()).backward();
  }
  const bool alone = world().size() == 1;  // whose gradients are multiplied by 1 in both
  const auto other_way = [&] { ops::mean(mine.ddp().forward(input)).backward(); };
  if (alone) return other_way();
  EXPECT_THAT(other_way, testing::ThrowsMessage<UsageError>(testing::HasSubstr("are weighed in two ways")));
  mine.optimizer().zero_grad();
  other_way();
}

/// The program reduces what passes under no_sync() left, and says so.
TEST(Accumulation, ReducedByTheProgramIsSteppedWith) {
  const LearnerOptions options{.model = kAccumulationModel, .scaler = {.init = 1024}};
  const Samples samples = make_samples(kAccumulationSamples, 4, 1, 1);
  const Range part = part_of(kAccumulationSamples, 1, world().rank(), world().size(), Shares::kEven).front();
  Learner theirs(options, 4, 1), mine(options, 4, 1);
  for (Learner* learner : {&theirs, &mine}) {
    learner->join();
    const auto no_sync = learner->ddp().no_sync(learner == &mine);
    const Tensor output = learner->ddp().forward(samples.input.rows(part.begin, part.end).to(rank_device()));
    const Tensor target = samples.target.rows(part.begin, part.end).to(rank_device());
    learner->scaler().scale(ops::cross_entropy(output, target)).backward();
  }
  const Tensor& gradients = mine.arena().grads();
  world().communicator()->all_reduce(gradients, ReduceOp::kAverage, 1.0f, Stream::current(gradients.device()));
  mine.ddp().take_as_reduced();
  EXPECT_EQ(mine.step().found_inf, 0.0f);
  EXPECT_EQ(theirs.step().found_inf, 0.0f);
  EXPECT_LE(distance(mine.arena().masters(), theirs.arena().masters()), 1e-6 * norm(theirs.arena().masters()));
}

/// A step with gradients that no pass has reduced would part the ranks.
TEST(Accumulation, UnderNoSyncAloneIsNotStepped) {
  for (const bool reduced_before : {false, true}) {
    SCOPED_TRACE(reduced_before);
    Learner mine({.model = kAccumulationModel, .scaler = {.init = 1024}}, 4, 1);
    mine.join();
    const Samples samples = make_samples(kAccumulationSamples, 4, 1, 1);
    const Range part = part_of(kAccumulationSamples, 1, world().rank(), world().size(), Shares::kEven).front();
    const auto backward = [&](bool sync) {
      const auto no_sync = mine.ddp().no_sync(!sync);
      const Tensor output = mine.ddp().forward(samples.input.rows(part.begin, part.end).to(rank_device()));
      const Tensor target = samples.target.rows(part.begin, part.end).to(rank_device());
      mine.scaler().scale(ops::cross_entropy(output, target)).backward();
    };
    if (reduced_before) backward(true);
    backward(false);
    if (world().size() == 1) {
      EXPECT_EQ(mine.step().found_inf, 0.0f) << "a lone rank has nothing to reduce";
      continue;
    }
    const std::vector<std::string> before = bits_of(state_of(mine));
    const auto is_told = testing::ThrowsMessage<UsageError>(
        testing::HasSubstr("is that of this rank alone: " + std::to_string(world().size()) + " ranks train its model"));
    EXPECT_THAT([&] { mine.scaler().step(mine.optimizer()); }, is_told);
    EXPECT_THAT([&] { mine.scaler().unscale_(mine.optimizer()); }, is_told);
    EXPECT_THAT([&] { mine.optimizer().step(); }, testing::Throws<UsageError>());
    EXPECT_TRUE(bits_of(state_of(mine)) == before);
    backward(true);
    EXPECT_EQ(mine.step().found_inf, 0.0f) << "the pass behind them reduces their sum";
  }
}

TEST(Accumulation, UnderNoSyncAloneIsNotSteppedWithoutAScaler) {
  Learner mine({.model = kAccumulationModel}, 4, 1);
  mine.join();
  const Samples samples = make_samples(kAccumulationSamples, 4, 1, 1);
  const Range part = part_of(kAccumulationSamples, 1, world().rank(), world().size(), Shares::kEven).front();
  {
    const auto no_sync = mine.ddp().no_sync();
    const Tensor output = mine.ddp().forward(samples.input.rows(part.begin, part.end).to(rank_device()));
    ops::cross_entropy(output, samples.target.rows(part.begin, part.end).to(rank_device())).backward();
  }
  if (world().size() == 1) {
    mine.optimizer().step();
  } else {
    EXPECT_THAT([&] { mine.optimizer().step(); },
                testing::ThrowsMessage<UsageError>(testing::HasSubstr("no backward pass outside no_sync()")));
  }
}

/// The loop of PyTorch's notes: unscale, clip, step.
TEST(Clipping, BetweenUnscaleAndStepIsWhatTheOptimizerDoesItself) {
  for (const int micro_batches : {1, 3}) {
    SCOPED_TRACE(std::to_string(micro_batches) + " micro-batches");
    const auto options = [](const optim::OptimizerOptions& more) {
      return LearnerOptions{.model = kAccumulationModel,
                            .optimizer = with_sgd({.lr = 0.1, .momentum = 0.9}, more),
                            .amp = {.opt_level = amp::OptLevel::kO1},
                            .scaler = {.init = 1024}};
    };
    Learner fused(options({.clip_norm = 0.05}), 4, 1), mine(options({}), 4, 1);
    fused.join();
    mine.join();
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const Samples samples = make_samples(kAccumulationSamples, 4, 1, step);
      const Learner::Part part =
          part_of(kAccumulationSamples, micro_batches, world().rank(), world().size(), Shares::kGrowing);
      for (Learner* learner : {&fused, &mine}) learner->backward(samples, part, step);
      mine.scaler().unscale_(mine.optimizer());
      EXPECT_EQ(mine.model().parameters()[0].tensor.grad().dtype(), DType::kFloat32);
      const double measured = optim::clip_grad_norm_(mine.model().parameters(), 0.05).item();
      EXPECT_GT(measured, 0.05) << "nothing to clip";
      EXPECT_FALSE(mine.step().found_inf);
      EXPECT_FALSE(fused.step().found_inf);
      EXPECT_NEAR(measured, fused.optimizer().gradient_norm(), 1e-6 * measured);
      EXPECT_LE(distance(mine.arena().masters(), fused.arena().masters()), 1e-6 * norm(fused.arena().masters()));
    }
    require_equal_weights(mine.arena(), mine.optimizer().state(), *world().communicator());
  }
}

}  // namespace
}  // namespace lockstep::comm
