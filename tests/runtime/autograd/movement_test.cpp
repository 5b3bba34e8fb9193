// SPDX-License-Identifier: Apache-2.0
// Tensor's own members that give or take elements are operations, and writes that would make a gradient wrong are
// refused.
#include "runtime/autograd/movement.h"

#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::leaf;
using ::testing::ThrowsMessage;
using testing::values_of;

const Tensor weights = Tensor::from<double>({1, 2, 3, 4}, {4});

TEST(Movement, ReshapedCarriesTheGradient) {
  const Tensor x = leaf({5, 6, 7, 8});
  ops::sum(ops::mul(x.reshaped({2, 2}), weights.reshaped({2, 2}))).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(1, 2, 3, 4));
}

TEST(Movement, RowsCarryTheGradientToTheirPlaces) {
  const Tensor x = leaf({5, 6, 7, 8});
  ops::sum(ops::mul(x.rows(1, 3), weights.rows(1, 3))).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 2, 3, 0));
}

TEST(Movement, ToTheSameDeviceIsTheTensorItself) {
  const Tensor x = leaf({5, 6, 7, 8});
  EXPECT_TRUE(x.to(kCpu).is(x));
  ops::sum(ops::mul(x.to(kCpu), weights)).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(1, 2, 3, 4));
}

TEST(Movement, ToAnotherDeviceCarriesTheGradientBack) {
  // What Tensor::to() records; the copy itself needs no second device.
  const Tensor x = leaf({5, 6, 7, 8}), there = x.detach();
  record_to(there, x);
  ops::sum(ops::mul(there, weights)).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(1, 2, 3, 4));
}

TEST(Movement, CopyIntoANewTensorCarriesTheGradient) {
  const Tensor x = leaf({5, 6, 7, 8}), copy = Tensor::empty({4}, DType::kFloat64);
  copy.copy_from(x);
  ops::sum(ops::mul(copy, weights)).backward();
  EXPECT_THAT(values_of(copy), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(values_of(x.grad()), ElementsAre(1, 2, 3, 4));
}

TEST(Movement, CanBeDifferentiatedTwice) {
  const Tensor x = leaf({1, 2, 3, 4}), copy = Tensor::empty({2, 1}, DType::kFloat64);
  copy.copy_from(x.reshaped({2, 2}).rows(1, 2).reshaped({2, 1}));
  const Tensor cubes = ops::sum(ops::mul(ops::mul(copy, copy), copy));
  const Tensor first = grad(cubes, {x}, {}, {.create_graph = true}).front();
  EXPECT_THAT(values_of(first), ElementsAre(0, 0, 27, 48));
  EXPECT_THAT(values_of(grad(ops::sum(first), {x}).front()), ElementsAre(0, 0, 18, 24));
}

TEST(Movement, OutsideTheGraphIsAskedForByName) {
  const Tensor x = leaf({5, 6, 7, 8});
  for (const Tensor& view : {x.detach(), x.detach({2, 2}), x.detach_rows(0, 4)}) {
    EXPECT_FALSE(view.requires_grad());
    EXPECT_TRUE(view.aliases(x));
    EXPECT_EQ(view.version(), x.version());
  }
  EXPECT_THROW(x.detach({3}), ShapeError);
  EXPECT_THROW(x.detach_rows(3, 5), ShapeError);
  const NoGrad unrecorded;
  EXPECT_FALSE(x.reshaped({2, 2}).requires_grad());
  EXPECT_FALSE(x.rows(0, 1).requires_grad());
}

TEST(Movement, RefusesToWriteToAResult) {
  const Tensor x = leaf({5, 6, 7, 8}), y = ops::scale(x, 2);
  const auto refused = [](const std::string& what) {
    return ThrowsMessage<UsageError>(AllOf(HasSubstr(what), HasSubstr("the result of 'scale'")));
  };
  EXPECT_THAT([&] { y.copy_from(weights); }, refused("copy_from"));
  EXPECT_THAT([&] { y.mutable_as<double>(); }, refused("mutable_as"));
  EXPECT_THAT([&] { x.rows(0, 4).copy_from(weights); }, ThrowsMessage<UsageError>(HasSubstr("the result of 'slice'")));
  EXPECT_THAT(values_of(y), ElementsAre(10, 12, 14, 16));
  y.detach().copy_from(weights);
  EXPECT_THAT(values_of(y), ElementsAre(1, 2, 3, 4));
  const NoGrad unrecorded;
  y.mutable_as<double>()[0] = 9;
  EXPECT_EQ(y.item(), 9);
}

TEST(Movement, RefusesToCopyAGradientsPathIntoALeaf) {
  const Tensor x = leaf({5, 6, 7, 8}), w = leaf({0, 0, 0, 0});
  EXPECT_THAT([&] { w.copy_from(x); }, ThrowsMessage<UsageError>(HasSubstr("a leaf that requires one too")));
  w.copy_from(x.detach());
  EXPECT_THAT(values_of(w), ElementsAre(5, 6, 7, 8));
  EXPECT_FALSE(ops::sum(w).autograd_meta()->producer == nullptr);
}

TEST(Movement, RefusesToCopyAGradientsPathIntoAPartOfAnotherTensor) {
  const Tensor x = leaf({5, 6}), whole = Tensor::zeros({4}, DType::kFloat64);
  EXPECT_THAT([&] { whole.rows(0, 2).copy_from(x); },
              ThrowsMessage<UsageError>(HasSubstr("memory that other tensors show")));
  whole.rows(0, 2).copy_from(x.detach());
  EXPECT_THAT(values_of(whole), ElementsAre(5, 6, 0, 0));
}

TEST(Movement, KnowsWhoseMemoryIsShared) {
  const Tensor alone = Tensor::zeros({4}, DType::kFloat64), handle = alone;
  EXPECT_FALSE(alone.is_shared());
  {
    const Tensor part = alone.rows(0, 1);
    EXPECT_TRUE(alone.is_shared());
    EXPECT_TRUE(part.is_shared());
  }
  EXPECT_FALSE(alone.is_shared());
  const Tensor moved = Tensor::zeros({4}, DType::kFloat64);
  moved.rebind(alone.storage(), 0, DType::kFloat64);
  EXPECT_FALSE(moved.is_shared());  // it counts for itself, as rebind() says
  EXPECT_TRUE(moved.detach().is_shared());
}

}  // namespace
}  // namespace lockstep::autograd
