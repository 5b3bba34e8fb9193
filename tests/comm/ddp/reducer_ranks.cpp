// SPDX-License-Identifier: Apache-2.0
// Buckets between ranks that are not equally fast, do not hold the same samples, or do not use the same parameters.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <utility>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

const MlpOptions kReducerModel{.hidden = {24, 16, 8}};
constexpr DdpOptions kTinyBuckets{.bucket_mb = 1e-6, .first_bucket_mb = 1e-6};
constexpr std::int64_t kReducerSamples = 9;

Learner::Part my_part() { return part_of(kReducerSamples, 1, world().rank(), world().size(), Shares::kGrowing); }

/// Gradients of one step under these settings; `before` sees the learner first.
std::vector<float> gradients(
    const DdpOptions& ddp, const std::function<void(Learner&)>& before = [](Learner&) {}) {
  Learner learner({.model = kReducerModel, .ddp = ddp}, 4, 1);
  learner.join();
  before(learner);
  learner.backward(make_samples(kReducerSamples, 4, 1, 1), my_part(), 1);
  return floats_of(learner.arena().grads());
}

/// NCCL's order of the ranks depends on where an element lies in the message, and rounding shows it from three on.
void expect_same(const std::vector<float>& found, const std::vector<float>& expected) {
  if (rank_device() == kCpu || world().size() < 3) {
    EXPECT_EQ(found, expected);
  } else {
    EXPECT_THAT(found, testing::Pointwise(testing::FloatNear(1e-6f), expected));
  }
}

TEST(Buckets, OfAnySizeGiveTheSameBits) {
  const std::vector<float> one = gradients({.bucket_mb = 100, .first_bucket_mb = 100});
  const std::vector<float> some = gradients({.bucket_mb = 1e-3, .first_bucket_mb = 4e-4}, [](Learner& learner) {
    EXPECT_GT(learner.ddp().reducer().buckets().size(), 2u);
    EXPECT_LT(learner.ddp().reducer().buckets().size(), learner.arena().slots().size());
  });
  const std::vector<float> many = gradients(kTinyBuckets, [](Learner& learner) {
    EXPECT_EQ(learner.ddp().reducer().buckets().size(), learner.arena().slots().size());
  });
  expect_same(one, some);
  expect_same(one, many);
}

TEST(Buckets, LeaveInTheAgreedOrderHoweverLateALayerIs) {
  const std::vector<float> prompt = gradients(kTinyBuckets);
  const std::vector<float> late = gradients(kTinyBuckets, [](Learner& learner) {
    learner.ddp().reducer().set_on_gradient([](std::size_t slot) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds((slot * 5 + static_cast<std::size_t>(world().rank()) * 7) % 4));
    });
  });
  EXPECT_EQ(prompt, late);
}

TEST(Buckets, OfALateRankCostTheOthersNothingWhileTheyCompute) {
  using Clock = std::chrono::steady_clock;
  const Communicator& communicator = *world().communicator();
  if (!communicator.waited()) GTEST_SKIP() << "a GPU waits unseen";
  Clock::duration computed(0);
  Learner learner({.model = kReducerModel, .ddp = kTinyBuckets}, 4, 1);
  learner.join();
  learner.ddp().reducer().set_on_gradient([&, first = true](std::size_t) mutable {
    const auto begin = Clock::now();
    const bool late = std::exchange(first, false) && world().rank() == world().size() - 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(late ? 30 : 5));
    computed += Clock::now() - begin;
  });
  const auto begin = Clock::now();
  const auto waited = *communicator.waited();
  learner.backward(make_samples(kReducerSamples, 4, 1, 1), my_part(), 1);
  EXPECT_LE(*communicator.waited() - waited, Clock::now() - begin - computed);
}

TEST(Buckets, GiveTheSameBitsDelayedOnSeveralStreamsAndCutByName) {
  const std::vector<float> plain = gradients(kTinyBuckets);
  for (DdpOptions other : {DdpOptions{.delay_reduction = true}, DdpOptions{.reduction_streams = 3},
                           DdpOptions{.reduction_streams = 2, .find_unused = true}}) {
    other.bucket_mb = other.first_bucket_mb = kTinyBuckets.bucket_mb;
    EXPECT_EQ(gradients(other), plain) << lines_of(other);
  }
  const auto count = [](Learner& learner) { EXPECT_EQ(learner.ddp().reducer().buckets().size(), 2u); };
  expect_same(gradients({.bucket_ends = {"hidden2_linear.weight"}}, count), plain);
}

