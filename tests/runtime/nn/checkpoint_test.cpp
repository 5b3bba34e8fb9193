// SPDX-License-Identifier: Apache-2.0
// Blocks that run again in the backward pass: the same gradients, bit for bit.
#include "runtime/nn/checkpoint.h"

#include <gmock/gmock.h>

#include <functional>
#include <optional>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/attention.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/step_context.h"
#include "runtime/nn/transformer_block.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/memory.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::nn {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kBlockWidth = 8;

std::unique_ptr<TransformerBlock> make_block() {
  return std::make_unique<TransformerBlock>(
      TransformerBlock::Parts{.attention_norm = std::make_unique<LayerNorm>(Shape{kBlockWidth}),
                              .attention = std::make_unique<MultiHeadAttention>(
                                  AttentionOptions{.width = kBlockWidth, .heads = 2, .causal = true, .dropout = 0.2}),
                              .feed_forward_norm = std::make_unique<LayerNorm>(Shape{kBlockWidth}),
                              .feed_forward = std::make_unique<FeedForward>(kBlockWidth, 2 * kBlockWidth),
                              .dropout = 0.3});
}

/// Linear, batch norm, dropout: a block with running statistics.
class NormBlock : public Module {
 public:
  Tensor forward(const Tensor& x) override { return ops::add(x, dropout_.forward(norm_.forward(linear_.forward(x)))); }

 private:
  Linear& linear_ = add_module<Linear>("linear", kBlockWidth, kBlockWidth);
  BatchNorm& norm_ = add_module<BatchNorm>("norm", kBlockWidth);
  Dropout& dropout_ = add_module<Dropout>("dropout", 0.25);
};

/// Two blocks, run in this order, between linear layers; the head's weight is the first layer's.
class BlockNet : public Module {
 public:
  BlockNet(bool checkpointed, std::function<std::unique_ptr<Module>()> make, std::vector<std::size_t> order = {0, 1, 1})
      : checkpointed_(checkpointed), order_(std::move(order)) {
    for (int i = 0; i < 2; ++i) {
      auto block = make();
      blocks_.push_back(block.get());
      adopt("block" + std::to_string(i), std::move(block));
    }
    head_ = &add_module<Linear>("head", first_.parameters().front(), false);
    initialize(*this, 3);
    to(device());
  }

  Tensor forward(const Tensor& x) override {
    Tensor y = first_.forward(x);
    for (const std::size_t i : order_) y = checkpointed_ ? checkpoint(*blocks_[i], y) : blocks_[i]->forward(y);
    return head_->forward(y);
  }

 private:
  bool checkpointed_;
  std::vector<std::size_t> order_;
  Linear& first_ = add_module<Linear>("first", kBlockWidth, kBlockWidth);
  std::vector<Module*> blocks_;
  Linear* head_ = nullptr;
};

Tensor input() { return random_tensor({3, 5, kBlockWidth}, DType::kFloat32, 1).to(device()); }

std::unique_ptr<Module> transformer() { return make_block(); }
std::unique_ptr<Module> norm_block() { return std::make_unique<NormBlock>(); }

/// Output and gradients of two passes, the second of which adds to the first's; `named`: within StepContexts.
std::vector<std::vector<double>> passes(BlockNet& net, bool named, std::optional<DType> autocast) {
  std::vector<std::vector<double>> all;
  for (std::uint64_t step = 1; step <= 2; ++step) {
    Tensor loss;
    {
      std::optional<StepContext> context;
      if (named) context.emplace(step, 7);
      std::optional<amp::Autocast> cast;
      if (autocast) cast.emplace(*autocast);
      const Tensor y = net.forward(input());
      all.push_back(values_of(y));
      loss = ops::mean(ops::mul(y, y));
    }
    loss.backward();
  }
  for (const Parameter& parameter : net.parameters()) all.push_back(values_of(parameter.tensor.grad()));
  for (const auto& [name, running] : net.statistics()) {
    running->commit();
    all.push_back(values_of(running->committed()));
  }
  return all;
}

