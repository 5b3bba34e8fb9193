// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/cast_cache.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::amp {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;

Tensor weight(const Shape& shape = {3, 3}) {
  const Tensor tensor = random_tensor(shape, DType::kFloat32, 1);
  tensor.set_requires_grad(true);
  return tensor;
}

Tensor cast(const Tensor& tensor) { return autocast(Op::kLinear, tensor); }

TEST(CastCache, CastsAWeightOnce) {
  const Autocast guard(DType::kFloat16);
  const Tensor w = weight();
  const Tensor first = cast(w);
  EXPECT_TRUE(cast(w).is(first));
  {
    const Autocast nested(DType::kFloat16);
    EXPECT_TRUE(cast(w).is(first));
  }
  EXPECT_TRUE(cast(w).is(first)) << "only the outermost guard empties it";
}

TEST(CastCache, IsStaleOnceTheWeightWasWritten) {
  const Autocast guard(DType::kFloat16);
  const Tensor w = weight();
  const Tensor before = cast(w);
  w.mutable_as<float>()[0] = 42;
  EXPECT_EQ(cast(w).item(), 42);
  EXPECT_FALSE(cast(w).is(before));
}

TEST(CastCache, KeepsTheDtypesApart) {
  const Autocast half(DType::kFloat16);
  const Tensor w = weight();
  EXPECT_EQ(cast(w).dtype(), DType::kFloat16);
  const Autocast brain(DType::kBFloat16);
  EXPECT_EQ(cast(w).dtype(), DType::kBFloat16);
}

TEST(CastCache, AFirstUseWithoutGradientsDoesNotHideLaterOnes) {
  const Autocast guard(DType::kFloat16);
  const Tensor w = weight(), x = random_tensor({2, 3}, DType::kFloat32, 2);
  {
    const autograd::NoGrad no_grad;
    EXPECT_FALSE(ops::linear(x, w, {}).requires_grad());
  }
  ops::sum(ops::linear(x, w, {})).backward();
  EXPECT_TRUE(w.grad().defined());
  {
    const autograd::NoGrad no_grad;
    EXPECT_FALSE(ops::linear(x, w, {}).requires_grad()) << "nor the other way round";
  }
}

TEST(CastCache, KeepsOnlyLeavesThatRequireAGradient) {
  const Autocast guard(DType::kFloat16);
  const Tensor w = weight();
  cast(random_tensor({3}, DType::kFloat32, 1));
  cast(ops::scale(w, 2));
  autocast(Op::kSoftmax, w);
  EXPECT_EQ(CastCache::on_this_thread().size(), 0u);
  cast(w);
  EXPECT_EQ(CastCache::on_this_thread().size(), 1u);
}

TEST(CastCache, IsEmptiedWithTheOutermostGuardAlsoByAnException) {
  const Tensor w = weight();
  try {
    const Autocast guard(DType::kFloat16);
    const Autocast nested(DType::kFloat16);
    cast(w);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(CastCache::on_this_thread().size(), 0u);
}

TEST(CastCache, HoldsNoMemoryBehindTheGuard) {
  const Tensor w = weight();
  const std::size_t before = memory_statistics(kCpu).allocated;
  {
    const Autocast guard(DType::kFloat16);
    cast(w);
  }
  EXPECT_EQ(memory_statistics(kCpu).allocated, before);
}

TEST(CastCache, UsesOfOneCastAddUpInTheWeightsGradient) {
  const Tensor w = weight({1, 1}), x = Tensor::from<float>({2}, {1, 1});
  const Autocast guard(DType::kFloat16);
  ops::add(ops::linear(x, w, {}), ops::linear(ops::scale(x, 3), w, {})).backward();
  EXPECT_EQ(w.grad().item(), 8);
}

TEST(CastCache, ABackwardPassInsideTheGuardDoesNotSpoilTheNextForward) {
  const Tensor w = weight(), x = random_tensor({2, 3}, DType::kFloat32, 2);
  const Autocast guard(DType::kFloat16);
  ops::sum(ops::linear(x, w, {})).backward();
  const std::vector<double> once = values_of(w.grad());
  ops::sum(ops::linear(x, w, {})).backward();
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(values_of(w.grad())[i], 2 * once[i]);
}

}  // namespace
}  // namespace lockstep::amp