TEST(Buckets, OfSixteenBitsAddInFloat32OnTheCpuEitherWay) {
  DdpOptions options{.wire_dtype = DType::kFloat16};
  const std::vector<float> plain = gradients(options);
  options.reduce_in_float32 = true;
  const std::vector<float> widened = gradients(options);
  // Between nodes, of which only four ranks may have two, the wire's dtype rounds once more.
  if (rank_device() == kCpu && world().size() < 4) {
    EXPECT_EQ(widened, plain);
  } else {
    EXPECT_THAT(widened, testing::Pointwise(testing::FloatNear(1e-3f), plain));
  }
}

TEST(Buckets, SumWhereTheJobDoesNotAverage) {
  const std::vector<float> average = gradients({});
  const std::vector<float> sum = gradients({.gradient_average = false});
  // The loss was not weighted by the number of ranks then, which cancels.
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], average[i], 1e-6);
}

TEST(Buckets, AreTheSameWhateverIsDividedBeforeTheSum) {
  const std::vector<float> average = gradients({});
  for (const double factor : {2.0, 3.0, 1000.0}) {
    const std::vector<float> found = gradients({.gradient_predivide_factor = factor});
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], average[i], 1e-6) << factor;
  }
}

/// The line of /proc/self/maps that holds `address`.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin <= wanted && wanted < end) return line;
  }
  return "";
}

TEST(Buckets, AreReducedWhereTheGradientsAreWritten) {
  Learner learner({.model = kReducerModel}, 4, 1);
  learner.join();
  const void* const memory = learner.arena().grads().data();
  if (world().size() > 1 && rank_device() == kCpu) {
    EXPECT_THAT(mapping_of(memory), HasSubstr(" rw-s "));  // shared with the other ranks
  }
  learner.backward(make_samples(kReducerSamples, 4, 1, 1), my_part(), 1);
  EXPECT_EQ(learner.arena().grads().data(), memory);
  for (const nn::Arena::Slot& slot : learner.arena().slots()) {
    EXPECT_TRUE(slot.parameter.tensor.grad().aliases(learner.arena().grads().rows(slot.begin, slot.end)));
  }
}

TEST(Buckets, StayOnTheRankWithoutSynchronisation) {
  const Samples samples = make_samples(kReducerSamples, 4, 1, 1);
  const LearnerOptions options{.model = kReducerModel, .ddp = {.gradient_average = false}};
  Learner alone(options, 4, 1), learner(options, 4, 1);
  learner.join();
  {
    const DistributedDataParallel::NoSync no_sync(learner.ddp());
    alone.backward(samples, my_part(), 1);
    learner.backward(samples, my_part(), 1);
    const DistributedDataParallel::NoSync nested = learner.ddp().no_sync();
  }
  EXPECT_TRUE(bits_of({learner.arena().grads()}) == bits_of({alone.arena().grads()}));
  EXPECT_TRUE(learner.ddp().reducer().enabled());
}

TEST(Buckets, BelongToOneDataParallelTrainingAtATime) {
  const std::vector<float> expected = gradients({});
  const std::vector<float> found = gradients(
      {}, [](Learner& learner) { EXPECT_THROW(DistributedDataParallel(learner.model(), world()), UsageError); });
  EXPECT_EQ(found, expected);
}

/// Two branches of different sizes that are added; which one runs first, and whether both do, is up to the rank.
class Branches : public nn::Module {
 public:
  Tensor forward(const Tensor& x) override {
    if (!second) return wide(x);
    if (second_first) {
      const Tensor b = narrow(x);
      return ops::add(wide(x), b);
    }
    const Tensor a = wide(x);
    return ops::add(a, narrow(x));
  }
  bool second_first = false;
  bool second = true;

 private:
  Tensor wide(const Tensor& x) { return wide_out_.forward(ops::gelu(wide_in_.forward(x))); }
  Tensor narrow(const Tensor& x) { return narrow_out_.forward(ops::gelu(narrow_in_.forward(x))); }
  nn::Linear& wide_in_ = add_module<nn::Linear>("wide_in", 4, 64);
  nn::Linear& wide_out_ = add_module<nn::Linear>("wide_out", 64, kClasses);
  nn::Linear& narrow_in_ = add_module<nn::Linear>("narrow_in", 4, 32);
  nn::Linear& narrow_out_ = add_module<nn::Linear>("narrow_out", 32, kClasses);
};