TEST(Checkpoint, GradientsAreTheSameBits) {
  for (const auto make : {&transformer, &norm_block}) {
    for (const bool named : {true, false}) {
      for (const std::optional<DType> autocast : {std::optional<DType>(), {DType::kFloat16}, {DType::kBFloat16}}) {
        SCOPED_TRACE(std::string(named ? "named " : "counted ") +
                     (autocast ? std::string(name_of(*autocast)) : "float32"));
        // Weights outside an arena that are cast for two blocks add their gradients in 16 bits.
        const std::vector<std::size_t> order =
            autocast ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0, 1, 1};
        BlockNet plain(false, make, order), again(true, make, order);
        EXPECT_TRUE(passes(again, named, autocast) == passes(plain, named, autocast));
      }
    }
  }
}

/// Counts what batch norms ask other ranks for; there are none.
class Counts final : public ops::StatisticsReducer {
 public:
  Tensor gather(const Tensor& packed) override {
    ++gathers;
    return packed.reshaped({1, packed.numel()});
  }
  void sum(const Tensor&) override { ++sums; }
  int gathers = 0;
  int sums = 0;
};

/// A block within a block: both run again.
class Nested : public Module {
 public:
  Tensor forward(const Tensor& x) override { return checkpoint(inner_, norm_.forward(checkpoint(inner_, x))); }

 private:
  NormBlock& inner_ = add_module<NormBlock>("inner");
  BatchNorm& norm_ = add_module<BatchNorm>("norm", kBlockWidth);
};

TEST(Checkpoint, StatisticsAreExchangedOnceAndRunningOnesUpdatedOnce) {
  Counts plain_counts, again_counts;
  std::vector<std::vector<double>> results[2];
  for (const bool checkpointed : {false, true}) {
    BlockNet net(checkpointed, norm_block, {0, 1});
    net.for_each([&](const std::string&, Module& module) {
      auto* const norm = dynamic_cast<BatchNorm*>(&module);
      if (norm != nullptr) norm->synchronize(checkpointed ? &again_counts : &plain_counts);
    });
    results[checkpointed] = passes(net, true, std::nullopt);
  }
  EXPECT_TRUE(results[1] == results[0]);
  EXPECT_EQ(again_counts.gathers, 4) << "two blocks, two passes";
  EXPECT_EQ(again_counts.gathers, plain_counts.gathers);
  EXPECT_EQ(again_counts.sums, plain_counts.sums);
}

TEST(Checkpoint, BlocksWithinBlocksExchangeStatisticsOnce) {
  Counts counts;
  BlockNet net(true, [] { return std::make_unique<Nested>(); }, {0, 1});
  net.for_each([&](const std::string&, Module& module) {
    if (auto* const norm = dynamic_cast<BatchNorm*>(&module)) norm->synchronize(&counts);
  });
  BlockNet plain(false, [] { return std::make_unique<Nested>(); }, {0, 1});
  EXPECT_TRUE(passes(net, true, std::nullopt) == passes(plain, true, std::nullopt));
  EXPECT_EQ(counts.gathers, 2 * 2 * 3) << "two passes of two blocks with three calls of a batch norm";
}

/// The gradients in an arena, whose hooks tell when each is complete.
struct InArena {
  InArena(bool checkpointed, const ArenaOptions& options, DType wire)
      : net(checkpointed, transformer), arena(net, options) {
    arena.place_gradients(Tensor::zeros({arena.size()}, wire, device()).storage(), wire);
    for (const Parameter& parameter : net.parameters()) {
      autograd::meta_of(parameter.tensor).on_grad_ready = [this, name = parameter.name] { ready.push_back(name); };
    }
  }
  std::vector<double> grads() {
    const StepContext context(1, 0);
    std::optional<amp::Autocast> cast;
    if (arena.options().compute_dtype != DType::kFloat32) cast.emplace(arena.options().compute_dtype);
    Tensor loss = ops::mean(net.forward(input()));
    loss.backward();
    return values_of(arena.grads());
  }

  BlockNet net;
  Arena arena;
  std::vector<std::string> ready;
};

