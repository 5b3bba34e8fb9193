// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/function.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/kernels/matmul.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::autograd {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor leaf(const Shape& shape, std::uint32_t seed, DType dtype = DType::kFloat64) {
  const Tensor tensor = random_tensor(shape, dtype, seed);
  tensor.set_requires_grad(true);
  return tensor;
}

Tensor product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b) {
  const Tensor out = Tensor::empty({a.size(transpose_a ? 1 : 0), b.size(transpose_b ? 0 : 1)}, a.dtype(), a.device());
  kernels::MatrixProducts::on(a.device()).matmul(a, transpose_a, b, transpose_b, {}, false, out);
  return out;
}

/// The dtypes that the passes of the last call met.
struct Seen {
  DType forward;
  DType backward;
  bool autocast_in_backward;
};
Seen seen_dtypes;

/// PyTorch's notes: a function that works under autocast without more.
struct MyMM : Function<MyMM> {
  static Tensor forward(FunctionContext& context, const Tensor& a, const Tensor& b) {
    context.save_for_backward({a, b});
    const Tensor c = ops::matmul(a, b);
    seen_dtypes.forward = c.dtype();
    return c;
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = context.saved_tensors();
    seen_dtypes.backward = grads[0].dtype();
    seen_dtypes.autocast_in_backward = amp::Autocast::enabled();
    const Tensor a = ops::cast(saved[0], grads[0].dtype()), b = ops::cast(saved[1], grads[0].dtype());
    return {product(grads[0], false, b, true), product(a, true, grads[0], false)};
  }
};

/// PyTorch's notes: one that needs float32.
struct MyFloat32Func : Function<MyFloat32Func> {
  static constexpr DType kCastInputs = DType::kFloat32;
  static Tensor forward(FunctionContext& context, const Tensor& input) {
    context.save_for_backward({input});
    seen_dtypes.forward = input.dtype();
    EXPECT_FALSE(amp::Autocast::enabled());
    return ops::mul(input, input);
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    seen_dtypes.backward = grads[0].dtype();
    seen_dtypes.autocast_in_backward = amp::Autocast::enabled();
    return {ops::mul(grads[0], ops::scale(context.saved_tensors()[0], 2))};
  }
};

/// y = x^2 + p and z = 3 x, by operations; the index of nothing; p is no tensor.
struct Several : Function<Several> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& x, double p, const Tensor& unused) {
    context.save_for_backward({x});
    context.saved_data["p"] = p;
    EXPECT_TRUE(context.needs_input_grad(0));
    EXPECT_FALSE(context.needs_input_grad(1));
    EXPECT_FALSE(context.needs_input_grad(2));
    const Tensor mark = Tensor::zeros(x.shape(), x.dtype());
    context.mark_non_differentiable({mark});
    return {ops::add(ops::mul(x, x), ops::scale(unused, p)), mark, ops::scale(x, 3)};
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    EXPECT_EQ(std::any_cast<double>(context.saved_data.at("p")), 0.5);
    EXPECT_EQ(grads.size(), 3u);
    EXPECT_TRUE(context.needs_input_grad(0));
    EXPECT_FALSE(context.needs_input_grad(2));
    const Tensor x = context.saved_tensors()[0];
    return {ops::add(ops::mul(grads[0], ops::scale(x, 2)), ops::scale(grads[2], 3)), {}, {}};
  }
};

/// Its backward reads its result, as that of exp would.
struct Tanh : Function<Tanh> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    const Tensor y = ops::tanh(x);
    context.save_for_backward({y});
    return y;
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    const Tensor y = context.saved_tensors()[0];
    return {ops::add(grads[0], ops::scale(ops::mul(grads[0], ops::mul(y, y)), -1))};
  }
};

TEST(Function, HasTheGradientsThatItsBackwardGives) {
  const Tensor a = leaf({3, 4}, 1), b = leaf({4, 2}, 2), weights = random_tensor({3, 2}, DType::kFloat64, 3);
  const auto found = grad(MyMM::apply(a, b), {a, b}, weights);
  const auto expected = grad(ops::matmul(a, b), {a, b}, weights);
  for (int i = 0; i < 2; ++i) expect_close(found[i], values_of(expected[i]), {1e-12, 1e-12});
}

