// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_clock.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "amp/grad_scaler/opt_level.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "runtime/step/training_step.h"
#include "tests/support/devices.h"

namespace lockstep::step {
namespace {

using devices::device;
using std::chrono::nanoseconds;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::Pair;
using testing::UnorderedElementsAre;

/// A clock that goes on by 1, 2, 3, ... ns with each look at it.
struct Ticks {
  nanoseconds operator()() { return now += nanoseconds(++looks); }
  nanoseconds now{0};
  int looks = 0;
};

/// A small model on the device under test, on one rank, whose steps a clock observes.
struct ClockedModel {
  ClockedModel()
      : clock(device(), [this] { return ticks(); }),
        world(comm::World::from_environment({.device = device()})),
        net(model_zoo::build(model_zoo::MlpOptions{.hidden = {4}, .batch_norm = true},
                             {.sample_shape = {5}, .outputs = 3}, 3)),
        optimizer(optim::sgd(net->parameters(), {.lr = 0.1})) {
    amp::initialize(*net, *optimizer, {}, device());
    ddp.emplace(*net, world);
    scaler.emplace(world, amp::GradScalerOptions{.dynamic = false, .init = 1});
    training.emplace(*ddp, *optimizer, *scaler, ops::cross_entropy, TrainingStepOptions{.observers = {&clock}});
  }

  void run() {
    training->run({.input = Tensor::zeros({6, 5}, DType::kFloat32),
                   .target = Tensor::from<std::int64_t>({0, 1, 2, 0, 1, 2}, {6}),
                   .step_samples = 6});
  }

  Ticks ticks;
  StepClock clock;
  comm::World world;
  std::unique_ptr<nn::Module> net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<comm::DistributedDataParallel> ddp;
  std::optional<amp::GradScaler> scaler;
  std::optional<TrainingStep> training;
};

const OperationTimes* found(const StepClock& clock, const std::string& name, bool again = false) {
  const auto at = std::ranges::find_if(
      clock.operations(), [&](const OperationTimes& times) { return times.name == name && times.again == again; });
  return at == clock.operations().end() ? nullptr : &*at;
}

std::map<std::string, std::pair<std::int64_t, std::int64_t>> calls_of(const StepClock& clock) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> calls;
  for (const OperationTimes& times : clock.operations()) {
    auto& [forward, backward] = calls[std::string(times.name) + (times.again ? " again" : "")];
    forward += times.forward.calls;
    backward += times.backward.calls;
  }
  return calls;
}

nanoseconds of_operations(const StepClock& clock) {
  nanoseconds sum{0};
  for (const OperationTimes& times : clock.operations()) sum += times.forward.time + times.backward.time;
  return sum;
}

nanoseconds part(const StepTimes& times, StepPart part) { return times.parts[static_cast<std::size_t>(part)]; }

TEST(StepClock, EveryNanosecondOfAStepIsInOnePart) {
  ClockedModel model;
  model.clock.begin();
  const nanoseconds begin = model.ticks.now;
  model.run();
  const StepTimes times = model.clock.end();
  EXPECT_THAT(
      (std::vector{part(times, StepPart::kForward), part(times, StepPart::kBackward), part(times, StepPart::kUpdate)}),
      Each(Gt(nanoseconds(0))));
  EXPECT_EQ(part(times, StepPart::kData), nanoseconds(0));
  EXPECT_EQ(part(times, StepPart::kCommunication), nanoseconds(0));
  if (device() != kCpu) return;  // whose time is its own
  EXPECT_EQ(times.total(), model.ticks.now - begin);
  EXPECT_GT(part(times, StepPart::kRest), nanoseconds(0));
}

TEST(StepClock, NamesAndCallsAreThoseOfTheModel) {
  ClockedModel model;
  for (int step = 0; step < 2; ++step) {
    model.clock.begin();
    model.run();
    model.clock.end();
  }
  const auto calls = calls_of(model.clock);
  const auto of = [&](const std::string& name) { return calls.contains(name) ? calls.at(name) : std::pair(0L, 0L); };
  EXPECT_EQ(of("linear"), std::pair(4L, 4L));
  EXPECT_EQ(of("batch_norm"), std::pair(2L, 2L));
  EXPECT_EQ(of("cross_entropy"), std::pair(2L, 2L));
  EXPECT_EQ(of("loss_scale"), std::pair(0L, 2L));
  EXPECT_FALSE(calls.contains("slice"));
  EXPECT_EQ(of("optimizer"), std::pair(2L, 0L));
  EXPECT_EQ(of("forward"), std::pair(2L, 0L));
  EXPECT_EQ(of("backward"), std::pair(2L, 0L));
  // 6 samples of 5 numbers, in two steps. Of the first layer the gradient of the weight alone is due.
  const OperationTimes* const linear = found(model.clock, "linear");
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->forward.work.operations, 2 * 2 * 6 * 5 * 4);
  EXPECT_EQ(linear->backward.work.operations, 2 * 2 * 6 * 5 * 4);
  EXPECT_NE(linear->layer, nullptr);
  EXPECT_EQ(found(model.clock, "cross_entropy")->layer, nullptr);
}

