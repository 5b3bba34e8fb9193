// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/gradcheck.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "runtime/autograd/function.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"

namespace lockstep::autograd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Given = std::vector<Tensor>;

Tensor doubles(const std::vector<double>& values) {
  const Tensor leaf = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  leaf.set_requires_grad(true);
  return leaf;
}

/// x^3, of which a factor of the backward is given.
struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& context, const Tensor& x, double factor) {
    context.save_for_backward({x});
    context.saved_data["factor"] = factor;
    return x * x * x;
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    const Tensor x = context.saved_tensors().front();
    return {ops::scale(grads[0] * x * x, std::any_cast<double>(context.saved_data["factor"])), {}};
  }
};

Computation cube(double factor) {
  return [factor](const Given& in) { return Given{Cube::apply(in[0], factor)}; };
}

std::string refusal(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Gradcheck, PassesRightGradientsOfSeveralOutputsAndInputs) {
  const Tensor a = doubles({0.5, -1, 2}), b = doubles({1.5, 0.25, -0.75});
  const Computation function = [](const Given& in) {
    return Given{ops::sin(in[0]) * in[1], ops::sum(ops::exp(in[0])), ops::cat({in[1], in[0]})};
  };
  gradcheck(function, {a, b});
  gradgradcheck(function, {a, b});
  EXPECT_FALSE(a.grad().defined());
  EXPECT_EQ(a.item(0), 0.5);
}

TEST(Gradcheck, TakesInputsWithoutAGradientAsTheyAre) {
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{1, 0}, {2});
  const Tensor x = doubles({0.1, 0.4, -0.3, 0.2});
  gradcheck([](const Given& in) { return Given{ops::cross_entropy(ops::reshape(in[0], {2, 2}), in[1])}; }, {x, labels});
}

TEST(Gradcheck, NamesTheElementWhoseGradientIsWrong) {
  const Tensor x = doubles({0, 0.5});
  gradcheck(cube(3), {x});
  gradgradcheck(cube(3), {x});
  const std::string wrong = refusal([&] { gradcheck(cube(2), {x}); });
  EXPECT_THAT(wrong, AllOf(HasSubstr("the gradient of element 1 of output 0 by element 1 of input 0 is 0.5"),
                           HasSubstr("difference is 0.749")));
}

TEST(Gradcheck, FindsAGradientThatIsMissing) {
  const Tensor a = doubles({1}), b = doubles({2});
  const Computation function = [](const Given& in) { return Given{in[0] * in[1].detach()}; };
  EXPECT_THAT(refusal([&] { gradcheck(function, {a, b}); }), HasSubstr("by element 0 of input 1 is 0"));
}

/// x^2, which says that gradients without a graph are constants, and gives one that is none.
struct Detached : Function<Detached> {
  static constexpr bool kOnceDifferentiable = false;
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return x * x;
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads) {
    return {ops::scale(grads[0].detach() * context.saved_tensors().front().detach(), 2)};
  }
};

TEST(Gradgradcheck, FindsAGradientThatIsTakenForAConstant) {
  const Computation function = [](const Given& in) { return Given{Detached::apply(in[0])}; };
  const Tensor x = doubles({0.5, 2});
  gradcheck(function, {x});
  EXPECT_THAT(refusal([&] { gradgradcheck(function, {x}); }), HasSubstr("by element 0 of input 0 is 0; a central"));
}

TEST(Gradgradcheck, TakesGradientsThatAreConstantOrMissing) {
  const Computation function = [](const Given& in) { return Given{ops::sum(in[0] * 3) + ops::sum(in[1].detach())}; };
  gradgradcheck(function, {doubles({0.5, 2}), doubles({1})});
}

TEST(Gradcheck, RefusesWhatCannotBeCompared) {
  const Computation square = [](const Given& in) { return Given{in[0] * in[0]}; };
  const Tensor narrow = Tensor::from(std::vector<float>{1}, {1});
  EXPECT_THAT(refusal([&] { gradcheck(square, {narrow}); }), HasSubstr("no input requires a gradient"));
  narrow.set_requires_grad(true);
  EXPECT_THAT(refusal([&] { gradcheck(square, {narrow}); }), HasSubstr("input 0 is"));
  const Computation constant = [](const Given& in) { return Given{in[0].detach()}; };
  EXPECT_THAT(refusal([&] { gradcheck(constant, {doubles({1})}); }), HasSubstr("output 0 depends on no input"));
  int calls = 0;
  const Computation other = [&calls](const Given& in) { return Given{ops::scale(in[0], ++calls)}; };
  EXPECT_THAT(refusal([&] { gradcheck(other, {doubles({1})}); }), StartsWith("gradcheck: the function gives other"));
  const Computation wide = [](const Given& in) { return Given{in[0].to(DType::kFloat32)}; };
  EXPECT_THAT(refusal([&] { gradcheck(wide, {doubles({1})}); }), HasSubstr("not float64"));
}

}  // namespace
}  // namespace lockstep::autograd
