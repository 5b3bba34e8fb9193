// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/bucket_plan.h"

#include <gtest/gtest.h>

#include "runtime/nn/layers.h"

namespace lockstep::comm {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

/// Layers of very different sizes, each with a bias much smaller than its weight.
class PlannedNet : public nn::Module {
 public:
  PlannedNet() {
    for (const std::int64_t width : {3, 64, 1, 200, 17, 128, 128, 5}) {
      add_module<nn::Linear>("layer" + std::to_string(layers_++), 100, width);
    }
  }
  Tensor forward(const Tensor& x) override { return x; }

 private:
  int layers_ = 0;
};

DdpOptions sizes(double first_bytes, double bytes) {
  return {.bucket_mb = bytes / kMebibyte, .first_bucket_mb = first_bytes / kMebibyte};
}

class Plan : public testing::TestWithParam<DType> {
 protected:
  Plan() : arena_(net_, {}) {
    arena_.place_gradients(Tensor::zeros({arena_.size()}, GetParam()).storage(), GetParam());
  }

  double bytes_of(const Bucket& bucket) const {
    return static_cast<double>(bucket.end - bucket.begin) * static_cast<double>(size_of(GetParam()));
  }

  PlannedNet net_;
  nn::Arena arena_;
};
INSTANTIATE_TEST_SUITE_P(Wires, Plan, testing::Values(DType::kFloat32, DType::kFloat16),
                         [](const auto& at) { return std::string(name_of(at.param)); });

TEST_P(Plan, CoversTheArenaExactlyAtParameterBoundaries) {
  const std::vector<nn::Arena::Slot>& slots = arena_.slots();
  for (const double bytes : {1.0, 1000.0, 5000.0, 40000.0, 100 * kMebibyte}) {
    const std::vector<Bucket> buckets = plan_buckets(arena_, sizes(500, bytes));
    std::int64_t begin = 0;
    int slot = 0;
    for (const Bucket& bucket : buckets) {
      EXPECT_EQ(bucket.begin, begin);
      EXPECT_EQ(bucket.first_slot, slot);
      EXPECT_GT(bucket.last_slot, bucket.first_slot);
      EXPECT_EQ(bucket.begin, slots[static_cast<std::size_t>(bucket.first_slot)].begin);
      EXPECT_GE(bucket.end, slots[static_cast<std::size_t>(bucket.last_slot) - 1].end);
      begin = bucket.end;
      slot = bucket.last_slot;
    }
    EXPECT_EQ(begin, arena_.size());
    EXPECT_EQ(slot, static_cast<int>(slots.size()));
  }
}

TEST_P(Plan, StartsSmallAndEndsABucketWithTheParameterThatFillsIt) {
  const std::vector<Bucket> buckets = plan_buckets(arena_, sizes(500, 40000));
  ASSERT_GE(buckets.size(), 3u);
  for (std::size_t b = 0; b + 1 < buckets.size(); ++b) {
    const double limit = b == 0 ? 500 : 40000;
    EXPECT_GE(bytes_of(buckets[b]), limit) << b;
    const nn::Arena::Slot& last = arena_.slots()[static_cast<std::size_t>(buckets[b].last_slot) - 1];
    EXPECT_LT(static_cast<double>(last.begin - buckets[b].begin) * static_cast<double>(size_of(GetParam())), limit)
        << b;
  }
  EXPECT_LT(bytes_of(buckets[0]), 40000);
}

TEST_P(Plan, IsOneBucketForAParameterWhereBucketsAreTiny) {
  EXPECT_EQ(plan_buckets(arena_, sizes(1, 1)).size(), arena_.slots().size());
}

TEST_P(Plan, IsOneBucketWhereAllFits) { EXPECT_EQ(plan_buckets(arena_, sizes(kMebibyte, kMebibyte)).size(), 1u); }

TEST_P(Plan, IsDescribedForACheckpoint) {
  const std::vector<Bucket> buckets = plan_buckets(arena_, sizes(500, 40000));
  const BucketPlan plan = describe_plan(buckets, arena_);
  EXPECT_EQ(plan.buckets, buckets);
  ASSERT_EQ(plan.parameters.size(), 16u);
  EXPECT_EQ(plan.parameters[0], "layer7.bias");
  EXPECT_EQ(plan.wire_dtype, GetParam());
}

}  // namespace
}  // namespace lockstep::comm
