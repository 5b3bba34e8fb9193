// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>

#include "amp/autocast/autocast.h"
#include "amp/autocast/cast_cache.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/engine.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::amp {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;

/// A linear layer in an arena with float16 compute copies.
class ComputeCopy : public ::testing::Test {
 protected:
  ComputeCopy() : arena_(initialized(layer_), {.compute_dtype = DType::kFloat16}) {}

  static nn::Module& initialized(nn::Module& module) {
    nn::initialize(module, 1);
    return module;
  }

  nn::Linear layer_{3, 4, false};
  nn::Arena arena_;
  const nn::Arena::Slot& slot_ = arena_.slots().front();
  const Tensor& weight_ = slot_.parameter.tensor;
  const Tensor x_ = random_tensor({2, 3}, DType::kFloat16, 2);
};

TEST_F(ComputeCopy, StandsInForTheCastWithoutMemoryOrWork) {
  const Autocast guard(DType::kFloat16);
  const std::size_t before = memory_statistics(kCpu).allocated;
  const Tensor copy = autocast(Op::kLinear, weight_);
  EXPECT_TRUE(copy.aliases(arena_.copies()));
  EXPECT_EQ(copy.shape(), weight_.shape());
  EXPECT_EQ(memory_statistics(kCpu).allocated, before);
  EXPECT_EQ(CastCache::on_this_thread().size(), 0u);
}

TEST_F(ComputeCopy, IsWhatTheOperationReads) {
  kernels::fill(arena_.copies(), 1.0);  // the master says otherwise
  const Autocast guard(DType::kFloat16);
  const Tensor ones = Tensor::from<float>({1, 1, 1}, {1, 3});
  EXPECT_THAT(values_of(layer_.forward(ones)), ::testing::Each(3));
}

TEST_F(ComputeCopy, IsRenewedWhereTheWeightWasWritten) {
  const Autocast guard(DType::kFloat16);
  const Tensor ones = Tensor::from<float>({1, 1, 1}, {1, 3});
  const auto write = [this](float value) {
    const Tensor values = Tensor::empty(weight_.shape(), DType::kFloat32);
    kernels::fill(values, static_cast<double>(value));
    return values;
  };
  weight_.copy_from(write(2));
  EXPECT_THAT(values_of(layer_.forward(ones)), ::testing::Each(6));
  arena_.master(slot_).copy_from(write(3));
  EXPECT_THAT(values_of(layer_.forward(ones)), ::testing::Each(9)) << "through the arena";
  for (float& value : weight_.mutable_as<float>()) value = std::min(value, 1.0f);
  EXPECT_THAT(values_of(arena_.copies()).front(), 1) << "without a forward pass too";
  EXPECT_THAT(values_of(layer_.forward(ones)), ::testing::Each(3));
  kernels::fill(weight_, 4.0);
  weight_.bump_version();
  EXPECT_THAT(values_of(layer_.forward(ones)), ::testing::Each(12)) << "by a kernel, whose caller counts the write";
}

TEST_F(ComputeCopy, SendsTheGradientToTheMastersSlot) {
  {
    const Autocast guard(DType::kFloat16);
    ops::sum(layer_.forward(x_)).backward();
  }
  EXPECT_TRUE(weight_.grad().aliases(arena_.grads()));
  for (int o = 0; o < 4; ++o) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(weight_.grad().item(o * 3 + i), x_.item(i) + x_.item(3 + i), 1e-6) << "not rounded to float16";
    }
  }
}

TEST_F(ComputeCopy, OfAnotherDtypeIsNoHelp) {
  const Autocast guard(DType::kBFloat16);
  const Tensor copy = autocast(Op::kLinear, weight_);
  EXPECT_EQ(copy.dtype(), DType::kBFloat16);
  EXPECT_FALSE(copy.aliases(arena_.copies()));
  ops::sum(layer_.forward(x_)).backward();
  EXPECT_TRUE(weight_.grad().aliases(arena_.grads()));
}

TEST_F(ComputeCopy, IsNotUsedOutsideAGuard) {
  EXPECT_EQ(layer_.forward(ops::cast(x_, DType::kFloat32)).dtype(), DType::kFloat32);
  const Autocast guard(DType::kFloat16);
  EXPECT_TRUE(autocast(Op::kSoftmax, weight_).is(weight_));
}

TEST_F(ComputeCopy, GivesAGradientOfTheWeightsDtype) {
  const Autocast guard(DType::kFloat16);
  const Tensor found = autograd::grad(ops::sum(layer_.forward(x_)), {weight_}).front();
  EXPECT_EQ(found.shape(), weight_.shape());
  EXPECT_EQ(found.dtype(), DType::kFloat32);
  EXPECT_FALSE(weight_.grad().defined());
}

TEST_F(ComputeCopy, OfAWeightUsedTwiceAddsItsGradientsInFloat32) {
  const Autocast guard(DType::kFloat16);
  const Tensor large = Tensor::from<float>({2048, 0, 0}, {1, 3}), small = Tensor::from<float>({1, 0, 0}, {1, 3});
  const Tensor twice = ops::add(ops::sum(layer_.forward(large)), ops::sum(layer_.forward(small)));
  EXPECT_EQ(autograd::grad(twice, {weight_}).front().item(), 2049) << "which float16 cannot represent";
}

TEST_F(ComputeCopy, GivesAGradientThatCanBeDifferentiatedAgain) {
  const Tensor copy = autograd::cast(weight_, DType::kFloat16);
  const Tensor first = autograd::grad(ops::sum(ops::mul(copy, copy)), {weight_}, {}, {.create_graph = true}).front();
  EXPECT_EQ(first.dtype(), DType::kFloat32);
  const Tensor second = autograd::grad(ops::sum(first), {weight_}).front();
  EXPECT_EQ(second.dtype(), DType::kFloat32);
  EXPECT_THAT(values_of(second), ::testing::Each(2));
}

}  // namespace
}  // namespace lockstep::amp
