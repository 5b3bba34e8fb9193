// SPDX-License-Identifier: Apache-2.0
// What a scaler holds on to, and what it refuses to be mixed with.
#include <gmock/gmock.h>

#include <type_traits>

#include "runtime/base/error.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::ScaledModel;
using amp::testing::scaler_with;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

static_assert(!std::is_copy_constructible_v<GradScaler> && !std::is_copy_assignable_v<GradScaler>);

TEST(OptimizersOfAScaler, MayBeGoneBeforeUpdate) {
  GradScaler scaler = scaler_with({.init = 4, .min = 1, .max_consecutive_skips = 1});
  {
    ScaledModel model;
    model.backward(scaler, false);
    scaler.step(*model.optimizer);
  }
  EXPECT_THAT([&] { scaler.update(); }, ThrowsMessage<NumericsError>(HasSubstr("the gradient of ")));
  EXPECT_EQ(scaler.get_scale(), 2);
}

TEST(OptimizersOfAScaler, AreNotTakenForOneThatIsGone) {
  GradScaler scaler = scaler_with();
  for (int i = 0; i < 3; ++i) {
    // Where the last one lay, as often as not.
    ScaledModel model;
    model.backward(scaler);
    EXPECT_NO_THROW(scaler.step(*model.optimizer));
  }
  scaler.update();
}

TEST(ScaleDevices, MustBeOne) {
  if (device() == kCpu) GTEST_SKIP() << "there is no other device";
  GradScaler scaler = scaler_with();
  ScaledModel model;
  model.backward(scaler);
  const Tensor elsewhere = Tensor::from<float>({1}, {});
  elsewhere.set_requires_grad(true);
  EXPECT_THAT([&] { scaler.scale(elsewhere); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("the loss lies on cpu"), HasSubstr("the loss scale on cuda"))));
  GradScaler other(comm::make_self_communicator());
  other.scale(elsewhere);
  EXPECT_THAT([&] { other.step(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("the optimizer of step() lies on cuda")));
}

}  // namespace
}  // namespace lockstep::amp
