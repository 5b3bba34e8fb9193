// SPDX-License-Identifier: Apache-2.0
// How many kernels and copies a step on a GPU is made of: what a step of small layers costs.
#include <gtest/gtest.h>

#include "amp/grad_scaler/opt_level.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/kernels/backend_choice.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "runtime/step/training_step.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/devices.h"

namespace lockstep::step {
namespace {

using devices::device;

class GraphNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device() == kCpu) GTEST_SKIP() << "a step on a CPU is no graph";
  }

  /// Of a step at O1 on one rank, with batches like this one.
  static std::size_t count(const model_zoo::ModelOptions& options, const model_zoo::ModelInput& input, const Loss& loss,
                           const data::Batch& batch) {
    const comm::World world = comm::World::from_environment({.device = device()});
    const std::unique_ptr<nn::Module> net = model_zoo::build(options, input, 3);
    const std::unique_ptr<optim::Optimizer> optimizer = optim::sgd(net->parameters(), {.lr = 0.1});
    amp::initialize(*net, *optimizer, {.opt_level = amp::OptLevel::kO1}, device());
    comm::DistributedDataParallel ddp(*net, world);
    amp::GradScaler scaler(world, {});
    TrainingStep step(ddp, *optimizer, scaler, loss);
    for (int i = 0; i < 3; ++i) step.run(batch);
    EXPECT_EQ(step.graph_launches(), 2u);
    return step.graph_nodes();
  }

  /// Of a model on texts of 64 tokens, with a target for each, or one for all of them.
  static std::size_t count_of_texts(const model_zoo::ModelOptions& options, bool target_each) {
    constexpr std::int64_t kTexts = 2, kTokens = 64, kClasses = 11;
    const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::kInt64); };
    return count(options,
                 {.sample_shape = {kTokens},
                  .outputs = kClasses,
                  .vocabulary = kClasses,
                  .target_shape = target_each ? Shape{kTokens} : Shape{},
                  .classes = kClasses},
                 ops::cross_entropy,
                 {.input = zeros({kTexts, kTokens}),
                  .target = zeros(target_each ? Shape{kTexts, kTokens} : Shape{kTexts}),
                  .step_samples = kTexts});
  }
};

TEST_F(GraphNodes, OfThreeLinearLayersAreFew) {
  const std::size_t found =
      count(model_zoo::MlpOptions{.hidden = {16, 16}}, {.sample_shape = {16}, .outputs = 16}, ops::mse,
            {.input = Tensor::zeros({8, 16}, DType::kFloat32),
             .target = Tensor::zeros({8, 16}, DType::kFloat32),
             .step_samples = 8});
  // Inputs: 2. Products: 3 + 3 + 2. Loss: 3. Inf check, verdict, update, schedule, loss scale: 5. CUDA's kernels have
  // two for the inf check, and four of their own for the activations; cuBLASLt may have two for a product that adds up
  // the gradient of a bias.
  const bool emulated = kernels::backend_name(device()) == "emulated";
  EXPECT_LE(found, emulated ? 18u : 23u + 3u);
}

// docs/gpu.md lists them.
TEST_F(GraphNodes, OfABlockOfATransformerAreThoseListed) {
  struct Counts {
    std::size_t of_block, of_the_rest;
  };
  const auto counted = [](auto options, bool target_each) -> Counts {
    options.heads = 2;
    options.width = 32;
    options.context = 64;
    std::size_t counts[2];
    for (const std::int64_t layers : {1, 2}) {
      options.layers = layers;
      counts[layers - 1] = count_of_texts(options, target_each);
    }
    return {counts[1] - counts[0], 2 * counts[0] - counts[1]};
  };
  const auto expect = [](const Counts& found, const Counts& listed) {
    const bool emulated = gpu::describe(device()).name == "emulated";
    if (emulated && kernels::backend_name(device()) != "emulated") {
      EXPECT_EQ(found.of_block, listed.of_block);
      EXPECT_EQ(found.of_the_rest, listed.of_the_rest);
    } else {
      // A kernel a linear layer more, where cuBLASLt does not add up the gradient of a bias.
      EXPECT_LE(found.of_block, listed.of_block + 4);
    }
  };
  expect(counted(model_zoo::GptOptions(), true), {36, 29});
  expect(counted(model_zoo::BertOptions(), false), {44, 53});
}

}  // namespace
}  // namespace lockstep::step