TEST(StepClock, NobodyLooksAtAClockUnlessAsked) {
  ClockedModel model;
  model.run();
  EXPECT_EQ(model.ticks.looks, 0);
  model.clock.begin();
  model.run();
  model.clock.end();
  const int looks = model.ticks.looks;
  EXPECT_GT(looks, device() == kCpu ? 10 : 0);
  model.run();
  EXPECT_EQ(model.ticks.looks, looks);
  EXPECT_EQ(autograd::record_observer(), nullptr);
}

TEST(StepClock, ACollectiveWithinAnOperationIsApart) {
  Ticks ticks;
  StepClock clock(kCpu, [&ticks] { return ticks(); });
  const Tensor x = Tensor::zeros({2}, DType::kFloat32);
  clock.begin();                                                        // 1
  clock.phase_begins(Phase::kForward, 1, 0);                            // 2
  { const TraceRange range("all_reduce", RangeKind::kCommunication); }  // 3, 4
  ops::add(x, x);                                                       // 5
  { const TraceRange range("wait for data", RangeKind::kData); }        // 6, 7
  const StepTimes times = clock.end();                                  // 8
  EXPECT_THAT(times.parts, ElementsAre(nanoseconds(7), nanoseconds(3 + 5 + 6 + 8), nanoseconds(0), nanoseconds(4),
                                       nanoseconds(0), nanoseconds(2)));
  EXPECT_EQ(found(clock, "add")->forward.time, nanoseconds(3 + 5));
  EXPECT_EQ(found(clock, "all_reduce")->forward.time, nanoseconds(4));
  EXPECT_EQ(found(clock, "wait for data")->forward.time, nanoseconds(7));
}

TEST(StepClock, AForwardPassThatRunsAgainCountsOnce) {
  Ticks ticks;
  StepClock clock(kCpu, [&ticks] { return ticks(); });
  nn::Linear layer(3, 3);
  const Tensor x = Tensor::zeros({2, 3}, DType::kFloat32);
  clock.begin();
  const nanoseconds begin = ticks.now;
  clock.phase_begins(Phase::kForward, 1, 0);
  const Tensor loss = ops::sum(nn::checkpoint(layer, x));
  clock.phase_begins(Phase::kBackward, 1, 0);
  const nanoseconds forward_end = ticks.now;
  // Up to the first look, where the pass begins, no operation is at work.
  const nanoseconds outside(ticks.looks + 1);
  autograd::backward(loss);
  const nanoseconds behind = ticks.now;
  const StepTimes times = clock.end();
  EXPECT_THAT(calls_of(clock), UnorderedElementsAre(Pair("linear", Pair(1, 1)), Pair("linear again", Pair(1, 0)),
                                                    Pair("checkpoint", Pair(1, 1)), Pair("sum", Pair(1, 1)),
                                                    Pair("backward", Pair(1, 0))));
  EXPECT_EQ(times.total(), ticks.now - begin);
  EXPECT_EQ(part(times, StepPart::kForward), forward_end - begin - nanoseconds(2));
  nanoseconds backward = found(clock, "backward")->forward.time + found(clock, "linear", true)->forward.time;
  for (const char* name : {"linear", "checkpoint", "sum"}) backward += found(clock, name)->backward.time;
  EXPECT_EQ(backward, behind - forward_end - outside);
  EXPECT_EQ(found(clock, "linear", true)->layer, &layer);
  EXPECT_LE(of_operations(clock), times.total());
}

