// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/nn/layers.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::nn {
namespace {

using kernels::testing::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const Parameter& parameter : module.parameters()) names.push_back(parameter.name);
  return names;
}

/// A branch of its own below the root.
class Network : public Module {
 public:
  Network() {
    scale_ = add_parameter("scale", {3}, ParameterKind::kWeight, Initializer::constant(0.5));
    auto& body = add_module<Sequential>("body");
    body.add<Linear>("first", 4, 3);
    body.add<BatchNorm>("norm", 3);
    body.add<Dropout>("dropout", 0.5);
    add_module<Linear>("head", 3, 2, false);
  }
  Tensor forward(const Tensor& x) override { return x; }

 private:
  Tensor scale_;
};

TEST(Module, NamesParametersByPathInTheOrderOfRegistration) {
  EXPECT_THAT(names_of(Network()), ElementsAre("scale", "body.first.weight", "body.first.bias", "body.norm.weight",
                                               "body.norm.bias", "head.weight"));
}

TEST(Module, KnowsTheKindOfEachParameter) {
  std::vector<ParameterKind> kinds;
  for (const Parameter& parameter : Network().parameters()) kinds.push_back(parameter.kind);
  EXPECT_THAT(kinds, ElementsAre(ParameterKind::kWeight, ParameterKind::kWeight, ParameterKind::kBias,
                                 ParameterKind::kNorm, ParameterKind::kNorm, ParameterKind::kWeight));
}

TEST(Module, NamesStatisticsAndVisitsDepthFirst) {
  Network network;
  ASSERT_EQ(network.statistics().size(), 1u);
  EXPECT_EQ(network.statistics()[0].first, "body.norm.running");
  EXPECT_THAT(values_of(network.statistics()[0].second->committed()), ElementsAre(0, 0, 0, 1, 1, 1));
  std::vector<std::string> paths;
  network.for_each([&paths](const std::string& path, Module&) { paths.push_back(path); });
  EXPECT_THAT(paths, ElementsAre("", "body", "body.first", "body.norm", "body.dropout", "head"));
}

TEST(Module, TrainReachesEveryPart) {
  Network network;
  const auto all = [&network](bool training) {
    bool same = true;
    network.for_each([&](const std::string&, Module& module) { same = same && module.training() == training; });
    return same;
  };
  EXPECT_TRUE(all(true));
  network.train(false);
  EXPECT_TRUE(all(false));
  network.train();
  EXPECT_TRUE(all(true));
}

TEST(Module, RefusesTwoChildrenOfOneName) {
  Sequential net;
  net.add<Flatten>("a");
  EXPECT_THAT([&] { net.add<Flatten>("a"); }, ThrowsMessage<UsageError>(HasSubstr("two modules are called 'a'")));
}

TEST(TiedWeights, AreOneParameterUnderItsFirstName) {
  Sequential net;
  const Linear& first = net.add<Linear>("first", 4, 4, false);
  net.add<Linear>("second", first.parameters().front());
  EXPECT_THAT(names_of(net), ElementsAre("first.weight", "second.bias"));
  EXPECT_TRUE(net.parameters()[0].tensor.is(first.parameters()[0].tensor));
  Sequential untied;
  untied.add<Linear>("first", 4, 4, false);
  initialize(net, 7);
  initialize(untied, 7);
  EXPECT_EQ(values_of(net.parameters()[0].tensor), values_of(untied.parameters()[0].tensor));
  EXPECT_EQ(autograd::meta_of(net.parameters()[0].tensor).name, "first.weight");
}

TEST(TiedWeights, OfALinearLayerAreAMatrix) {
  const Linear layer(3, 2);
  EXPECT_THAT([&] { Linear(layer.parameters().back()); }, ThrowsMessage<ShapeError>(HasSubstr("cannot share bias")));
}

TEST(Initialize, DependsOnSeedAndNameAlone) {
  Sequential one, two;
  one.add<Linear>("a", 5, 4);
  two.add<Linear>("other", 3, 3);
  two.add<Linear>("a", 5, 4);
  initialize(one, 7);
  initialize(two, 7);
  const auto weight = [](const Module& module, std::size_t i) { return values_of(module.parameters()[i].tensor); };
  EXPECT_EQ(weight(one, 0), weight(two, 2)) << "not on what stands before it";
  EXPECT_NE(weight(one, 1), weight(two, 1));
  const std::vector<double> before = weight(one, 0);
  initialize(one, 8);
  EXPECT_NE(weight(one, 0), before);
  initialize(one, 7);
  EXPECT_EQ(weight(one, 0), before);
}

TEST(Initialize, NamesTheLeavesAndCountsAsAWrite) {
  Network network;
  const Tensor weight = network.parameters()[1].tensor;
  const std::uint64_t before = weight.version();
  initialize(network, 1);
  EXPECT_EQ(autograd::meta_of(weight).name, "body.first.weight");
  EXPECT_GT(weight.version(), before);
  EXPECT_TRUE(weight.requires_grad());
}

