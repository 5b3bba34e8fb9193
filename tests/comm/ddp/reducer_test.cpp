// SPDX-License-Identifier: Apache-2.0
// What the reducer asks of a communicator, and when.
#include "comm/ddp/reducer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Rank 1 of 2 whose peer always has the same gradients.
class Spy : public Communicator {
 public:
  struct Call {
    Tensor buffer;
    ReduceOp op;
    float premultiply;
  };

  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::string description() const override { return "spy"; }
  Storage allocate(std::size_t bytes) override { return Storage::allocate(bytes, kCpu); }
  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    calls.push_back({buffer, op, premultiply});
    const double factor = static_cast<double>(premultiply) * (op == ReduceOp::kSum ? 2.0 : 1.0);
    stream.enqueue([buffer, factor] { kernels::scale(buffer, factor, nullptr, buffer); });
  }
  void broadcast(const Tensor&, int, const Stream&) override {}
  void all_gather(const Tensor&, const Tensor&, const Stream&) override {}
  void reduce_scatter(const Tensor&, const Tensor&, ReduceOp, const Stream&) override {}
  void barrier(const Stream&) override {}
  std::shared_ptr<Communicator> duplicate(const std::string& name) override {
    if (name == lost_at) throw PeerError("rank 0 is gone", "");
    return {std::shared_ptr<void>(), this};
  }
  std::shared_ptr<Communicator> split(int, int, const std::string&) override { return nullptr; }

  std::vector<Call> calls;
  std::string lost_at;  ///< a channel's name
};

/// An operation of two inputs whose backward has no gradient for the second.
Tensor drop(const Tensor& x, const Tensor& unused) {
  const Tensor y = x.detach();
  autograd::record(y, "drop", {x, unused}, {.fused = [](const Tensor& grad, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{grad, {}};
                   }});
  return y;
}

Tensor fail(const Tensor& x) {
  const Tensor y = x.detach();
  autograd::record(y, "fail", {x},
                   {.fused = [](const Tensor&, const autograd::BackwardContext&) -> std::vector<Tensor> {
                     throw std::runtime_error("out of coffee");
                   }});
  return y;
}

/// Three layers with something done between them.
class Net : public nn::Module {
 public:
  Tensor forward(const Tensor& x) override { return last_.forward(between(middle_.forward(first_.forward(x)))); }
  /// Leaves the middle layer out.
  Tensor forward_around(const Tensor& x) { return last_.forward(first_.forward(x)); }
  Tensor forward_dropping(const Tensor& x) {
    return last_.forward(drop(first_.forward(x), ops::add(middle_.forward(x), middle_.forward(x))));
  }

  std::function<Tensor(const Tensor&)> between = [](const Tensor& x) { return x; };

 private:
  nn::Linear& first_ = add_module<nn::Linear>("first", 4, 4);
  nn::Linear& middle_ = add_module<nn::Linear>("middle", 4, 4, false);
  nn::Linear& last_ = add_module<nn::Linear>("last", 4, 3);
};

class ReducerCalls : public testing::Test {
 protected:
  ReducerCalls() {
    nn::initialize(net_, 3);
    arena_ = std::make_shared<nn::Arena>(net_, nn::ArenaOptions{});
  }

  void make_reducer() { reducer_.emplace(arena_, spy_, options_); }

  static Tensor input() { return Tensor::from<float>({1, -2, 3, 0.5f, 2, 1, -1, 4}, {2, 4}); }
  static void backward(const Tensor& output) {
    ops::cross_entropy(output, Tensor::from<std::int64_t>({2, 0}, {2})).backward();
  }
  void backward() { backward(net_.forward(input())); }
  std::vector<float> grads() const { return {arena_->grads().as<float>().begin(), arena_->grads().as<float>().end()}; }
  /// Gradients that no reducer touched.
  std::vector<float> local_grads() {
    arena_->zero_grad();
    backward();
    std::vector<float> local = grads();
    arena_->zero_grad();
    return local;
  }
  std::string usage_error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  Net net_;
  std::shared_ptr<nn::Arena> arena_;
  std::shared_ptr<Spy> spy_ = std::make_shared<Spy>();
  DdpOptions options_{.bucket_mb = 1e-5, .first_bucket_mb = 1e-5};  ///< a bucket for every parameter
  std::optional<Reducer> reducer_;
};