TEST(StepClock, ACausalMaskHalvesTheScores) {
  const Tensor x = Tensor::zeros({1, 2, 4, 8}, DType::kFloat32, device());
  x.set_requires_grad(true);
  for (const bool causal : {false, true}) {
    StepClock clock(device());
    clock.begin();
    clock.phase_begins(Phase::kForward, 1, 0);
    autograd::backward(ops::sum(ops::scaled_dot_product_attention(x, x, x, {.causal = causal})));
    clock.end();
    const double scores = 2 * 4 * 4 * (causal ? 0.5 : 1);
    const OperationTimes* const attention = found(clock, "scaled_dot_product_attention");
    EXPECT_EQ(attention->forward.work.operations, 2 * scores * 16);
    EXPECT_DOUBLE_EQ(attention->backward.work.operations, 5 * scores * 16);
  }
}

/// Attention of a checkpoint, whose forward pass runs twice.
struct CausalAttention : nn::Module {
  Tensor forward(const Tensor& x) override { return ops::scaled_dot_product_attention(x, x, x, {.causal = true}); }
};

TEST(StepClock, ACausalMaskHalvesTheScoresOfARepetitionToo) {
  CausalAttention layer;
  const Tensor x = Tensor::zeros({1, 2, 4, 8}, DType::kFloat32, device());
  x.set_requires_grad(true);
  StepClock clock(device());
  clock.begin();
  clock.phase_begins(Phase::kForward, 1, 0);
  const Tensor loss = ops::sum(nn::checkpoint(layer, x));
  clock.phase_begins(Phase::kBackward, 1, 0);
  autograd::backward(loss);
  clock.end();
  const double operations = 2 * 16 * (2 * 4 * 4 * 0.5);
  EXPECT_EQ(found(clock, "scaled_dot_product_attention")->forward.work.operations, operations);
  EXPECT_EQ(found(clock, "scaled_dot_product_attention", true)->forward.work.operations, operations);
}

TEST(StepClock, GraphsOfMicroBatchesAreApart) {
  nn::Linear first(3, 2), second(3, 2);
  first.to(device());
  second.to(device());
  const Tensor x = Tensor::zeros({2, 3}, DType::kFloat32, device());
  StepClock clock(device());
  clock.begin();
  for (std::uint32_t micro_batch = 0; micro_batch < 4; ++micro_batch) {
    clock.phase_begins(Phase::kForward, 1, micro_batch);
    const Tensor loss = ops::sum((micro_batch % 2 == 0 ? first : second)(x));
    clock.phase_begins(Phase::kBackward, 1, micro_batch);
    // Outside a forward pass: nobody's operation, whose node may take the place of one before.
    autograd::backward(ops::mul(loss, 2.0));
  }
  clock.end();
  EXPECT_THAT(calls_of(clock), UnorderedElementsAre(Pair("linear", Pair(4, 4)), Pair("sum", Pair(4, 4)),
                                                    Pair("scale", Pair(0, 4)), Pair("backward", Pair(4, 0))));
  for (const OperationTimes& times : clock.operations()) {
    EXPECT_TRUE(times.name != "linear" || times.backward.calls == 2) << times.backward.calls;
  }
}

TEST(StepClock, AStepWithinAStepIsRefused) {
  StepClock clock;
  clock.begin();
  EXPECT_THROW(clock.begin(), UsageError);
}

}  // namespace
}  // namespace lockstep::step
