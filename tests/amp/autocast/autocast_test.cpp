// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"

#include <gmock/gmock.h>

#include <thread>

#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::amp {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor floats(const Shape& shape, DType dtype = DType::kFloat32) { return random_tensor(shape, dtype, 1); }

TEST(Guard, NestsAndRestores) {
  EXPECT_FALSE(Autocast::enabled());
  {
    const Autocast half(DType::kFloat16);
    EXPECT_TRUE(Autocast::enabled());
    EXPECT_EQ(Autocast::dtype(), DType::kFloat16);
    {
      const Autocast brain(DType::kBFloat16);
      EXPECT_EQ(Autocast::dtype(), DType::kBFloat16);
      const Autocast off(false);
      EXPECT_FALSE(Autocast::enabled());
      const Autocast on(true);
      EXPECT_TRUE(Autocast::enabled());
      EXPECT_EQ(Autocast::dtype(), DType::kBFloat16);
    }
    EXPECT_TRUE(Autocast::enabled());
    EXPECT_EQ(Autocast::dtype(), DType::kFloat16);
  }
  EXPECT_FALSE(Autocast::enabled());
}

TEST(Guard, IsRestoredByAnException) {
  const Autocast outer(DType::kBFloat16);
  try {
    const Autocast inner(DType::kFloat16);
    const Autocast off(false);
    throw UsageError("stop");
  } catch (const UsageError&) {
  }
  EXPECT_TRUE(Autocast::enabled());
  EXPECT_EQ(Autocast::dtype(), DType::kBFloat16);
}

TEST(Guard, AStateCanBeReinstated) {
  Autocast::State state;
  {
    const Autocast brain(DType::kBFloat16);
    state = Autocast::state();
  }
  const Autocast again(state);
  EXPECT_TRUE(Autocast::enabled());
  EXPECT_EQ(Autocast::dtype(), DType::kBFloat16);
}

TEST(Guard, BelongsToItsThread) {
  const Autocast here(DType::kFloat16);
  std::thread([] {
    EXPECT_FALSE(Autocast::enabled());
    const Autocast there(DType::kBFloat16);
    EXPECT_EQ(Autocast::dtype(), DType::kBFloat16);
  }).join();
  EXPECT_TRUE(Autocast::enabled());
  EXPECT_EQ(Autocast::dtype(), DType::kFloat16);
}

TEST(Guard, RefusesDtypesThatAreNot16Bit) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32}) {
    EXPECT_THAT([&] { const Autocast autocast(dtype); },
                ThrowsMessage<UsageError>(HasSubstr(std::string(name_of(dtype)))));
    EXPECT_FALSE(Autocast::enabled());
  }
}

/// The dtype of an operation's result under a float16 guard, given a float32 input.
TEST(Operations, RunInTheDtypeOfTheirPolicy) {
  const Autocast autocast(DType::kFloat16);
  const Tensor x = floats({4, 3}), image = floats({2, 4, 4, 3}), one = Tensor::from<float>({1, 1, 1}, {3});
  const Tensor half = floats({4, 3}, DType::kFloat16), half_image = floats({2, 4, 4, 3}, DType::kFloat16);
  kernels::PoolGeometry max, average;
  average.kind = kernels::PoolKind::kAverage;
  // Lower precision, whatever comes in.
  EXPECT_EQ(ops::linear(x, floats({5, 3}), floats({5})).dtype(), DType::kFloat16);
  EXPECT_EQ(ops::linear(half, floats({5, 3}), {}).dtype(), DType::kFloat16);
  EXPECT_EQ(ops::matmul(x, floats({3, 2})).dtype(), DType::kFloat16);
  EXPECT_EQ(ops::conv(image, floats({5, 3, 3, 3}), floats({5}), {}).dtype(), DType::kFloat16);
  // Float32, whatever comes in.
  EXPECT_EQ(ops::softmax(half).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::log_softmax(half).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::sum(half).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::mse(half, half).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::cross_entropy(half, Tensor::zeros({4}, DType::kInt64)).dtype(), DType::kFloat32);
  // As it comes in.
  EXPECT_EQ(ops::mean(half).dtype(), DType::kFloat16);
  EXPECT_EQ(ops::mean(x).dtype(), DType::kFloat32);
  for (const Tensor& in : {half, x}) {
    EXPECT_EQ(ops::relu(in).dtype(), in.dtype());
    EXPECT_EQ(ops::gelu(in).dtype(), in.dtype());
    EXPECT_EQ(ops::tanh(in).dtype(), in.dtype());
    EXPECT_EQ(ops::sigmoid(in).dtype(), in.dtype());
    EXPECT_EQ(ops::scale(in, 2).dtype(), in.dtype());
    EXPECT_EQ(ops::dropout(in, 0.5, {}, 0).dtype(), in.dtype());
    EXPECT_EQ(ops::flatten(in).dtype(), in.dtype());
    EXPECT_EQ(ops::batch_norm(in, one, one, {}, {}, {}, {}).dtype(), in.dtype());
    EXPECT_EQ(ops::batch_norm_inference(in, one, one, {}, floats({2, 3}), {}).dtype(), in.dtype());
  }
  for (const Tensor& in : {half_image, image}) {
    EXPECT_EQ(ops::pool(in, max).dtype(), in.dtype());
    EXPECT_EQ(ops::pool(in, average).dtype(), in.dtype());
    EXPECT_EQ(ops::global_average_pool(in).dtype(), in.dtype());
  }
  // The widest.
  EXPECT_EQ(ops::add(half, x).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::mul(half, half).dtype(), DType::kFloat16);
}

