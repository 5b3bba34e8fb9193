// SPDX-License-Identifier: Apache-2.0
// A hook in place of the all_reduce of gradients. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kHookSamples = 9;
constexpr DdpOptions kSmallBuckets{.bucket_mb = 1e-3, .first_bucket_mb = 4e-4};

/// A learner whose gradients `hook` reduces; null: nobody but the reducer.
struct HookedLearner : Learner {
  explicit HookedLearner(const CommunicationHook& hook,
                         const LearnerOptions& options = {.model = MlpOptions{.hidden = {24, 16, 8}},
                                                          .ddp = kSmallBuckets})
      : Learner(options, 4, 1) {
    join();
    if (hook) ddp().set_communication_hook("the test's", hook);
  }
  amp::Verdict train(std::uint64_t step) {
    optimizer().zero_grad();
    backward(make_samples(kHookSamples, 4, 1, step),
             part_of(kHookSamples, 1, world().rank(), world().size(), Shares::kGrowing), step);
    return this->step();
  }
};

/// The sum over the ranks from all of their gradients, added in the order of the ranks.
void gather_and_add(const GradientBucket& bucket) {
  const Tensor mine = bucket.gradients;
  const Tensor all = Tensor::empty({bucket.communicator.size() * mine.numel()}, mine.dtype(), mine.device());
  bucket.communicator.all_gather(mine, all, bucket.stream);
  bucket.stream.enqueue([mine, all, weight = bucket.weight] {
    const Tensor sum = Tensor::zeros({mine.numel()}, DType::kFloat32, mine.device());
    for (std::int64_t begin = 0; begin < all.numel(); begin += mine.numel()) {
      kernels::accumulate(all.rows(begin, begin + mine.numel()), sum);
    }
    kernels::scale(sum, weight, nullptr, sum);
    kernels::cast(sum, mine);
  });
}

TEST(CommunicationHook, ThatAllReducesChangesNoBit) {
  for (const bool average : {true, false}) {
    LearnerOptions options{.model = MlpOptions{.hidden = {24, 16, 8}}, .ddp = kSmallBuckets};
    options.ddp.gradient_average = average;
    HookedLearner plain(nullptr, options), hooked([](const GradientBucket&bucket) { bucket.all_reduce(); }, options);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      plain.train(step);
      hooked.train(step);
    }
    EXPECT_EQ(bits_of(state_of(hooked)), bits_of(state_of(plain)));
  }
}

TEST(CommunicationHook, MayReduceByItself) {
  for (const bool average : {true, false}) {
    LearnerOptions options{.model = MlpOptions{.hidden = {24, 16, 8}}, .ddp = kSmallBuckets};
    options.ddp.gradient_average = average;
    HookedLearner plain(nullptr, options), hooked(gather_and_add, options);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      plain.train(step);
      hooked.train(step);
    }
    EXPECT_LE(distance(hooked.arena().masters(), plain.arena().masters()), 1e-6 * norm(plain.arena().masters()));
    require_equal_weights(hooked.arena(), hooked.optimizer().state(), *world().communicator());
  }
}

TEST(CommunicationHook, SeesEveryParameterOnceInOrder) {
  std::vector<int> numbers;
  std::vector<std::string> names;
  HookedLearner learner([&](const GradientBucket& bucket) {
    numbers.push_back(bucket.number);
    EXPECT_GT(bucket.count, 2);
    const std::int64_t begin = bucket.slots.front().begin;
    for (const nn::Arena::Slot& slot : bucket.slots) {
      names.push_back(slot.parameter.name);
      EXPECT_LE(slot.end - begin, bucket.gradients.numel());
    }
    bucket.all_reduce();
  });
  learner.train(1);
  std::vector<std::string> expected;
  for (const nn::Arena::Slot& slot : learner.arena().slots()) expected.push_back(slot.parameter.name);
  EXPECT_EQ(names, expected);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int>(i));
  EXPECT_THAT(world().communicator()->all_gather_text(testing::PrintToString(names)),
              testing::Each(testing::PrintToString(names)));
  // Without sync nothing leaves; and a hook that is taken away is gone.
  const std::size_t calls = numbers.size();
  {
    const auto no_sync = learner.ddp().no_sync();
    learner.backward(make_samples(kHookSamples, 4, 1, 2), {{0, kHookSamples}}, 2);
  }
  learner.ddp().set_communication_hook("none", nullptr);
  learner.optimizer().zero_grad();
  learner.train(3);
  EXPECT_EQ(numbers.size(), calls);
}

TEST(CommunicationHook, WorksOnTheWiresDtypeAndOnFloat32) {
  for (const bool widens : {false, true}) {
    LearnerOptions options{.model = MlpOptions{.hidden = {24, 16, 8}},
                           .amp = {.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16},
                           .ddp = kSmallBuckets};
    options.ddp.reduce_in_float32 = widens;
    HookedLearner plain(nullptr, options),
        hooked(
            [&](const GradientBucket&bucket) {
              const bool wide = widens && world().size() > 1;
              EXPECT_EQ(bucket.gradients.dtype(), wide ? DType::kFloat32 : DType::kBFloat16);
              gather_and_add(bucket);
            },
            options);
    plain.train(1);
    hooked.train(1);
    EXPECT_LE(distance(hooked.arena().masters(), plain.arena().masters()), 1e-4 * norm(plain.arena().masters()));
    require_equal_weights(hooked.arena(), hooked.optimizer().state(), *world().communicator());
  }
}

TEST(CommunicationHook, ThatLeavesInfinityHasTheStepSkippedOnAllRanks) {
  HookedLearner learner(
      [](const GradientBucket& bucket) {
        bucket.all_reduce();
        if (bucket.number != 1) return;
        bucket.stream.enqueue([gradients = bucket.gradients] {
          kernels::fill(gradients.rows(0, 1), std::numeric_limits<double>::infinity());
        });
      },
      {.model = MlpOptions{.hidden = {24, 16, 8}}, .scaler = {.init = 8}, .ddp = kSmallBuckets});
  const std::vector<std::string> before = bits_of({learner.arena().masters()});
  EXPECT_NE(learner.train(1).found_inf, 0);
  EXPECT_EQ(bits_of({learner.arena().masters()}), before);
}

TEST(CommunicationHook, OfOneRankAloneIsRefusedAndSoIsOneWithinAPass) {
  HookedLearner learner(nullptr);
  const CommunicationHook hook = [](const GradientBucket& bucket) { bucket.all_reduce(); };
  if (world().size() > 1) {
    try {
      learner.ddp().set_communication_hook("other", world().rank() == 0 ? CommunicationHook() : hook);
      ADD_FAILURE() << "one rank has a hook and another none";
    } catch (const PeerError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 has none, rank 1 has the hook other"));
    }
  }
  learner.ddp().reducer().set_on_gradient(
      [&](std::size_t) { EXPECT_THROW(learner.ddp().reducer().set_communication_hook(hook), UsageError); });
  learner.train(1);
}

}  // namespace
}  // namespace lockstep::comm
