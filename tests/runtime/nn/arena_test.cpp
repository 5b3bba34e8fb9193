// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/arena.h"

#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/autograd/tensor_hooks.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::nn {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::Each;
using ::testing::ElementsAre;

ArenaOptions on_device() { return {.device = device()}; }

/// Linear, batch norm, linear, with odd sizes, on the device even without an arena.
struct Net {
  Net() {
    net.add<Linear>("first", 3, 5);
    net.add<BatchNorm>("norm", 5);
    net.add<Linear>("last", 5, 7);
    initialize(net, 11);
    for (const Parameter& parameter : net.parameters()) {
      const Storage there = Storage::allocate(parameter.tensor.bytes(), device());
      Tensor::view(there, 0, parameter.tensor.shape(), DType::kFloat32).copy_from(parameter.tensor.detach());
      parameter.tensor.rebind(there, 0, DType::kFloat32);
    }
    for (const auto& [name, statistics] : net.statistics()) statistics->move_to(device());
  }

  Tensor parameter(std::size_t i) const { return net.parameters()[i].tensor; }
  Tensor loss() { return ops::sum(ops::scale(net.forward(x), 3)); }

  Sequential net;
  const Tensor x = random_tensor({4, 3}, DType::kFloat32, 1).to(device());
};

std::vector<std::vector<double>> values_of_all(const Module& module) {
  std::vector<std::vector<double>> all;
  for (const Parameter& parameter : module.parameters()) all.push_back(values_of(parameter.tensor));
  return all;
}

std::vector<double> rounded(const std::vector<double>& values, DType dtype) {
  const Tensor exact = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  return values_of(ops::cast(exact, dtype));
}

bool is_inside(const Tensor& part, const Tensor& whole) {
  const auto* begin = static_cast<const std::byte*>(whole.data());
  const auto* at = static_cast<const std::byte*>(part.data());
  return at >= begin && at + part.bytes() <= begin + whole.bytes();
}

/// Bytes of the device that are in use once all its work is done.
std::size_t allocated() {
  Stream::current(device()).synchronize();
  return memory_statistics(device()).allocated;
}

TEST(Arena, KeepsTheValuesAndBecomesTheirMemory) {
  Net model;
  const auto before = values_of_all(model.net);
  const Arena arena(model.net, on_device());
  EXPECT_EQ(values_of_all(model.net), before);
  for (const Parameter& parameter : model.net.parameters()) {
    EXPECT_TRUE(is_inside(parameter.tensor, arena.masters())) << parameter.name;
    EXPECT_EQ(parameter.tensor.dtype(), DType::kFloat32);
    EXPECT_TRUE(parameter.tensor.requires_grad());
  }
  EXPECT_FALSE(arena.copies().defined());
}

TEST(Arena, HoldsTheParametersBackToFrontWithoutOverlap) {
  Net model;
  const Arena arena(model.net, on_device());
  std::vector<std::string> names;
  std::int64_t end = 0;
  for (const Arena::Slot& slot : arena.slots()) {
    names.push_back(slot.parameter.name);
    EXPECT_GE(slot.begin, end);
    EXPECT_EQ(slot.end - slot.begin, slot.parameter.tensor.numel());
    EXPECT_TRUE(arena.master(slot).aliases(slot.parameter.tensor));
    end = slot.end;
  }
  EXPECT_GE(arena.size(), end);
  EXPECT_THAT(names, ElementsAre("last.bias", "last.weight", "norm.bias", "norm.weight", "first.bias", "first.weight"));
}

TEST(Arena, AlignsEverySlotInEveryDtypeAndKeepsThePaddingZero) {
  Net model;
  const Arena arena(model.net, {.compute_dtype = DType::kFloat16, .device = device()});
  model.loss().backward();
  std::vector<bool> used(static_cast<std::size_t>(arena.size()));
  for (const Arena::Slot& slot : arena.slots()) {
    for (const Tensor& flat : {arena.masters(), arena.copies(), arena.grads()}) {
      EXPECT_EQ(slot.begin * static_cast<std::int64_t>(size_of(flat.dtype())) % 256, 0);
    }
    std::fill(used.begin() + slot.begin, used.begin() + slot.end, true);
  }
  for (const Tensor& flat : {arena.masters(), arena.copies(), arena.grads()}) {
    const std::vector<double> values = values_of(flat);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(used[i] || values[i] == 0) << i;
  }
}