TEST_F(ReducerCalls, ReduceEachBucketInPlaceAndInOrder) {
  make_reducer();
  const float* const memory = arena_->grads().as<float>().data();
  backward();
  ASSERT_EQ(spy_->calls.size(), arena_->slots().size());
  for (std::size_t b = 0; b < spy_->calls.size(); ++b) {
    const Bucket& bucket = reducer_->buckets()[b];
    EXPECT_EQ(spy_->calls[b].buffer.data(), memory + bucket.begin);
    EXPECT_EQ(spy_->calls[b].buffer.numel(), bucket.end - bucket.begin);
    const nn::Arena::Slot& slot = arena_->slots()[b];
    EXPECT_EQ(slot.parameter.tensor.grad().data(), memory + slot.begin);
  }
}

TEST_F(ReducerCalls, LeaveTheParametersAloneWhereARankIsLostAtTheStart) {
  const std::vector<float> local = local_grads();
  spy_->lost_at = "buckets";
  EXPECT_THROW(make_reducer(), PeerError);
  backward();
  EXPECT_EQ(grads(), local);
}

TEST_F(ReducerCalls, StartWhileBackwardGoesOn) {
  make_reducer();
  std::vector<std::size_t> calls_before;
  std::vector<std::size_t> slots;
  reducer_->set_on_gradient([&](std::size_t slot) {
    slots.push_back(slot);
    calls_before.push_back(spy_->calls.size());
  });
  backward();
  // A layer's weight is there before its bias, the bias before it in the arena: the two leave together.
  EXPECT_THAT(slots, ElementsAre(1, 0, 2, 4, 3));
  EXPECT_THAT(calls_before, ElementsAre(0, 0, 2, 3, 3));
}

TEST_F(ReducerCalls, WaitForTheEndOfBackwardWhereTheJobSaysSo) {
  options_.delay_reduction = true;
  make_reducer();
  std::size_t calls_in_backward = 0;
  reducer_->set_on_gradient([&](std::size_t) { calls_in_backward = spy_->calls.size(); });
  backward();
  EXPECT_EQ(calls_in_backward, 0u);
  EXPECT_EQ(spy_->calls.size(), arena_->slots().size());
}

TEST_F(ReducerCalls, EndABucketWithEachNamedParameter) {
  options_.bucket_ends = {"middle.weight"};
  make_reducer();
  std::vector<std::vector<std::string>> names;
  for (const Bucket& bucket : reducer_->buckets()) {
    names.emplace_back();
    for (int i = bucket.first_slot; i < bucket.last_slot; ++i) {
      names.back().push_back(arena_->slots()[static_cast<std::size_t>(i)].parameter.name);
    }
  }
  EXPECT_THAT(names, ElementsAre(ElementsAre("last.bias", "last.weight", "middle.weight"),
                                 ElementsAre("first.bias", "first.weight")));
}

TEST_F(ReducerCalls, WidenSixteenBitGradientsOnlyWhileTheyAreReduced) {
  arena_->place_gradients(Tensor::zeros({arena_->size()}, DType::kFloat16).storage(), DType::kFloat16);
  const auto reduced = [this](bool in_float32) {
    options_.reduce_in_float32 = in_float32;
    spy_->calls.clear();
    make_reducer();
    arena_->zero_grad();
    backward();
    for (const Spy::Call& call : spy_->calls) {
      EXPECT_EQ(call.buffer.dtype(), in_float32 ? DType::kFloat32 : DType::kFloat16);
    }
    EXPECT_EQ(arena_->grads().dtype(), DType::kFloat16);
    return kernels::testing::values_of(arena_->grads());
  };
  EXPECT_EQ(reduced(true), reduced(false));
}

TEST_F(ReducerCalls, LeaveGradientsAloneWhileAccumulating) {
  const std::vector<float> local = local_grads();
  make_reducer();
  reducer_->set_enabled(false);
  backward();
  EXPECT_EQ(grads(), local);
  backward();
  EXPECT_EQ(spy_->calls.size(), 0u);
  reducer_->set_enabled(true);
  backward();
  EXPECT_EQ(spy_->calls.size(), arena_->slots().size());
  for (std::size_t i = 0; i < local.size(); ++i) EXPECT_FLOAT_EQ(grads()[i], 3 * local[i]);
}

