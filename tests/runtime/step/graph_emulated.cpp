// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <stdexcept>

#include "comm/group/communicator.h"
#include "runtime/autograd/engine.h"
#include "runtime/ops/batch_norm.h"
#include "runtime/step/step_graph.h"
#include "tests/support/devices.h"

namespace lockstep::step {
namespace {

using devices::kGpu;

TEST(StepGraph, IsCapturedAnewAfterACaptureThatFailed) {
  const auto communicator = comm::make_self_communicator(kGpu);
  StepGraph graph(kGpu, *communicator);
  const Tensor from = Tensor::from<float>({1}, {1}).to(kGpu), to = Tensor::zeros({1}, DType::kFloat32, kGpu);
  const StepInputs inputs{.positions = from, .told = to};
  const StepGraph::Setting one{.choices = {false}}, other{.choices = {true}};
  const auto compute = [&] { to.copy_from(from); };
  const auto fail = [] { throw std::runtime_error("no memory"); };
  for (int i = 0; i < 2; ++i) graph.run(inputs, one, compute);
  EXPECT_EQ(graph.launches(), 1);
  graph.run(inputs, other, compute);
  EXPECT_THROW(graph.run(inputs, other, fail), std::runtime_error);
  EXPECT_EQ(graph.nodes(), 0);

  // The graph before is gone, that of the failure never was.
  gpu::zero(to.data(), to.bytes(), Stream::current(kGpu));
  graph.run(inputs, one, compute);
  EXPECT_EQ(graph.launches(), 1);
  EXPECT_EQ(to.item(), 1);
  graph.run(inputs, one, compute);
  EXPECT_EQ(graph.launches(), 2);
  EXPECT_EQ(graph.nodes(), 1);
}

/// Where a shortcut meets the main path, no pass adds their gradients: the batch norm before both does.
TEST(StepGraph, OfAResidualBlockHasNoNodesThatAddGradients) {
  const auto communicator = comm::make_self_communicator(kGpu);
  StepGraph graph(kGpu, *communicator);
  const Tensor from = Tensor::zeros({1}, DType::kFloat32, kGpu), to = Tensor::zeros({1}, DType::kFloat32, kGpu);
  const StepInputs inputs{.positions = from, .told = to};
  const Tensor x = Tensor::from<float>({1, 2, 3, 5, 4, 6}, {3, 2}).to(kGpu);
  const Tensor one = Tensor::from<float>({1, 1}, {2}).to(kGpu);
  x.set_requires_grad(true);
  for (int i = 0; i < 2; ++i) {
    graph.run(inputs, {}, [&] {
      const Tensor y = ops::batch_norm(x, one, one, {}, {}, {}, {.relu = true});
      const Tensor z = ops::batch_norm(y, one, one, y, {}, {}, {.relu = true});
      autograd::grad(z, {x}, y.detach());
    });
  }
  // Of each batch norm: statistics, normalisation; sums of the gradients, gradient.
  EXPECT_EQ(graph.nodes(), 8);
}

}  // namespace
}  // namespace lockstep::step
