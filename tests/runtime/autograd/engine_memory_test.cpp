// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using testing::leaf;
using testing::probe;

std::size_t allocated() { return memory_statistics(kCpu).allocated; }

/// Deep enough that a recursive walk or destructor overflows any usual stack.
constexpr int kDeep = 50'000;

Tensor deep_chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < kDeep; ++i) {
    const Tensor next = y.detach();
    // Saved with its place in the graph, as mul saves its operands.
    record(next, "link", {y},
           {.fused = [y](const Tensor& dy, const BackwardContext&) { return std::vector<Tensor>{dy}; }});
    y = next;
  }
  return y;
}

TEST(DeepGraph, IsWalkedWithoutRecursion) {
  const Tensor x = leaf({1});
  deep_chain(x).backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(DeepGraph, IsDestroyedWithoutRecursion) {
  const Tensor x = leaf({1});
  deep_chain(x);
  EXPECT_FALSE(x.grad().defined());
}

TEST(DeepGraph, OfMultiplicationsIsDestroyedWithoutRecursion) {
  const Tensor x = leaf({1});
  const std::size_t before = allocated();
  {
    Tensor y = x;
    for (int i = 0; i < kDeep; ++i) y = ops::mul(y, i % 2 == 0 ? x : y);
  }
  EXPECT_EQ(allocated(), before);
}

TEST(DeepGraph, OfAFailedWalkIsDestroyedWithoutRecursion) {
  const Tensor x = leaf({1});
  const Tensor end = deep_chain(probe(x, [] { throw UsageError("stop"); }));
  EXPECT_THROW(end.backward(), UsageError);
}

/// A network of layers whose saved activations are much larger than everything else.
class Activations : public ::testing::Test {
 protected:
  static constexpr std::int64_t kElements = 1 << 16;
  static constexpr std::size_t kBytes = kElements * sizeof(double);

  void SetUp() override {
    network(x_).backward();  // so that what kernels keep for the next time is there
    meta_of(x_).grad = {};
    start_ = allocated();
  }

  static Tensor network(const Tensor& x) {
    Tensor y = x;
    for (int layer = 0; layer < 4; ++layer) y = ops::gelu(y);
    return ops::sum(ops::mul(y, y));
  }

  const Tensor x_ = leaf(std::vector<double>(kElements, 0.5));
  std::size_t start_ = 0;
};

TEST_F(Activations, AreKeptUntilBackward) {
  const Tensor loss = network(x_);
  EXPECT_GE(allocated(), start_ + 4 * kBytes);
  loss.backward();
  EXPECT_LT(allocated(), start_ + 2 * kBytes) << "beside the loss only the leaf's gradient is left";
}

TEST_F(Activations, AreDroppedWhileBackwardGoesOn) {
  std::size_t at_first_layer = 0;
  network(probe(x_, [&] { at_first_layer = allocated(); })).backward();
  EXPECT_LT(at_first_layer, start_ + 3 * kBytes) << "two gradients are in flight, the four activations are gone";
}

TEST_F(Activations, AreKeptByRetainGraph) {
  const Tensor loss = network(x_);
  backward(loss, {}, {.retain_graph = true});
  EXPECT_GE(allocated(), start_ + 5 * kBytes);
}

TEST_F(Activations, AreGoneWithTheGraph) {
  network(x_);
  EXPECT_EQ(allocated(), start_) << "without backward";
  network(x_).backward();
  meta_of(x_).grad = {};
  EXPECT_EQ(allocated(), start_) << "with backward";
  backward(network(x_), {}, {.retain_graph = true});
  meta_of(x_).grad = {};
  EXPECT_EQ(allocated(), start_) << "with a backward that keeps the graph";
  grad(network(x_), {x_});
  EXPECT_EQ(allocated(), start_) << "with grad()";
}

TEST_F(Activations, OfASecondDerivativeAreGoneToo) {
  {
    const Tensor first = grad(ops::sum(ops::mul(ops::mul(x_, x_), x_)), {x_}, {}, {.create_graph = true}).front();
    grad(ops::sum(ops::mul(first, first)), {x_});
  }
  EXPECT_EQ(allocated(), start_);
}

TEST_F(Activations, OfAnUnrecordedNetworkAreNotKept) {
  const Tensor loss = network(x_.detach());
  EXPECT_LT(allocated(), start_ + kBytes);
}

/// Every operation's saved tensors: none may own the result that owns them.
TEST(Graph, HasNoReferenceCycle) {
  kernels::ConvGeometry conv;
  kernels::PoolGeometry max, average;
  max.window = average.window = {2, 2, 1};
  average.kind = kernels::PoolKind::kAverage;
  const auto random = [](const Shape& shape) {
    const Tensor tensor = kernels::testing::random_tensor(shape, DType::kFloat32, 1);
    tensor.set_requires_grad(true);
    return tensor;
  };
  const Tensor x = random({2, 4, 4, 3}), weight = random({5, 2, 2, 3}), gamma = random({5}), beta = random({5});
  const Tensor running = random({2, 5}), dense = random({6, 5});
  const Tensor classes = Tensor::from<std::int64_t>({0, 5}, {2});
  const auto network = [&] {
    Tensor y = ops::conv(x, weight, beta, conv);
    y = ops::batch_norm(y, gamma, beta, y, {}, {}, {.relu = true});
    y = ops::batch_norm_inference(y, gamma, beta, {}, running.detach(), {});
    y = ops::pool(ops::pool(ops::relu(ops::gelu(y)), max), average);
    y = ops::dropout(ops::mul(ops::add(y, beta), y), 0.5, {}, 0);
    y = ops::linear(ops::flatten(ops::reshape(y, y.shape())), dense, {});
    const Tensor probabilities = ops::softmax(ops::log_softmax(y));
    const Tensor loss = ops::cross_entropy(ops::matmul(probabilities, random({6, 6})), classes);
    const Tensor pooled = ops::global_average_pool(x);
    return ops::add(ops::add(loss, ops::mean(ops::cast(y, DType::kFloat16))), ops::mse(pooled, pooled.detach()));
  };
  network().backward();
  for (const Tensor& tensor : {x, weight, gamma, beta, dense}) meta_of(tensor).grad = {};
  const std::size_t start = allocated();
  network();
  EXPECT_EQ(allocated(), start) << "without backward";
  network().backward();
  for (const Tensor& tensor : {x, weight, gamma, beta, dense}) meta_of(tensor).grad = {};
  EXPECT_EQ(allocated(), start) << "with backward";
}

}  // namespace
}  // namespace lockstep::autograd