TEST(Arena, ReceivesTheGradientsInPlace) {
  Net model, plain;
  const Arena arena(model.net, on_device());
  model.loss().backward();
  plain.loss().backward();
  for (std::size_t i = 0; i < model.net.parameters().size(); ++i) {
    EXPECT_TRUE(is_inside(model.parameter(i).grad(), arena.grads()));
    EXPECT_EQ(model.parameter(i).grad().shape(), model.parameter(i).shape());
    EXPECT_EQ(values_of(model.parameter(i).grad()), values_of(plain.parameter(i).grad()));
  }
}

TEST(Arena, TakesNoParameterWithAHookAndKnowsOneThatIsGone) {
  Net model, plain;
  const autograd::GradientHook doubled = [](const Tensor& grad) { return ops::scale(grad, 2); };
  HookHandle handle = autograd::register_hook(model.parameter(0), doubled);
  EXPECT_THROW(Arena(model.net, on_device()), UsageError);
  handle.remove();
  const Arena arena(model.net, on_device());
  EXPECT_THROW(autograd::register_hook(model.parameter(0), doubled), UsageError);
  // Twice: the second time what is there is added to.
  for (int pass = 0; pass < 2; ++pass) {
    model.loss().backward();
    plain.loss().backward();
  }
  EXPECT_EQ(values_of(model.parameter(0).grad()), values_of(plain.parameter(0).grad()));
}

TEST(Arena, NeedsNoMemoryForTheGradientsOfABackwardPass) {
  Net model;
  const Arena arena(model.net, on_device());
  model.loss().backward();
  const std::size_t before = allocated();
  // Fixed statistics: batch norm in training would leave pending ones.
  model.net.train(false);
  model.loss().backward();
  EXPECT_EQ(allocated(), before);
}