TEST(Checkpoint, WritesIntoAnArenaAsTheBlockWouldAndTellsItOnce) {
  for (const DType wire : {DType::kFloat32, DType::kFloat16}) {
    const ArenaOptions options{.compute_dtype = wire == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat16,
                               .device = device()};
    InArena plain(false, options, wire), again(true, options, wire);
    EXPECT_TRUE(again.grads() == plain.grads());
    EXPECT_EQ(again.ready.size(), again.net.parameters().size());
    EXPECT_THAT(again.ready, testing::UnorderedElementsAreArray(plain.ready));
    // The head's weight is complete at the very end, when the first layer has added to it.
    EXPECT_EQ(again.ready.back(), plain.ready.back());
  }
}

TEST(Checkpoint, RunsAgainWithinAGuardToo) {
  std::vector<std::vector<double>> found[2];
  for (const bool checkpointed : {false, true}) {
    BlockNet net(checkpointed, transformer, {0, 1});
    const StepContext context(1, 0);
    const amp::Autocast autocast(DType::kBFloat16);
    ops::mean(net.forward(input())).backward();
    for (const Parameter& parameter : net.parameters())
      found[checkpointed].push_back(values_of(parameter.tensor.grad()));
  }
  EXPECT_TRUE(found[0] == found[1]);
}

TEST(Checkpoint, TakesNoCastOfAWeightThatIsReadOutsideTheBlockToo) {
  Linear first(kBlockWidth, kBlockWidth, false);
  initialize(first, 1);
  first.to(device());
  Linear block(first.parameters().front(), false);
  const amp::Autocast autocast(DType::kBFloat16);
  const Tensor y = ops::sum(first.forward(checkpoint(block, first.forward(input()))));
  autograd::backward(y, {}, {.retain_graph = true});
  const std::vector<double> once = values_of(first.parameters()[0].tensor.grad());
  // Had the block taken the cast of the last layer, its own walk would have ended that of the graph.
  y.backward();
  const std::vector<double> twice = values_of(first.parameters()[0].tensor.grad());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 1e-3);
}

TEST(Checkpoint, GivesTheGradientsThatAreAskedForAlone) {
  BlockNet plain(false, transformer), again(true, transformer);
  std::vector<std::vector<std::vector<double>>> found;
  for (BlockNet* net : {&plain, &again}) {
    const StepContext context(1, 0);
    const Tensor x = input();
    x.set_requires_grad(true);
    const std::vector<Parameter> parameters = net->parameters();
    const Tensor y = ops::mean(net->forward(x));
    std::vector<std::vector<double>>& all = found.emplace_back();
    for (const Tensor& grad : autograd::grad(y, {x, parameters[0].tensor, parameters[6].tensor})) {
      all.push_back(values_of(grad));
    }
    for (const Parameter& parameter : parameters) EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(Checkpoint, WalksTwiceWhereTheGraphIsKept) {
  BlockNet again(true, transformer);
  const Tensor y = ops::mean(again.forward(input()));
  autograd::backward(y, {}, {.retain_graph = true});
  const std::vector<double> once = values_of(again.parameters()[0].tensor.grad());
  y.backward();
  const std::vector<double> twice = values_of(again.parameters()[0].tensor.grad());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 1e-5);
}

/// Counts its forward passes that are recorded, and those that are not.
class Counted : public Module {
 public:
  Tensor forward(const Tensor& x) override {
    ++(autograd::grad_enabled() ? recorded : unrecorded);
    return linear_.forward(x);
  }
  int recorded = 0;
  int unrecorded = 0;

 private:
  Linear& linear_ = add_module<Linear>("linear", kBlockWidth, kBlockWidth);
};

TEST(Checkpoint, RunsTheBlockAgainForGradientsAlone) {
  Counted block;
  initialize(block, 1);
  block.to(device());
  {
    const autograd::NoGrad no_grad;
    checkpoint(block, input());
    EXPECT_EQ(block.unrecorded, 1);
  }
  const Tensor y = checkpoint(block, input());
  EXPECT_EQ(block.unrecorded, 2);
  EXPECT_EQ(block.recorded, 0);
  ops::sum(y).backward();
  EXPECT_EQ(block.unrecorded, 2);
  EXPECT_EQ(block.recorded, 1);
  for (const Parameter& parameter : block.parameters()) parameter.tensor.set_requires_grad(false);
  EXPECT_FALSE(checkpoint(block, input()).requires_grad());
  EXPECT_EQ(block.recorded, 2);
}

TEST(Checkpoint, FrozenParametersGetNoGradient) {
  BlockNet plain(false, transformer), again(true, transformer);
  for (BlockNet* net : {&plain, &again}) {
    const std::vector<Parameter> parameters = net->parameters();
    for (std::size_t i = 0; i < parameters.size(); i += 2) parameters[i].tensor.set_requires_grad(false);
    const StepContext context(1, 0);
    ops::mean(net->forward(input())).backward();
  }
  const std::vector<Parameter> expected = plain.parameters(), found = again.parameters();
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].tensor.grad().defined(), i % 2 == 1) << found[i].name;
    if (i % 2 == 0) continue;
    EXPECT_EQ(values_of(found[i].tensor.grad()), values_of(expected[i].tensor.grad())) << found[i].name;
  }
}

