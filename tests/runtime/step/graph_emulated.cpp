// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "comm/group/communicator.h"
#include "runtime/autograd/engine.h"
#include "runtime/ops/batch_norm.h"
#include "runtime/step/step_graph.h"
#include "tests/support/devices.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::step {
namespace {

using devices::kGpu;

/// A step that copies a number, unless its capture is to fail.
class Copies {
 public:
  explicit Copies(bool required = false)
      : communicator_(comm::make_self_communicator(kGpu)), graph_(kGpu, *communicator_, required) {}

  void run(const StepGraph::Setting& setting, bool fails = false) {
    graph_.run(inputs_, setting, [&] {
      to_.copy_from(from_);
      if (fails && gpu::emulation::recording()) throw std::runtime_error("no memory for the graph");
    });
  }
  /// What the last step copied.
  float copied() const {
    const float value = static_cast<float>(to_.item());
    gpu::zero(to_.data(), to_.bytes(), Stream::current(kGpu));
    return value;
  }
  const StepGraph& graph() const { return graph_; }

 private:
  std::shared_ptr<comm::Communicator> communicator_;
  StepGraph graph_;
  Tensor from_ = Tensor::from<float>({1}, {1}).to(kGpu), to_ = Tensor::zeros({1}, DType::kFloat32, kGpu);
  StepInputs inputs_{.positions = from_, .told = to_};
};

TEST(StepGraph, RunsStepsAsTheyAreFromACaptureThatFailedOn) {
  std::ostringstream log;
  const auto previous = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  const StepGraph::Setting one{.choices = {false}}, other{.choices = {true}};
  Copies step;
  for (int i = 0; i < 2; ++i) step.run(one);
  EXPECT_EQ(step.graph().launches(), 1);
  step.run(other);
  EXPECT_EQ(step.copied(), 1);
  EXPECT_EQ(log.str(), "");
  step.run(other, true);
  EXPECT_EQ(step.copied(), 1) << "the step that could not be captured has run all the same";
  for (int i = 0; i < 3; ++i) {
    step.run(one);
    EXPECT_EQ(step.copied(), 1);
  }
  EXPECT_EQ(step.graph().launches(), 1);
  EXPECT_EQ(step.graph().nodes(), 0);
  spdlog::set_default_logger(previous);
  const std::string said = log.str();
  EXPECT_NE(said.find("rank 0 cannot capture its step as a CUDA graph: no memory for the graph"), std::string::npos);
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST(GpuStreams, ForComputeHaveTheLeastPriorityAndThoseBesideItTheGreatest) {
  EXPECT_EQ(gpu::emulation::priority_of(Stream::current(kGpu)), gpu::StreamPriority::kLeast);
  EXPECT_EQ(gpu::emulation::priority_of(Stream::create(kGpu, "buckets")), gpu::StreamPriority::kGreatest);
}

TEST(StepGraph, ThatIsRequiredEndsWithTheErrorOfItsCapture) {
  Copies step(true);
  step.run({});
  EXPECT_THROW(step.run({}, true), std::runtime_error);
  EXPECT_EQ(step.graph().launches(), 0);
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
