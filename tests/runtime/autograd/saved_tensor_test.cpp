// SPDX-License-Identifier: Apache-2.0
// What happens to a value that is written between the forward and the backward pass that needs it.
#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/kernels/assign.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::leaf;
using ::testing::ThrowsMessage;
using testing::values_of;

Tensor tensor(const Shape& shape, bool requires_grad = true) {
  const Tensor tensor = Tensor::zeros(shape, DType::kFloat32);
  kernels::fill(tensor, 0.5);
  if (requires_grad) tensor.set_requires_grad(true);
  return tensor;
}

struct Case {
  std::string operation;
  std::vector<Shape> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> forward;
  std::vector<bool> needed;  ///< by input: whether the gradients need its value
  bool result_is_needed = false;
};

const kernels::ConvGeometry kConv{.spatial_rank = 1};

std::vector<Case> cases() {
  using Inputs = std::vector<Tensor>;
  const auto linear = [](kernels::Activation activation) {
    return [activation](const Inputs& in) { return ops::linear(in[0], in[1], in[2], activation); };
  };
  const std::vector<Shape> of_linear{{2, 3}, {4, 3}, {4}}, of_conv{{2, 5, 3}, {3, 1, 3}, {3}};
  return {
      {"matmul", {{2, 3}, {3, 4}}, [](const Inputs& in) { return ops::matmul(in[0], in[1]); }, {true, true}},
      {"linear", of_linear, linear(kernels::Activation::kNone), {true, true, false}},
      {"linear", of_linear, linear(kernels::Activation::kRelu), {true, true, false}, true},
      {"linear", of_linear, linear(kernels::Activation::kGelu), {true, true, false}},
      {"conv", of_conv, [](const Inputs& in) { return ops::conv(in[0], in[1], in[2], kConv); }, {true, true, false}},
      {"conv_transpose",
       of_conv,
       [](const Inputs& in) { return ops::conv_transpose(in[0], in[1], in[2], kConv); },
       {true, true, false}},
      {"batch_norm",
       {{4, 3}, {3}, {3}, {4, 3}},
       [](const Inputs& in) { return ops::batch_norm(in[0], in[1], in[2], in[3], {}, {}, {.relu = true}); },
       {true, true, false, false},
       true},
      {"relu", {{3}}, [](const Inputs& in) { return ops::relu(in[0]); }, {false}, true},
      {"gelu", {{3}}, [](const Inputs& in) { return ops::gelu(in[0]); }, {true}},
      {"mul", {{2, 3}, {2, 3}}, [](const Inputs& in) { return ops::mul(in[0], in[1]); }, {true, true}},
      {"add", {{2, 3}, {3}}, [](const Inputs& in) { return ops::add(in[0], in[1]); }, {false, false}},
      {"scale", {{3}}, [](const Inputs& in) { return ops::scale(in[0], 2); }, {false}},
      {"softmax", {{2, 3}}, [](const Inputs& in) { return ops::softmax(in[0]); }, {false}, true},
      {"log_softmax", {{2, 3}}, [](const Inputs& in) { return ops::log_softmax(in[0]); }, {false}, true},
      {"cross_entropy",
       {{2, 3}},
       [](const Inputs& in) { return ops::cross_entropy(in[0], Tensor::zeros({2}, DType::kInt64)); },
       {true}},
      {"mse", {{2, 3}, {2, 3}}, [](const Inputs& in) { return ops::mse(in[0], in[1]); }, {true, true}},
  };
}

class Written : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    for (const Shape& shape : GetParam().inputs) {
      inputs_.push_back(tensor(shape));
      meta_of(inputs_.back()).name = "input" + std::to_string(inputs_.size() - 1);
    }
    result_ = GetParam().forward(inputs_);
  }

  void backward() { autograd::backward(result_, tensor(result_.shape(), false), {.retain_graph = true}); }
  void recorded_backward() { grad(result_, inputs_, tensor(result_.shape(), false), {.create_graph = true}); }

  std::vector<Tensor> inputs_;
  Tensor result_;
};
INSTANTIATE_TEST_SUITE_P(Operations, Written, ::testing::ValuesIn(cases()),
                         [](const auto& at) { return at.param.operation + std::to_string(at.index); });