TEST(Function, RunsItsForwardInTheCallersAutocastStateAndItsBackwardInTheForwards) {
  const Tensor a = leaf({3, 4}, 1, DType::kFloat32), b = leaf({4, 2}, 2, DType::kFloat32);
  Tensor sum;
  {
    const amp::Autocast autocast(DType::kBFloat16);
    sum = ops::sum(MyMM::apply(a, b));
  }
  EXPECT_EQ(seen_dtypes.forward, DType::kBFloat16);
  sum.backward();
  EXPECT_EQ(seen_dtypes.backward, DType::kBFloat16);
  EXPECT_TRUE(seen_dtypes.autocast_in_backward);
  EXPECT_EQ(a.grad().dtype(), DType::kFloat32);
  const Tensor plain = ops::sum(MyMM::apply(a, b));
  const amp::Autocast autocast(DType::kBFloat16);
  plain.backward();
  EXPECT_EQ(seen_dtypes.backward, DType::kFloat32);
  EXPECT_FALSE(seen_dtypes.autocast_in_backward);
}

TEST(Function, CastsItsInputsUnderAutocastWhereItSaysSo) {
  const Tensor x = leaf({4}, 1, DType::kFloat16);
  {
    const amp::Autocast autocast(DType::kFloat16);
    const Tensor y = MyFloat32Func::apply(x);
    EXPECT_EQ(y.dtype(), DType::kFloat32);
    EXPECT_EQ(seen_dtypes.forward, DType::kFloat32);
    EXPECT_TRUE(amp::Autocast::enabled());
    ops::sum(y).backward();
  }
  EXPECT_EQ(seen_dtypes.backward, DType::kFloat32);
  EXPECT_FALSE(seen_dtypes.autocast_in_backward);
  EXPECT_EQ(x.grad().dtype(), DType::kFloat16);
  std::vector<double> expected = values_of(x);
  for (double& value : expected) value *= 2;
  expect_close(x.grad(), expected, {1e-3, 1e-3});
  EXPECT_EQ(MyFloat32Func::apply(x).dtype(), DType::kFloat16) << "outside autocast nothing is cast";
}

TEST(Function, MayHaveSeveralArgumentsAndResults) {
  const Tensor x = leaf({3}, 1), unused = random_tensor({3}, DType::kFloat64, 2);
  const std::vector<Tensor> results = Several::apply(x, 0.5, unused);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_FALSE(results[1].requires_grad());
  const std::vector<double> at = values_of(x);
  const auto both = grad(ops::add(ops::sum(results[0]), ops::sum(results[2])), {x}, {}, {.retain_graph = true});
  expect_close(both[0], {2 * at[0] + 3, 2 * at[1] + 3, 2 * at[2] + 3}, {1e-12, 1e-12});
  const auto last = grad(ops::sum(results[2]), {x});
  EXPECT_THAT(values_of(last[0]), ElementsAre(3, 3, 3)) << "the gradient of the other result is zero";
}

TEST(Function, MadeOfOperationsIsDifferentiatedTwice) {
  const Tensor x = leaf({5}, 1);
  const std::vector<double> at = values_of(x);
  const Tensor plain = ops::tanh(x);
  const auto second = [&](const Tensor& y) {
    const Tensor first = grad(ops::sum(y), {x}, {}, {.create_graph = true})[0];
    return values_of(grad(ops::sum(ops::mul(first, first)), {x})[0]);
  };
  const std::vector<double> expected = second(plain);
  expect_close(Tensor::from(second(Tanh::apply(x)), {5}), expected, {1e-12, 1e-12});
}

/// e^x and 2 e^x, whose backward reads the second.
struct TwoExponentials : Function<TwoExponentials> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& x) {
    const Tensor one = ops::exp(x), two = ops::scale(one, 2);
    context.save_for_backward({two});
    return {one, two};
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    return {ops::mul(context.saved_tensors()[0], ops::add(ops::scale(grads[0], 0.5), grads[1]))};
  }
};

