// SPDX-License-Identifier: Apache-2.0
// Models with weights by PyTorch's names answer what its implementation does, and give the weights back.
#include "model_zoo/exchange.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "runtime/autograd/grad_mode.h"
#include "runtime/tensor/error.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::model_zoo {
namespace {

using kernels::golden;
using kernels::json;

/// As families/exchange.py makes them.
nn::StateDict pytorch_weights(const json& shapes) {
  nn::StateDict state;
  std::int64_t number = 0;
  for (const json& entry : shapes) {
    const std::string name = entry[0];
    const auto extents = entry[1].get<std::vector<std::int64_t>>();
    const Shape shape{std::span<const std::int64_t>(extents)};
    const std::int64_t own = number++;
    if (name.ends_with("num_batches_tracked")) {
      state[name] = Tensor::from<std::int64_t>({3}, {});
      continue;
    }
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      double value = static_cast<double>((i * 40503 + own * 7919 + 12345) % 65536) / 65536 - 0.5;
      if (name.ends_with("running_var")) {
        value = 1 + value;
      } else if (shape.rank() > 1) {
        value *= std::sqrt(24.0 / static_cast<double>(shape.numel() / shape[0]));
      } else if (name.ends_with("weight")) {
        value = 0.75 + 0.25 * value;
      }
      values.push_back(static_cast<float>(value));
    }
    state[name] = Tensor::from(values, shape);
  }
  return state;
}

class Exchange : public testing::TestWithParam<std::string> {
 protected:
  const json& stored() const { return golden("exchange")["resnet"][GetParam()]; }
  ResnetOptions options() const { return {.depth = stored()["depth"]}; }
  std::unique_ptr<nn::Module> model() const {
    return build(options(), {.sample_shape = {32, 32, 3}, .outputs = 10}, 1);
  }
};

TEST_P(Exchange, AnswersWhatPyTorchDoes) {
  const autograd::NoGrad no_grad;
  const auto net = model();
  nn::load_state_dict(*net, from_pytorch(options(), *net, pytorch_weights(stored()["shapes"])));
  net->train(false);
  constexpr std::int64_t kElements = 2 * 32 * 32 * 3;
  std::vector<float> images;
  for (std::int64_t i = 0; i < kElements; ++i) {
    images.push_back(static_cast<float>(std::cos(-1 + 2 * static_cast<double>(i) / (kElements - 1))));
  }
  const Tensor logits = net->forward(Tensor::from(images, {2, 32, 32, 3}));
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    const double expected = stored()["logits"][static_cast<std::size_t>(i / 10)][static_cast<std::size_t>(i % 10)];
    largest = std::max(largest, std::abs(expected));
    worst = std::max(worst, std::abs(logits.item(i) - expected));
  }
  EXPECT_LE(worst, 1e-5 * largest);
}

TEST_P(Exchange, GivesTheWeightsBack) {
  const nn::StateDict theirs = pytorch_weights(stored()["shapes"]);
  const auto net = model();
  nn::load_state_dict(*net, from_pytorch(options(), *net, theirs));
  const nn::StateDict back = to_pytorch(options(), *net);
  ASSERT_EQ(back.size(), theirs.size());
  for (const auto& [name, tensor] : theirs) {
    ASSERT_TRUE(back.contains(name)) << name;
    const Tensor& found = back.at(name);
    ASSERT_EQ(found.shape(), tensor.shape()) << name;
    if (name.ends_with("num_batches_tracked")) continue;
    EXPECT_TRUE(std::ranges::equal(found.as<float>(), tensor.as<float>())) << name;
  }
}

TEST_P(Exchange, NamesWhatIsMissingAndWhatIsTooMuch) {
  nn::StateDict theirs = pytorch_weights(stored()["shapes"]);
  theirs.erase("layer1.0.conv1.weight");
  theirs["head.weight"] = Tensor::zeros({1}, DType::kFloat32);
  const auto net = model();
  try {
    nn::load_state_dict(*net, from_pytorch(options(), *net, theirs));
    FAIL() << "was loaded";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("missing: stage0_block0.conv0.weight"));
    EXPECT_THAT(error.what(), testing::HasSubstr("unexpected: head.weight"));
  }
  theirs.erase("bn1.running_var");
  EXPECT_THROW(from_pytorch(options(), *net, theirs), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Resnet, Exchange, testing::Values("resnet18", "resnet50"),
                         [](const auto& name) { return name.param; });

TEST(Exchange, ModelsThatPyTorchHasNotKeepTheirNames) {
  const MlpOptions options{.hidden = {3}};
  const auto net = build(options, {.sample_shape = {2}, .outputs = 4}, 1);
  const nn::StateDict theirs = to_pytorch(options, *net);
  EXPECT_TRUE(theirs.contains("hidden0_linear.weight"));
  EXPECT_NO_THROW(nn::load_state_dict(*net, from_pytorch(options, *net, theirs)));
}

}  // namespace
}  // namespace lockstep::model_zoo