TEST(Arena, AccumulatesUntilZeroGrad) {
  Net model;
  Arena arena(model.net, on_device());
  model.net.train(false);
  const auto gradients = [&model] {
    std::vector<double> all;
    for (const Parameter& parameter : model.net.parameters()) {
      const std::vector<double> one = values_of(parameter.tensor.grad());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  model.loss().backward();
  const std::vector<double> once = gradients();
  model.loss().backward();
  model.loss().backward();
  std::vector<double> thrice = once;
  for (double& value : thrice) value *= 3;
  expect_close(gradients(), thrice, {.relative = 1e-6});
  arena.zero_grad();
  EXPECT_FALSE(model.parameter(0).grad().defined());
  model.loss().backward();
  EXPECT_EQ(gradients(), once);
}

TEST(Arena, ZeroMissingGradsFillsOnlyWhatNobodyWrote) {
  Net model;
  const Arena arena(model.net, on_device());
  kernels::fill(arena.grads(), 7.0);  // left over from an earlier step
  ops::sum(model.parameter(1)).backward();
  arena.zero_missing_grads();
  EXPECT_THAT(values_of(model.parameter(1).grad()), Each(1));
  for (const Arena::Slot& slot : arena.slots()) {
    if (slot.parameter.tensor.is(model.parameter(1))) continue;
    EXPECT_THAT(values_of(arena.grads().rows(slot.begin, slot.end)), Each(0));
    EXPECT_FALSE(slot.parameter.tensor.grad().defined()) << "zeros for the sums, not a gradient";
  }
}

TEST(Arena, WidensGradientsThatAreThereAndThoseToCome) {
  Net model;
  Arena arena(model.net, on_device());
  arena.place_gradients(Tensor::zeros({arena.size()}, DType::kFloat16, device()).storage(), DType::kFloat16);
  const std::size_t before = allocated();
  ops::sum(model.parameter(1)).backward();
  EXPECT_EQ(model.parameter(1).grad().dtype(), DType::kFloat16);
  EXPECT_EQ(allocated(), before) << "nothing more until somebody needs it";
  arena.widen();
  EXPECT_EQ(arena.grads().dtype(), DType::kFloat32);
  EXPECT_EQ(allocated() - before,
            gradient_bytes(arena.size(), DType::kFloat16, true) - gradient_bytes(arena.size(), DType::kFloat16, false));
  EXPECT_THAT(values_of(model.parameter(1).grad()), Each(1));
  ops::sum(ops::scale(model.parameter(1), 0x1p-20)).backward();
  EXPECT_THAT(values_of(model.parameter(1).grad()), Each(1 + 0x1p-20));
  EXPECT_TRUE(is_inside(model.parameter(1).grad(), arena.float32_grads()));
  arena.zero_grad();
  EXPECT_TRUE(arena.grads().is(arena.wire()));
  ops::sum(model.parameter(1)).backward();
  EXPECT_EQ(model.parameter(1).grad().dtype(), DType::kFloat16);
}

TEST(Arena, HasNoSecondGradientsBesideAFloat32Wire) {
  Net model;
  Arena arena(model.net, on_device());
  EXPECT_TRUE(arena.float32_grads().is(arena.wire()));
  EXPECT_EQ(gradient_bytes(arena.size(), DType::kFloat32, true), arena.wire().bytes());
}

TEST(Arena, PlacesTheGradientsElsewhereInTheDtypeOfTheWire) {
  for (const DType wire : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    Net model, plain;
    Arena arena(model.net, on_device());
    const Storage storage = Tensor::zeros({arena.size()}, wire, device()).storage();
    arena.place_gradients(storage, wire);
    EXPECT_EQ(arena.grads().data(), storage.data());
    model.loss().backward();
    plain.loss().backward();
    for (std::size_t i = 0; i < model.net.parameters().size(); ++i) {
      EXPECT_EQ(model.parameter(i).grad().dtype(), wire);
      EXPECT_TRUE(is_inside(model.parameter(i).grad(), arena.grads()));
      expect_close(model.parameter(i).grad(), plain.parameter(i).grad(), kernels::testing::bounds_for(wire, 4, 3));
    }
  }
}

TEST(Arena, KeepsComputeCopiesOfTheMasters) {
  Net model;
  const auto before = values_of_all(model.net);
  const Arena arena(model.net, {.compute_dtype = DType::kBFloat16, .device = device()});
  EXPECT_EQ(values_of_all(model.net), before) << "the masters keep every bit";
  EXPECT_EQ(values_of(arena.copies()), rounded(values_of(arena.masters()), DType::kBFloat16));
  const std::uint64_t version = model.parameter(0).version();
  kernels::fill(arena.masters(), 1.5);
  arena.refresh_copies();
  EXPECT_THAT(values_of(arena.copies()), Each(1.5));
  EXPECT_GT(model.parameter(0).version(), version) << "whoever cached a cast must notice";
}

TEST(Arena, O2RebindsTheParametersToTheCopiesButKeepsNormsInFloat32) {
  Net model;
  const auto before = values_of_all(model.net);
  const Arena arena(model.net, {.compute_dtype = DType::kFloat16, .reduced_parameters = true, .device = device()});
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Parameter parameter = model.net.parameters()[i];
    const bool norm = parameter.kind == ParameterKind::kNorm;
    EXPECT_EQ(parameter.tensor.dtype(), norm ? DType::kFloat32 : DType::kFloat16) << parameter.name;
    EXPECT_TRUE(is_inside(parameter.tensor, norm ? arena.masters() : arena.copies())) << parameter.name;
    EXPECT_EQ(values_of(parameter.tensor), norm ? before[i] : rounded(before[i], DType::kFloat16));
    EXPECT_EQ(values_of(arena.master(arena.slots()[before.size() - 1 - i])), before[i]) << "full masters";
  }
  ops::sum(model.net.forward(ops::cast(model.x, DType::kFloat16))).backward();
  for (const Parameter& parameter : model.net.parameters()) {
    EXPECT_TRUE(is_inside(parameter.tensor.grad(), arena.grads())) << parameter.name;
  }
}

TEST(Arena, O3HasNothingBehindSixteenBits) {
  Net model;
  const auto before = values_of_all(model.net);
  const Arena arena(model.net, {.compute_dtype = DType::kFloat16,
                                .reduced_parameters = true,
                                .keep_norm_float32 = false,
                                .master_weights = false,
                                .device = device()});
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(model.parameter(i).dtype(), DType::kFloat16);
    EXPECT_EQ(values_of(model.parameter(i)), rounded(before[i], DType::kFloat16));
  }
  EXPECT_EQ(values_of(arena.masters()), values_of(arena.copies()));
  ops::sum(model.net.forward(ops::cast(model.x, DType::kFloat16))).backward();
  for (const Parameter& parameter : model.net.parameters()) EXPECT_TRUE(parameter.tensor.grad().defined());
}