TEST(Function, IsDifferentiatedTwiceThroughAResultThatNobodyKept) {
  const Tensor x = leaf({5}, 1);
  const Tensor y = TwoExponentials::apply(x)[0];
  const Tensor first = grad(ops::sum(y), {x}, {}, {.create_graph = true})[0];
  expect_close(grad(ops::sum(first), {x})[0], values_of(y), {1e-12, 1e-12});
}

/// x^3, whose backward is a loop over elements.
struct Loop : Function<Loop> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return ops::mul(x, ops::mul(x, x));
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    const Tensor x = context.saved_tensors()[0], dx = Tensor::empty(x.shape(), x.dtype(), x.device());
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      dx.mutable_as<double>()[static_cast<std::size_t>(i)] = grads[0].item(i) * 3 * x.item(i) * x.item(i);
    }
    return {dx};
  }
};
struct SaidOnce : Function<SaidOnce> {
  static constexpr bool kOnceDifferentiable = true;
  static constexpr auto forward = Tanh::forward;
  static constexpr auto backward = Tanh::backward;
};
struct SaidConstant : Function<SaidConstant> {
  static constexpr bool kOnceDifferentiable = false;
  static constexpr auto forward = Loop::forward;
  static constexpr auto backward = Loop::backward;
};

TEST(Function, WhoseBackwardIsALoopIsNotDifferentiatedTwice) {
  const Tensor x = leaf({3}, 1);
  const auto second = [&](const Tensor& y) {
    const Tensor first = grad(ops::sum(y), {x}, {}, {.create_graph = true})[0];
    return grad(ops::sum(ops::add(ops::mul(first, first), ops::mul(x, x))), {x})[0];
  };
  const auto refused = ThrowsMessage<UsageError>(HasSubstr("the backward() of a Function cannot be differentiated"));
  EXPECT_THAT([&] { second(Loop::apply(x)); }, refused);
  EXPECT_THAT([&] { second(ops::mul(Loop::apply(x), Loop::apply(x))); }, refused);
  EXPECT_THAT([&] { second(SaidOnce::apply(x)); }, refused);
  EXPECT_NO_THROW(second(SaidConstant::apply(x)));
  const std::vector<double> at = values_of(x);
  const Tensor once = grad(ops::sum(Loop::apply(x)), {x}, {}, {.create_graph = true})[0];
  expect_close(once, {3 * at[0] * at[0], 3 * at[1] * at[1], 3 * at[2] * at[2]}, {1e-12, 1e-12});
  EXPECT_NO_THROW(ops::sum(Loop::apply(x)).backward());
}

struct OfTheWrongShape : Function<OfTheWrongShape> {
  static Tensor forward(FunctionContext&, const Tensor&, const Tensor& x) { return ops::scale(x, 2); }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {Tensor(), ops::sum(grads[0])};
  }
};

TEST(Function, WhoseGradientHasAnotherShapeThanItsArgumentIsAnError) {
  const Tensor x = leaf({5}, 1);
  EXPECT_THAT([&] { ops::sum(OfTheWrongShape::apply(leaf({2}, 2), x)).backward(); },
              ThrowsMessage<ShapeError>(HasSubstr("gives its argument 1, of shape [5], a gradient of shape []")));
}

TEST(Function, RefusesASavedTensorThatWasWritten) {
  const Tensor a = leaf({2, 2}, 1), b = leaf({2, 2}, 2);
  const Tensor sum = ops::sum(MyMM::apply(a, b));
  b.mutable_as<double>()[0] = 7;
  EXPECT_THAT([&] { sum.backward(); }, ThrowsMessage<UsageError>(HasSubstr("was written between the forward and")));
}

TEST(Function, OfNothingThatNeedsAGradientIsNotRecorded) {
  const Tensor a = random_tensor({2, 2}, DType::kFloat64, 1);
  EXPECT_FALSE(MyMM::apply(a, a).requires_grad());
}

}  // namespace
}  // namespace lockstep::autograd