/// The gradients by name, averaged over ranks that all have the same two samples.
std::vector<std::vector<float>> branch_gradients(bool second_first, bool second, bool find_unused) {
  DdpOptions options = kTinyBuckets;
  options.find_unused = find_unused;
  Branches net;
  nn::initialize(net, 5);
  const std::unique_ptr<optim::Optimizer> optimizer = optim::sgd(net.parameters(), {.lr = 0.1});
  amp::initialize(net, *optimizer, {}, rank_device());
  DistributedDataParallel ddp(net, world(), options);
  net.second_first = second_first;
  net.second = second;
  optimizer->zero_grad();
  const Samples samples = make_samples(2, 2, 1, 1);
  const Tensor input = samples.input.to(rank_device()), target = samples.target.to(rank_device());
  ops::cross_entropy(ddp.forward(ops::flatten(input)), target).backward();
  std::vector<std::vector<float>> all;
  for (const nn::Arena::Slot& slot : net.arena()->slots()) {
    all.push_back(floats_of(net.arena()->grads().rows(slot.begin, slot.end)));
  }
  return all;
}

TEST(Buckets, LeaveInTheAgreedOrderWhicheverBranchARankFinishesFirst) {
  EXPECT_EQ(branch_gradients(false, true, false), branch_gradients(world().rank() % 2 == 1, true, false));
}

/// One step of momentum and weight decay on the two branches, of which the narrow one is `used` on this rank or not;
/// then whether it was moved, and how many steps each of its parameters counts.
struct Moved {
  bool narrow = false;
  bool wide = false;
  std::vector<double> steps;
};
Moved step_of_branches(bool used, bool with_scaler) {
  Branches net;
  nn::initialize(net, 5);
  const std::unique_ptr<optim::Optimizer> optimizer =
      optim::sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  amp::initialize(net, *optimizer, {}, rank_device());
  DistributedDataParallel ddp(net, world(), {.find_unused = true});
  amp::GradScaler scaler(world(), kUnscaled);
  net.second = used;
  const Samples samples = make_samples(2, 2, 1, 1);
  const Tensor input = samples.input.to(rank_device()), target = samples.target.to(rank_device());
  const nn::Arena& arena = *net.arena();
  const auto weights = [&arena](std::size_t slot) {
    return bits_of({arena.masters().rows(arena.slots()[slot].begin, arena.slots()[slot].end)});
  };
  const auto narrow = weights(1), wide = weights(5);
  optimizer->zero_grad();
  scaler.scale(ops::cross_entropy(ddp.forward(ops::flatten(input)), target)).backward();
  if (with_scaler) {
    scaler.step(*optimizer);
    scaler.update();
  } else {
    optimizer->step(1.0f / scaler.get_scale(), 0.0f);
  }
  require_equal_weights(arena, optimizer->state(), *world().communicator());
  Moved moved{weights(1) != narrow, weights(5) != wide, {}};
  for (std::int64_t slot = 0; slot < 4; ++slot) moved.steps.push_back(optimizer->parameter_steps().item(slot));
  return moved;
}

TEST(Buckets, LeaveAParameterAloneOnlyWhereNoRankHasAGradientOfIt) {
  for (const bool with_scaler : {true, false}) {
    const Moved all = step_of_branches(true, with_scaler), none = step_of_branches(false, with_scaler);
    const Moved first_alone = step_of_branches(world().rank() == 0, with_scaler);
    for (const Moved& moved : {all, none, first_alone}) EXPECT_TRUE(moved.wide);
    EXPECT_TRUE(all.narrow);
    EXPECT_THAT(all.steps, Each(1));
    EXPECT_FALSE(none.narrow) << "by weight decay, for example";
    EXPECT_THAT(none.steps, Each(0));
    EXPECT_TRUE(first_alone.narrow);
    EXPECT_THAT(first_alone.steps, Each(1));
  }
}

TEST(Buckets, CountAnUnusedParameterAsZeroWhereTheJobSaysSo) {
  const int size = world().size();
  const std::vector<std::vector<float>> all = branch_gradients(false, true, true);
  const std::vector<std::vector<float>> but_one = branch_gradients(false, world().rank() + 1 != size, true);
  for (std::size_t slot = 0; slot < 4; ++slot) {  // the narrow branch, which was registered last
    for (std::size_t i = 0; i < all[slot].size(); ++i) {
      EXPECT_NEAR(but_one[slot][i], all[slot][i] * static_cast<float>(size - 1) / static_cast<float>(size), 1e-7);
    }
    EXPECT_NE(all[slot], std::vector<float>(all[slot].size(), 0.0f));
    EXPECT_THAT(branch_gradients(false, false, true)[slot], Each(0.0f));
  }
}

}  // namespace
}  // namespace lockstep::comm
