// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/replicas.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "model_zoo/build.h"
#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/nn/forward.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::step {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::unique_ptr<nn::Module> make(std::vector<std::int64_t> hidden = {16}) {
  return model_zoo::build(model_zoo::MlpOptions{.hidden = std::move(hidden)}, {{6}, 3}, 5);
}

/// A network in training on samples that do not change, by replicas or by itself.
struct Training {
  explicit Training(std::size_t replicas, amp::OptLevel level = amp::OptLevel::kO0) {
    amp::initialize(*model, *optimizer, {.opt_level = level});
    if (replicas > 0)
      parts.emplace(
          *model, [] { return make(); }, replicas);
  }
  void train(bool autocast = false) {
    const amp::Autocast here(autocast ? amp::Autocast::State{true, DType::kFloat16} : amp::Autocast::State{});
    optimizer->zero_grad();
    if (parts) {
      const auto count = static_cast<std::int64_t>(parts->size());
      parts->backward([&](nn::Module& replica, std::size_t i) {
        EXPECT_EQ(amp::Autocast::enabled(), autocast);
        const auto part = static_cast<std::int64_t>(i);
        const std::int64_t begin = part * 12 / count, end = (part + 1) * 12 / count;
        const Tensor loss =
            ops::cross_entropy(replica.forward(x.rows(begin, end)), target.rows(begin, end), {.divisor = 12.0});
        return scaler.scale(loss);
      });
    } else {
      scaler.scale(ops::cross_entropy(nn::forward(*model, x), target)).backward();
    }
    scaler.step(*optimizer);
    scaler.update();
  }
  std::vector<double> weights() const { return values_of(model->arena()->masters()); }

  std::unique_ptr<nn::Module> model = make();
  std::unique_ptr<optim::Optimizer> optimizer = optim::sgd(model->parameters(), {.lr = 0.5, .momentum = 0.9});
  amp::GradScaler scaler{comm::make_self_communicator(), {.init = 1024}};
  std::optional<Replicas> parts;
  Tensor x = random_tensor({12, 6}, DType::kFloat32, 1);
  Tensor target = Tensor::from<std::int64_t>({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, {12});
};

TEST(Replicas, TrainAsTheModelDoesOnTheWholeBatch) {
  Training alone(0);
  const std::vector<double> before = alone.weights();
  for (int step = 0; step < 5; ++step) alone.train();
  EXPECT_NE(alone.weights(), before);
  for (const std::size_t count : {1u, 2u, 5u}) {
    Training parts(count);
    for (int step = 0; step < 5; ++step) parts.train();
    expect_close(parts.model->arena()->masters(), alone.weights(), {1e-5, 1e-6});
  }
}

TEST(Replicas, GiveTheSameBitsInEveryRun) {
  Training one(3), other(3);
  for (int step = 0; step < 10; ++step) {
    one.train();
    other.train();
  }
  EXPECT_EQ(one.weights(), other.weights());
}

TEST(Replicas, RunInTheCallersAutocastState) {
  Training parts(2), alone(0, amp::OptLevel::kO1);
  for (int step = 0; step < 5; ++step) {
    parts.train(true);
    alone.train();
  }
  expect_close(parts.model->arena()->masters(), alone.weights(), {0x1p-8, 1e-3});
}

TEST(Replicas, HaveTheModelsDtype) {
  Training training(2, amp::OptLevel::kO2);
  EXPECT_THAT([&] { training.train(); },
              ThrowsMessage<UsageError>(HasSubstr("a replica's hidden0_linear.weight is float32 [16, 6]")));
  const auto half = [] {
    auto replica = make();
    replica->half();
    return replica;
  };
  Training alone(0, amp::OptLevel::kO2);
  training.parts.emplace(*training.model, half, 2);
  training.x = autograd::cast(training.x, DType::kFloat16);
  for (int step = 0; step < 5; ++step) {
    training.train();
    alone.train();
  }
  expect_close(training.model->arena()->masters(), alone.weights(), {0x1p-8, 1e-3});
}

TEST(Replicas, ThatFailLeaveTheModelAlone) {
  Training training(2);
  const std::vector<double> before = training.weights();
  EXPECT_THAT(
      [&] {
        training.parts->backward([&](nn::Module& replica, std::size_t i) -> Tensor {
          if (i == 1) throw UsageError("of replica 1");
          return ops::sum(replica.forward(training.x));
        });
      },
      ThrowsMessage<UsageError>("of replica 1"));
  EXPECT_FALSE(training.optimizer->has_new_gradients());
  training.train();
  EXPECT_NE(training.weights(), before);
}

TEST(Replicas, AreOfTheModelsKind) {
  const auto model = make();
  EXPECT_THAT(
      [&] {
        Replicas(
            *model, [] { return make({8}); }, 2);
      },
      ThrowsMessage<UsageError>(HasSubstr("where the model has")));
  EXPECT_THAT(
      [&] {
        Replicas(
            *model, [] { return make(); }, 0);
      },
      ThrowsMessage<UsageError>(HasSubstr("no replicas")));
}

}  // namespace
}  // namespace lockstep::step