TEST_F(ReducerCalls, DivideAsTheJobAsks) {
  const std::vector<float> local = local_grads();
  struct Way {
    bool average;
    double predivide;
    ReduceOp op;
    float premultiply, factor;
  };
  for (const Way& way : {Way{true, 1, ReduceOp::kAverage, 1, 1}, Way{false, 1, ReduceOp::kSum, 1, 2},
                         Way{true, 4, ReduceOp::kSum, 0.25f, 1}, Way{false, 4, ReduceOp::kSum, 0.25f, 2}}) {
    options_.gradient_average = way.average;
    options_.gradient_predivide_factor = way.predivide;
    spy_->calls.clear();
    make_reducer();
    arena_->zero_grad();
    backward();
    for (const Spy::Call& call : spy_->calls) {
      EXPECT_EQ(call.op, way.op);
      EXPECT_EQ(call.premultiply, way.premultiply);
    }
    for (std::size_t i = 0; i < local.size(); ++i) EXPECT_EQ(grads()[i], way.factor * local[i]);
  }
}

TEST_F(ReducerCalls, NameTheParameterThatGotNoGradient) {
  make_reducer();
  const std::string message = usage_error_of([this] { backward(net_.forward_around(input())); });
  EXPECT_THAT(message, HasSubstr("no gradient arrived at middle.weight on rank 1"));
  arena_->zero_grad();
  EXPECT_EQ(usage_error_of([this] { backward(); }), "");
}

TEST_F(ReducerCalls, NameTheParameterWhoseBranchNoGradientReached) {
  make_reducer();
  const std::string message = usage_error_of([this] { backward(net_.forward_dropping(input())); });
  EXPECT_THAT(message, HasSubstr("no gradient arrived at middle.weight on rank 1"));
}

TEST_F(ReducerCalls, TakeAnUnusedParameterForZeroWhereTheJobSaysSo) {
  options_.find_unused = true;
  make_reducer();
  for (const bool dropping : {false, true}) {
    arena_->zero_grad();
    kernels::fill(arena_->grads(), 7.0);
    backward(dropping ? net_.forward_dropping(input()) : net_.forward_around(input()));
    const auto& slot =
        *std::ranges::find(arena_->slots(), "middle.weight", [](const auto& at) { return at.parameter.name; });
    EXPECT_THAT(arena_->grads().rows(slot.begin, slot.end).as<float>(), Each(0.0f));
    // And once which parameters any rank has a gradient of.
    ASSERT_EQ(spy_->calls.size(), arena_->slots().size() + 1);
    EXPECT_EQ(spy_->calls.back().op, ReduceOp::kMax);
    EXPECT_THAT(arena_->has_gradient().as<float>(), ElementsAre(1, 1, 0, 1, 1));
    // Another rank may have one: an optimizer of this parameter alone steps there, so that it steps here.
    EXPECT_TRUE(arena_->has_new_gradient(2));
    arena_->use_gradient(2);
    EXPECT_FALSE(arena_->has_new_gradient(2));
    spy_->calls.clear();
  }
}

TEST_F(ReducerCalls, TakeTheGradientOfAnEarlierMicroBatch) {
  make_reducer();
  reducer_->set_enabled(false);
  backward();
  reducer_->set_enabled(true);
  EXPECT_EQ(usage_error_of([this] { backward(net_.forward_around(input())); }), "");
  EXPECT_EQ(spy_->calls.size(), arena_->slots().size());
}

TEST_F(ReducerCalls, StartAnewAfterAPassThatFailed) {
  const std::vector<float> local = local_grads();
  make_reducer();
  net_.between = fail;
  EXPECT_THROW(backward(), std::runtime_error);
  EXPECT_LT(spy_->calls.size(), arena_->slots().size());
  net_.between = [](const Tensor& x) { return x; };
  spy_->calls.clear();
  arena_->zero_grad();
  backward();
  EXPECT_EQ(spy_->calls.size(), arena_->slots().size());
  EXPECT_EQ(grads(), local);
}

TEST_F(ReducerCalls, FlagTheParameterWhoseOwnGradientIsBad) {
  make_reducer();
  for (std::size_t bad = 0; bad < arena_->slots().size(); ++bad) {
    arena_->zero_grad();
    reducer_->set_on_gradient([&](std::size_t slot) {
      const std::int64_t at = arena_->slots()[slot].begin;
      if (slot == bad) kernels::fill(arena_->grads().rows(at, at + 1), 1e300);  // inf in float32
    });
    backward();
    for (std::size_t slot = 0; slot < arena_->slots().size(); ++slot) {
      EXPECT_EQ(arena_->local_flags().as<float>()[slot], slot == bad ? 1.0f : 0.0f);
    }
  }
}

TEST_F(ReducerCalls, EndWithTheReducer) {
  make_reducer();
  reducer_.reset();
  backward();
  EXPECT_EQ(spy_->calls.size(), 0u);
}

}  // namespace
}  // namespace lockstep::comm