TEST(Initialize, IsPyTorchsUniformAndHisNormal) {
  Linear linear(100, 400);
  initialize(linear, 3);
  const std::vector<double> uniform = values_of(linear.parameters()[0].tensor);
  double sum = 0, largest = 0;
  for (const double value : uniform) {
    sum += value;
    largest = std::max(largest, std::abs(value));
  }
  EXPECT_LE(largest, 0.1);
  EXPECT_GT(largest, 0.0999);
  EXPECT_NEAR(sum / 40'000, 0, 5 * 0.1 / std::sqrt(3 * 40'000.0));

  ConvOptions options;
  options.kaiming_normal = true;
  Conv conv(16, 64, options);
  initialize(conv, 3);
  double squares = 0;
  const std::vector<double> normal = values_of(conv.parameters()[0].tensor);
  for (const double value : normal) squares += value * value;
  const double variance = 2.0 / (64 * 9), count = static_cast<double>(normal.size());
  EXPECT_NEAR(squares / count, variance, 5 * variance * std::sqrt(2 / count));
}

TEST(Layers, HaveTheShapesOfTheirDocumentation) {
  ConvOptions options;
  options.geometry.groups = 2;
  options.geometry.padding = {1, 1, 0};
  options.geometry.stride = {2, 2, 1};
  Conv conv(4, 6, options);
  initialize(conv, 1);
  EXPECT_EQ(conv.parameters()[0].tensor.shape(), (Shape{6, 3, 3, 2}));
  EXPECT_EQ(conv.parameters()[1].tensor.shape(), (Shape{6}));
  const Tensor image = Tensor::zeros({2, 8, 6, 4}, DType::kFloat32);
  EXPECT_EQ(conv.forward(image).shape(), (Shape{2, 4, 3, 6}));
  kernels::PoolGeometry pool;
  pool.window = pool.stride = {2, 2, 1};
  EXPECT_EQ(Pool(pool).forward(image).shape(), (Shape{2, 4, 3, 4}));
  EXPECT_EQ(GlobalAveragePool().forward(image).shape(), (Shape{2, 4}));
  EXPECT_EQ(Flatten().forward(image).shape(), (Shape{2, 192}));
  Linear linear(4, 5);
  initialize(linear, 1);
  EXPECT_EQ(linear.forward(image).shape(), (Shape{2, 8, 6, 5}));
}

TEST(Layers, ConvTransposeHasPyTorchsShapesAndInitialisation) {
  ConvOptions options;
  options.geometry.groups = 2;
  options.geometry.padding = {1, 1, 0};
  options.geometry.stride = {2, 1, 1};
  ConvTranspose conv(4, 6, options, {1, 0, 0});
  initialize(conv, 1);
  EXPECT_EQ(conv.parameters()[0].tensor.shape(), (Shape{4, 3, 3, 3}));
  EXPECT_EQ(conv.parameters()[1].tensor.shape(), (Shape{6}));
  EXPECT_EQ(conv.forward(Tensor::zeros({2, 8, 6, 4}, DType::kFloat32)).shape(), (Shape{2, 16, 6, 6}));
  for (const Parameter& parameter : conv.parameters()) {
    for (const double value : values_of(parameter.tensor)) EXPECT_LE(std::abs(value), 1 / std::sqrt(3 * 9.0));
  }
}

TEST(Layers, AConvolutionsGroupsDivideItsChannels) {
  ConvOptions options;
  options.geometry.groups = 4;
  EXPECT_THROW(Conv(4, 6, options), ShapeError);
  EXPECT_THROW(Conv(6, 4, options), ShapeError);
  EXPECT_THROW(ConvTranspose(4, 6, options), ShapeError);
  options.geometry.groups = 0;
  EXPECT_THROW(ConvTranspose(4, 6, options), ShapeError);
}

TEST(Layers, ActivationsAreThoseTheyName) {
  const Tensor x = Tensor::from<float>({-1, 2}, {2});
  EXPECT_THAT(values_of(Activation(kernels::Activation::kRelu).forward(x)), ElementsAre(0, 2));
  EXPECT_NEAR(Activation(kernels::Activation::kGelu).forward(x).item(), -0.15865525, 1e-6);
  EXPECT_TRUE(Activation(kernels::Activation::kNone).forward(x).is(x));
}

TEST(AdaptivePoolLayer, PoolsToItsExtents) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5}, {1, 5, 1});
  AdaptivePool average(kernels::PoolKind::kAverage, {2}), most(kernels::PoolKind::kMax, {2});
  EXPECT_THAT(average(x).as<float>(), testing::ElementsAre(2, 4));
  EXPECT_THAT(most(x).as<float>(), testing::ElementsAre(3, 5));
}

}  // namespace
}  // namespace lockstep::nn
