// SPDX-License-Identifier: Apache-2.0
// Batch norm over the ranks' shares is batch norm of the whole batch, computed in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/ddp/sync_batch_norm.h"
#include "runtime/autograd/engine.h"
#include "runtime/base/counter_rng.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/batch_norm.h"
#include "runtime/tensor/device_value.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

constexpr std::int64_t kSyncNormSamples = 11;
constexpr std::int64_t kChannels = 19;
const Shape kShape{kSyncNormSamples, 3, 2, kChannels};
constexpr double kRows = kSyncNormSamples * 3 * 2;

struct SyncNormCase {
  DType dtype;
  bool relu;
  bool residual;
  Shares shares;
};

std::vector<SyncNormCase> sync_norm_cases() {
  std::vector<SyncNormCase> all;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const Shares shares : {Shares::kEven, Shares::kGrowing, Shares::kLastIdle}) {
      for (const bool relu : {false, true}) {
        for (const bool residual : {false, true}) all.push_back({dtype, relu, residual, shares});
      }
    }
  }
  return all;
}

std::string name_of(const SyncNormCase& at) {
  const char* shares = at.shares == Shares::kEven ? "Even" : at.shares == Shares::kGrowing ? "Uneven" : "OneRankEmpty";
  return std::string(name_of(at.dtype)) + (at.relu ? "Relu" : "") + (at.residual ? "Residual" : "") + shares;
}

/// On the CPU.
Tensor cast(const Tensor& tensor, DType dtype) {
  const Tensor out = Tensor::empty(tensor.shape(), dtype);
  kernels::cast(tensor, out);
  return out;
}

/// How far a channel's mean is from 0, in units of half its range.
double offset_of(std::int64_t channel, DType dtype) {
  return std::pow(8.0, static_cast<double>(channel % (dtype == DType::kFloat32 ? 4 : 2)));
}

/// Uniform in [-1, 1].
Tensor values(std::uint64_t seed, const Shape& shape) {
  const CounterRng rng(seed, CounterRng::Purpose::kSynthetic);
  std::vector<float> all(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = 2.0f * rng.uniform(i) - 1.0f;
  return Tensor::from(all, shape);
}

/// Channels of several sizes, some with a mean far from 0.
Tensor inputs(DType dtype) {
  const Tensor x = values(1, kShape);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const std::int64_t channel = i % kChannels;
    float& value = x.mutable_as<float>()[static_cast<std::size_t>(i)];
    value = std::pow(10.0f, static_cast<float>(channel % 3) - 1.0f) *
            (value + static_cast<float>(offset_of(channel, dtype)));
  }
  return cast(x, dtype);
}

Tensor leaf(const Tensor& tensor) {
  tensor.set_requires_grad(true);
  return tensor;
}

/// What a batch norm takes and gives.
struct Pass {
  Tensor x, residual, y, gamma, beta, running;
};

/// This rank's part of a tensor whose first dimension is the samples.
Tensor part(const Tensor& whole, const Range& range) { return whole.rows(range.begin, range.end); }

class SyncBatchNorm : public testing::TestWithParam<SyncNormCase> {
 protected:
  void SetUp() override {
    const auto& [dtype, relu, residual, shares] = GetParam();
    range_ = cut({0, kSyncNormSamples}, world().rank(), world().size(), shares);
    const Tensor x = inputs(dtype);
    const Tensor added = residual ? cast(values(2, kShape), dtype) : Tensor();
    const Tensor dy = cast(values(3, kShape), dtype);
    truth(x, added, relu);
    // Where a ReLU's input is next to 0, rounding decides whether the gradient passes.
    for (std::int64_t i = 0; i < dy.numel(); ++i) {
      if (relu && std::abs(expected_.y.item(i)) < 0.02) {
        kernels::fill(dy.reshaped({dy.numel()}).rows(i, i + 1), 0.0);
      }
    }
    autograd::backward(expected_.y, cast(dy, DType::kFloat64));
    mine(x, added, relu, dy);
  }

  void truth(const Tensor& x, const Tensor& added, bool relu) {
    const auto leaf64 = [](const Tensor& tensor) { return leaf(cast(tensor, DType::kFloat64)); };
    const nn::BatchNorm start(kChannels);
    expected_ = {leaf64(x),     added.defined() ? leaf64(added) : Tensor(),    {}, leaf64(gamma_),
                 leaf64(beta_), Tensor::empty({2, kChannels}, DType::kFloat64)};
    const Tensor running = cast(nn::RunningStatistics(kChannels).committed(), DType::kFloat64);
    expected_.y = ops::batch_norm(expected_.x, expected_.gamma, expected_.beta, expected_.residual, running,
                                  expected_.running, {.relu = relu});
  }

  void mine(const Tensor& x, const Tensor& added, bool relu, const Tensor& dy) {
    nn::BatchNorm norm(kChannels, {.relu = relu});
    const std::vector<nn::Parameter> parameters = norm.parameters();
    kernels::cast(gamma_, parameters[0].tensor);
    kernels::cast(beta_, parameters[1].tensor);
    arena_.emplace(norm, nn::ArenaOptions{.device = rank_device()});
    const std::shared_ptr<void> channel = convert_sync_batch_norm(norm, *world().communicator());
    found_ = {leaf(mine_of(x)),
              added.defined() ? leaf(mine_of(added)) : Tensor(),
              {},
              parameters[0].tensor,
              parameters[1].tensor,
              {}};
    found_.y = norm.forward(found_.x, found_.residual);
    autograd::backward(found_.y, mine_of(dy));
    nn::RunningStatistics& statistics = *norm.statistics()[0].second;
    statistics.commit(DeviceValue(0.0f, rank_device()).data());
    found_.running = statistics.committed();
  }