TEST(Arena, LeavesAGradientThatIsStillHeldToItsHolders) {
  Net model;
  Arena arena(model.net, on_device());
  model.loss().backward();
  const Tensor first = model.parameter(0).grad();
  EXPECT_TRUE(first.is(model.parameter(0).grad()));
  const std::vector<double> before = values_of(first);
  arena.zero_grad();
  EXPECT_EQ(values_of(first), before);
  EXPECT_FALSE(model.parameter(0).grad().defined());
  ops::scale(model.loss(), 2).backward();
  const Tensor second = model.parameter(0).grad();
  EXPECT_EQ(values_of(first), before);
  EXPECT_NE(values_of(second), before);
  EXPECT_FALSE(first.aliases(second));
  EXPECT_TRUE(is_inside(second, arena.grads()));
}

TEST(Arena, TellsAGraphThatNeedsAGradientThatItIsGone) {
  Net model;
  Arena arena(model.net, on_device());
  model.loss().backward();
  const Tensor w = ops::zeros_like(model.parameter(0));
  w.set_requires_grad(true);
  const Tensor y = ops::sum(ops::mul(w, model.parameter(0).grad()));
  arena.zero_grad();
  EXPECT_THROW(y.backward(), UsageError);
}

TEST(Arena, TellsAGraphThatNeedsAGradientThatAnotherIsAddedToIt) {
  Net model;
  Arena arena(model.net, on_device());
  model.loss().backward();
  const Tensor w = ops::zeros_like(model.parameter(0));
  w.set_requires_grad(true);
  const Tensor y = ops::sum(ops::mul(w, model.parameter(0).grad()));
  model.loss().backward();
  EXPECT_THROW(y.backward(), UsageError);
}

TEST(Arena, AddsAGradientThatIsHandedToTheNextPass) {
  Net model;
  Arena arena(model.net, on_device());
  model.loss().backward();
  const std::vector<double> once = values_of(model.parameter(0).grad());
  const Tensor& weight = model.parameter(0);
  autograd::backward(weight, weight.grad());
  const auto expect_times = [&](double factor) {
    const std::vector<double> now = values_of(weight.grad());
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(now[i], factor * once[i]) << i;
  };
  expect_times(2);
  // Through an operation that hands gradients on as they are.
  autograd::backward(weight.reshaped({weight.numel()}), weight.grad().detach({weight.numel()}));
  expect_times(4);
}

TEST(Arena, CopiesNoGradientThatNobodyHolds) {
  Net model;
  Arena arena(model.net, on_device());
  model.loss().backward();
  static_cast<void>(model.parameter(0).grad().item());
  const std::size_t before = allocated();
  arena.zero_grad();
  EXPECT_EQ(allocated(), before);
}

TEST(Arena, HasAHeldGradientFollowItToFloat32) {
  Net model;
  Arena arena(model.net, on_device());
  arena.place_gradients(Tensor::zeros({arena.size()}, DType::kFloat16, device()).storage(), DType::kFloat16);
  model.loss().backward();
  const Tensor held = model.parameter(0).grad();
  EXPECT_EQ(held.dtype(), DType::kFloat16);
  const std::vector<double> before = values_of(held);
  arena.widen();
  EXPECT_EQ(held.dtype(), DType::kFloat32);
  EXPECT_EQ(values_of(held), before);
  EXPECT_TRUE(is_inside(held, arena.float32_grads()));
  const std::uint64_t version = held.version();
  model.loss().backward();
  EXPECT_TRUE(held.is(model.parameter(0).grad()));
  EXPECT_NE(values_of(held), before);
  model.parameter(0).grad().bump_version();
  EXPECT_GT(held.version(), version);
}

TEST(Arena, GradLeavesItAlone) {
  Net model;
  const Arena arena(model.net, on_device());
  const std::vector<Tensor> grads = autograd::grad(model.loss(), {model.parameter(0)});
  EXPECT_FALSE(is_inside(grads[0], arena.grads()));
  EXPECT_FALSE(model.parameter(0).grad().defined());
  EXPECT_THAT(values_of(arena.grads()), Each(0));
}

TEST(Arena, OfAModelWithoutParametersIsAnError) {
  Sequential empty;
  empty.add<Flatten>("flatten");
  EXPECT_THROW(Arena(empty, {}), UsageError);
}

}  // namespace
}  // namespace lockstep::nn
