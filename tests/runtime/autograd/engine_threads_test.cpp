// SPDX-License-Identifier: Apache-2.0
// Backward passes on several threads that end in the same leaves. Run under ThreadSanitizer as well (preset tsan).
#include <gmock/gmock.h>

#include <barrier>
#include <thread>

#include "runtime/autograd/engine.h"
#include "runtime/kernels/assign.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::Each;
using testing::give_slot;
using testing::values_of;

constexpr std::ptrdiff_t kThreads = 4;
constexpr int kPasses = 60;

/// Runs `pass` kPasses times on each of kThreads threads, all at once.
void run_at_once(const std::function<void()>& pass) {
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (std::ptrdiff_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kPasses; ++n) {
        start.arrive_and_wait();
        pass();
      }
    });
  }
}

Tensor parameter(const Shape& shape) {
  const Tensor tensor = Tensor::zeros(shape, DType::kFloat32);
  tensor.set_requires_grad(true);
  return tensor;
}

/// Small integers, so that every order of additions gives one sum.
constexpr float kSum = static_cast<float>(kThreads * kPasses);

TEST(BackwardOnThreads, LosesNoGradientOfALeaf) {
  const Tensor w = parameter({256});
  run_at_once([&] { ops::sum(w).backward(); });
  EXPECT_THAT(values_of(w.grad()), Each(kSum));
}

TEST(BackwardOnThreads, LosesNoGradientThatOperationsWriteIntoAnArena) {
  const Tensor w = parameter({16, 8}), bias = parameter({16});
  give_slot(w), give_slot(bias);
  const Tensor x = Tensor::zeros({4, 8}, DType::kFloat32);
  kernels::fill(x, 1);
  run_at_once([&] { ops::sum(ops::linear(x, w, bias)).backward(); });
  EXPECT_THAT(values_of(w.grad()), Each(4 * kSum));
  EXPECT_THAT(values_of(bias.grad()), Each(4 * kSum));
}

TEST(BackwardOnThreads, LosesNoGradientOfOperationsThatTakeTheirParametersInAnotherOrder) {
  const Tensor a = parameter({8, 8}), b = parameter({8, 8});
  kernels::fill(a, 1);
  kernels::fill(b, 1);
  give_slot(a), give_slot(b);
  std::atomic<int> number = 0;
  run_at_once([&] {
    const bool first = number.fetch_add(1) % 2 == 0;
    ops::sum(first ? ops::matmul(a, b) : ops::matmul(b, a)).backward();
  });
  EXPECT_THAT(values_of(a.grad()), Each(8 * kSum));
  EXPECT_THAT(values_of(b.grad()), Each(8 * kSum));
}

TEST(BackwardOnThreads, IsRefusedWhereTheHooksOfItsLeavesFollowOnePass) {
  const Tensor other = parameter({4}), w = parameter({4});
  meta_of(other).pass_guard = meta_of(w).pass_guard = std::make_shared<PassGuard>();
  meta_of(w).name = "dense.weight";
  // The other thread's pass is tried in the midst of this one's.
  std::string refused;
  const Tensor y = testing::probe(other, [&] {
    std::jthread([&] {
      try {
        ops::sum(w).backward();
      } catch (const UsageError& error) {
        refused = error.what();
      }
    });
  });
  ops::sum(y).backward();
  EXPECT_THAT(refused, ::testing::HasSubstr("a backward pass into dense.weight on one thread while another"));
  EXPECT_THAT(values_of(other.grad()), Each(1));
  ops::sum(w).backward();  // the pass that was refused has left nothing behind
  EXPECT_THAT(values_of(w.grad()), Each(1));
}

}  // namespace
}  // namespace lockstep::autograd