TEST(Operations, RunAsTheyComeInOutsideAGuardAndWhereItIsOff) {
  const Tensor x = floats({4, 3}), weight = floats({5, 3});
  const auto expect_unchanged = [&] {
    EXPECT_EQ(ops::linear(x, weight, {}).dtype(), DType::kFloat32);
    EXPECT_EQ(ops::softmax(floats({4, 3}, DType::kFloat16)).dtype(), DType::kFloat16);
  };
  expect_unchanged();
  const Autocast autocast(DType::kFloat16);
  const Autocast off(false);
  expect_unchanged();
}

TEST(Operations, OfBrainFloatGuardsGiveBrainFloats) {
  const Autocast autocast(DType::kBFloat16);
  EXPECT_EQ(ops::linear(floats({4, 3}, DType::kFloat16), floats({5, 3}), {}).dtype(), DType::kBFloat16);
}

TEST(Operations, OfDifferentGuardsKeepTheirDtypeInBackward) {
  const Tensor x = floats({4, 3}), weight = floats({5, 3});
  for (const Tensor& tensor : {x, weight}) tensor.set_requires_grad(true);
  Tensor loss;
  {
    const Autocast autocast(DType::kFloat16);
    loss = ops::sum(ops::linear(x, weight, {}));
  }
  loss.backward();  // outside the guard
  EXPECT_EQ(x.grad().dtype(), DType::kFloat32);
  EXPECT_EQ(weight.grad().dtype(), DType::kFloat32);
}

TEST(Casts, LeaveIntegersAndDoublesAlone) {
  const Autocast autocast(DType::kFloat16);
  for (const DType dtype : {DType::kFloat64, DType::kInt64, DType::kInt32, DType::kUInt8, DType::kBool}) {
    const Tensor x = Tensor::zeros({3}, dtype);
    for (const Op op : {Op::kLinear, Op::kSoftmax, Op::kAdd, Op::kRelu}) {
      EXPECT_TRUE(amp::autocast_beside(op, x, floats({3})).is(x)) << name_of(dtype) << " " << name_of(op);
    }
  }
  EXPECT_EQ(ops::linear(floats({4, 3}, DType::kFloat64), floats({5, 3}, DType::kFloat64), {}).dtype(), DType::kFloat64);
  EXPECT_FALSE(amp::autocast_if_defined(Op::kLinear, {}).defined());
}

TEST(Casts, ToTheDtypeThatIsThereAreNothing) {
  const Autocast autocast(DType::kFloat16);
  const Tensor half = floats({3}, DType::kFloat16), single = floats({3});
  EXPECT_TRUE(amp::autocast(Op::kLinear, half).is(half));
  EXPECT_TRUE(amp::autocast(Op::kSoftmax, single).is(single));
  EXPECT_TRUE(amp::autocast(Op::kRelu, single).is(single));
}

TEST(Casts, RoundOnceToTheNearest) {
  const Autocast autocast(DType::kFloat16);
  const Tensor x = Tensor::from<float>({1.0f + 0x1p-11f, 70000.0f, 0x1p-25f, -3.0f}, {4});
  EXPECT_THAT(values_of(amp::autocast(Op::kLinear, x)),
              ::testing::ElementsAre(1, std::numeric_limits<double>::infinity(), 0, -3));
}

}  // namespace
}  // namespace lockstep::amp