TEST(Checkpoint, OfIntegers) {
  Embedding embedding(5, 4);
  initialize(embedding, 1);
  const Tensor tokens = Tensor::from<std::int64_t>({1, 3, 1}, {3});
  ops::sum(checkpoint(embedding, tokens)).backward();
  EXPECT_THAT(values_of(embedding.parameters()[0].tensor.grad()),
              testing::ElementsAre(0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0));
}

/// Multiplies by a tensor that is no parameter of it.
class Reader : public Module {
 public:
  explicit Reader(Tensor other) : other_(std::move(other)) {}
  Tensor forward(const Tensor& x) override { return ops::mul(linear_.forward(x), other_); }

 private:
  Tensor other_;
  Linear& linear_ = add_module<Linear>("linear", kBlockWidth, kBlockWidth);
};

TEST(Checkpoint, RefusesABlockThatReadsMoreThanItsInput) {
  const Tensor leaf = random_tensor({kBlockWidth}, DType::kFloat32, 2);
  leaf.set_requires_grad(true);
  for (const Tensor& other : {leaf, ops::tanh(leaf)}) {
    Reader block(other);
    initialize(block, 1);
    const Tensor y = ops::sum(checkpoint(block, random_tensor({2, kBlockWidth}, DType::kFloat32, 1)));
    EXPECT_THAT([&] { y.backward(); }, ThrowsMessage<UsageError>(HasSubstr("runs again in the backward pass reads")));
  }
}

TEST(Checkpoint, RefusesAParameterThatWasWrittenSince) {
  Counted block;
  initialize(block, 1);
  block.to(device());
  const Tensor y = ops::sum(checkpoint(block, input()));
  block.parameters()[0].tensor.bump_version();
  EXPECT_THAT([&] { y.backward(); }, ThrowsMessage<UsageError>(HasSubstr("linear.weight")));
}

TEST(Checkpoint, HasNoSecondDerivative) {
  BlockNet again(true, transformer);
  const Tensor x = input();
  x.set_requires_grad(true);
  const std::vector<Tensor> first = autograd::grad(ops::mean(again.forward(x)), {x}, {}, {.create_graph = true});
  EXPECT_THAT([&] { ops::sum(first[0]).backward(); }, ThrowsMessage<UsageError>(HasSubstr("checkpoint")));
}

TEST(Checkpoint, KeepsOneBlocksActivationsAtATime) {
  std::size_t kept[2];
  for (const bool checkpointed : {false, true}) {
    BlockNet net(checkpointed, transformer);
    const Tensor x = random_tensor({16, 32, kBlockWidth}, DType::kFloat32, 1).to(device());
    const std::size_t before = memory_statistics(device()).allocated;
    const Tensor y = net.forward(x);
    kept[checkpointed] = memory_statistics(device()).allocated - before;
  }
  EXPECT_LT(kept[1] * 3, kept[0]);
}

}  // namespace
}  // namespace lockstep::nn