  Tensor mine_of(const Tensor& whole) const { return part(whole, range_).to(rank_device()); }

  static double largest(const Tensor& tensor, std::int64_t channel) {
    double size = 0;
    for (std::int64_t i = channel; i < tensor.numel(); i += kChannels) size = std::max(size, std::abs(tensor.item(i)));
    return size;
  }

  /// Expects found = expected, channel by channel, to the rounding of float32 for values of this size (0: the largest
  /// one) whose mean is that far from 0, and to the rounding of the result.
  static void expect_equal(const char* what, const Tensor& on_device, const Tensor& expected, double size = 0) {
    const Tensor found = on_device.to(kCpu);
    const DType dtype = GetParam().dtype;
    const double result = found.dtype() == DType::kFloat16    ? 0x1p-11
                          : found.dtype() == DType::kBFloat16 ? 0x1p-8
                                                              : 0x1p-24;
    for (std::int64_t channel = 0; channel < kChannels; ++channel) {
      const double values = size > 0 ? size : largest(expected, channel);
      const double tolerance = values * (2 * result + 4 * (1 + offset_of(channel, dtype)) * 0x1p-24);
      for (std::int64_t i = channel; i < found.numel(); i += kChannels) {
        ASSERT_NEAR(found.item(i), expected.item(i), tolerance) << what << " of channel " << channel;
      }
    }
  }

  Range range_;
  Tensor gamma_ = values(4, {kChannels});
  Tensor beta_ = values(5, {kChannels});
  Pass expected_;
  std::optional<nn::Arena> arena_;
  Pass found_;
};
INSTANTIATE_TEST_SUITE_P(Cases, SyncBatchNorm, testing::ValuesIn(sync_norm_cases()),
                         [](const auto& at) { return name_of(at.param); });

TEST_P(SyncBatchNorm, IsThatOfTheWholeBatch) {
  const auto sum = [](const Tensor& share) {
    world().communicator()->all_reduce(share, ReduceOp::kSum, 1.0f, Stream::current(share.device()));
    return share;
  };
  expect_equal("y", found_.y, part(expected_.y, range_), 2.0);
  expect_equal("running statistics", found_.running, expected_.running);
  expect_equal("dx", found_.x.grad(), part(expected_.x.grad(), range_), 0);
  if (GetParam().residual) expect_equal("dresidual", found_.residual.grad(), part(expected_.residual.grad(), range_));
  // Each of the rows adds its rounding.
  expect_equal("dgamma", sum(found_.gamma.grad()), expected_.gamma.grad(), kRows);
  expect_equal("dbeta", sum(found_.beta.grad()), expected_.beta.grad(), kRows);
}

/// The running means after one step of batch norm over groups of so many ranks, for a rank's samples of value rank + 1.
double running_mean(int group_size) {
  nn::BatchNorm norm(1);
  const nn::Arena arena(norm, nn::ArenaOptions{.device = rank_device()});
  const std::shared_ptr<void> channel = convert_sync_batch_norm(norm, *world().communicator(), group_size);
  const Tensor x = Tensor::empty({2, 1}, DType::kFloat32, rank_device());
  kernels::fill(x, static_cast<double>(world().rank() + 1));
  norm.forward(x);
  nn::RunningStatistics& statistics = *norm.statistics()[0].second;
  statistics.commit(DeviceValue(0.0f, rank_device()).data());
  return statistics.committed().item(0);
}

TEST(SyncBatchNorm, OverGroupsTakesTheStatisticsOfTheRanksGroup) {
  const int size = world().size();
  for (int group = 1; group <= size; ++group) {
    if (size % group != 0) {
      EXPECT_THROW(running_mean(group), FieldError) << group;
      continue;
    }
    const int first = world().rank() / group * group;
    const double mean = first + (group + 1) / 2.0;
    EXPECT_FLOAT_EQ(static_cast<float>(running_mean(group)), static_cast<float>(0.1 * mean)) << group;
  }
  EXPECT_EQ(running_mean(0), running_mean(size));
}

TEST(SyncBatchNorm, OverGroupsSharesRankZerosStatisticsBeforeTheyAreUsed) {
  const int size = world().size();
  Learner learner({.model = MlpOptions{.hidden = {6}, .batch_norm = true},
                   .ddp = {.sync_batch_norm_group = size % 2 == 0 ? size / 2 : 1}},
                  4, 1);
  learner.join();
  const Tensor& committed = learner.arena().statistics()[0].second->committed();
  kernels::fill(committed, static_cast<double>(world().rank()));
  learner.ddp().share_statistics();
  EXPECT_EQ(committed.item(0), 0.0);
}

TEST(SyncBatchNorm, KeepsTheTrainingFlagAndEndsWithDataParallelTraining) {
  Learner learner({.model = MlpOptions{.hidden = {6, 6}, .batch_norm = true}}, 4, 1);
  learner.model().train(false);
  std::vector<nn::BatchNorm*> norms;
  learner.model().for_each([&norms](const std::string&, nn::Module& module) {
    if (auto* norm = dynamic_cast<nn::BatchNorm*>(&module)) norms.push_back(norm);
  });
  ASSERT_EQ(norms.size(), 2u);
  {
    DistributedDataParallel ddp(learner.model(), world());
    for (const nn::BatchNorm* norm : norms) {
      EXPECT_EQ(norm->reducer() != nullptr, world().size() > 1);
      EXPECT_FALSE(norm->training());
    }
  }
  for (const nn::BatchNorm* norm : norms) EXPECT_EQ(norm->reducer(), nullptr);
}

}  // namespace
}  // namespace lockstep::comm