TEST_P(Written, NothingBackwardRunsTwice) {
  backward();
  EXPECT_NO_THROW(backward());
}

TEST_P(Written, InputIsAnErrorWhereItsValueIsNeeded) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    result_ = GetParam().forward(inputs_);
    inputs_[i].mutable_as<float>()[0] = 3;
    const auto error = ThrowsMessage<UsageError>(HasSubstr("backward pass of '" + GetParam().operation));
    if (GetParam().needed[i]) {
      EXPECT_THAT([&] { backward(); }, error) << i;
      EXPECT_THAT([&] { recorded_backward(); }, error) << i;
    } else {
      EXPECT_NO_THROW(backward()) << i;
    }
  }
}

TEST_P(Written, ResultIsAnErrorWhereItsValueIsNeeded) {
  result_.detach().mutable_as<float>()[0] = 3;
  const auto error = ThrowsMessage<UsageError>(HasSubstr("backward pass of '" + GetParam().operation));
  if (GetParam().result_is_needed) {
    EXPECT_THAT([&] { backward(); }, error);
    EXPECT_THAT([&] { recorded_backward(); }, error);
  } else {
    EXPECT_NO_THROW(backward());
  }
}

TEST(Written, ParameterIsNamed) {
  const Tensor x = tensor({2, 3}), weight = tensor({4, 3});
  meta_of(weight).name = "head.weight";
  const Tensor y = ops::sum(ops::linear(x, weight, {}));
  weight.copy_from(tensor({4, 3}, false));
  EXPECT_THAT([&] { y.backward(); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("parameter head.weight (float32 [4, 3] on cpu) was written"),
                                              HasSubstr("'linear'"))));
}

TEST(Written, ParameterIsNamedByTheGradientOfAGradient) {
  const Tensor x = tensor({2, 3}), weight = tensor({4, 3});
  meta_of(weight).name = "head.weight";
  const Tensor y = ops::sum(ops::linear(x, weight, {}, kernels::Activation::kTanh));
  const Tensor dx = grad(y, {x}, {}, {.create_graph = true}).front();
  weight.copy_from(tensor({4, 3}, false));
  EXPECT_THAT([&] { grad(ops::sum(ops::mul(dx, dx)), {weight}); },
              ThrowsMessage<UsageError>(HasSubstr("parameter head.weight (float32 [4, 3] on cpu) was written")));
}

TEST(Written, ThroughAViewCounts) {
  const Tensor x = leaf({1, 2});
  const Tensor y = ops::mul(x, x);
  x.detach().reshaped({2, 1}).rows(1, 2).mutable_as<double>()[0] = 3;
  EXPECT_THROW(autograd::backward(y, leaf({1, 1})), UsageError);
}

TEST(Written, WeightOfALayerWhoseInputNeedsNoGradientIsNoError) {
  const Tensor x = tensor({2, 3}, false), weight = tensor({4, 3});
  const Tensor y = ops::sum(ops::linear(x, weight, {}));
  weight.mutable_as<float>()[0] = 9;
  y.backward();
  EXPECT_EQ(weight.grad().item(), 1);
}

TEST(Written, ActivationBeforeALinearLayerIsFoundByIt) {
  const Tensor x = tensor({2, 3}), weight = tensor({4, 3});
  const Tensor hidden = ops::gelu(x);
  const Tensor y = ops::sum(ops::linear(hidden, weight, {}));
  x.mutable_as<float>()[0] = 9;
  EXPECT_THAT([&] { y.backward(); }, ThrowsMessage<UsageError>(HasSubstr("'gelu'")));
}

TEST(Written, BeforeTheForwardPassOrAfterTheBackwardPassIsNoMatter) {
  const Tensor x = leaf({1, 2});
  for (int step = 0; step < 3; ++step) {
    x.mutable_as<double>()[0] += 1;
    ops::sum(ops::mul(x, x)).backward();
  }
  EXPECT_EQ(x.grad().item(), 2 * (2 + 3 + 4));
}

}  // namespace
}  // namespace lockstep::autograd
